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
LIST = re.compile(r"<!-- parameters of ([\w.]+):(\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
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
    assert "## When to use" in text and "parameters.md#" in text and "$" in text
    if name != "baselines":
        assert "## Equation" in text and "## Parameters" in text


def test_every_parameter_stands_in_its_list() -> None:
    lists = LIST.findall(
        (FOLDER.parent / "reference" / "parameters.md").read_text(encoding="utf-8")
    )
    assert len(lists) >= 30
    for module, kind, text in lists:
        wanted = [
            item
            for item in inspect.signature(
                getattr(importlib.import_module(module), kind).__init__
            ).parameters
            if item != "self"
        ]
        entries = re.sub(r"\s+", " ", text).split(" - ")
        heads = (
            re.match(r"(?:- )?(?:As above: )?((?:`[^`]*`(?:, )?)+)", entry) for entry in entries
        )
        names = [name for match in heads if match for name in re.findall(r"`(\w+)", match[1])]
        assert sorted(names) == sorted(wanted), f"{kind}: run make pages"


def test_every_crowd_layer_with_arguments_has_a_list() -> None:
    from neucrowd_tf.crowd.estimator import CrowdLayerBase

    plugins.register(("baselines",))
    text = (FOLDER.parent / "reference" / "parameters.md").read_text(encoding="utf-8")
    listed = {kind for _, kind, _ in LIST.findall(text)}
    layers = {
        method.factory
        for method in registry.methods()
        if inspect.isclass(method.factory) and issubclass(method.factory, CrowdLayerBase)
        if method.factory.__module__.startswith(("neucrowd_tf", "baselines"))
    }
    custom = {
        kind.__name__
        for kind in layers
        if set(vars(kind).get("__annotations__", ())) & set(inspect.signature(kind).parameters)
    }
    assert len(custom) > 10 and custom <= listed, f"{custom - listed}: add a block to parameters.md"


def test_every_registered_method_is_named_on_a_page() -> None:
    plugins.register(("baselines",))
    text = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("[mr]e*/*.md"))
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
