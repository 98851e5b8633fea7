"""docs/methods: every method has a page, every parameter stands in it, every link leads
somewhere."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from neucrowd_tf import registry
from neucrowd_tf.harness import plugins

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "methods"
TABLE = re.compile(r"<!-- parameters of ([\w.]+):(\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
PAGES = (
    "neucrowd",
    "rll",
    "crowd_layers",
    "dasc",
    "crowding",
    "iced",
    "truth_inference",
    "baselines",
    "rivals",
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_parts(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert "## When to use" in text and TABLE.search(text) and "$" in text
    if name != "baselines":
        assert "## Equation" in text and "## Parameters" in text


@pytest.mark.parametrize("name", PAGES)
def test_every_parameter_stands_in_its_table(name: str) -> None:
    tables = TABLE.findall((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    assert tables
    for module, kind, table in tables:
        wanted = [
            item
            for item in inspect.signature(
                getattr(importlib.import_module(module), kind).__init__
            ).parameters
            if item != "self"
        ]
        found = [
            item
            for row in table.strip().split("\n")[2:]
            for item in re.findall(r"`(\w+)`", row.split("|")[1])
        ]
        assert sorted(found) == sorted(wanted), f"{kind}: run python docs/methods/parameters.py"


def test_every_registered_method_is_named_on_a_page() -> None:
    plugins.register(("baselines",))
    text = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md"))
    names = set(re.findall(r"`([a-z0-9_]+)`", text))
    heads = set(
        re.findall(r"`([a-z0-9_]+_)(?:\.\.\.)?`", text)
    )  # `focal_...` and `focal_` stand for all that begin so
    tails = set(re.findall(r"`(_[a-z0-9]+)`", text))  # `_ds` stands for names that end so

    def named(name: str) -> bool:
        by_head = any(name.startswith(head) and name.removeprefix(head) in names for head in heads)
        return (
            name in names
            or by_head
            or any(name.endswith(tail) and name.removesuffix(tail) in names for tail in tails)
        )

    ours = [
        method
        for method in registry.methods()
        if method.factory.__module__.startswith(("neucrowd_tf", "baselines"))
    ]
    assert not [method.name for method in ours if not named(method.name)]


def test_links_lead_somewhere() -> None:
    root = FOLDER.parent
    for path in sorted(root.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(root)}: {target}"
