"""Every `Deviation:` comment has its row in docs/research/deviations.md; rows name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "research" / "deviations.md").read_text(encoding="utf-8")
# Which section of the page speaks of which packages.
SECTIONS = {
    "NeuCrowd": ("neucrowd", "nn"),
    "RLL": ("rll",),
    "Crowd layers": (
        "crowd",
        *(f"methods/{name}" for name in ("anno_reg", "crowd_layer", "doctor_net")),
    ),
    "DASC": ("dasc",),
    "CrowdInG": ("crowding",),
    "ICED": ("iced",),
    "Later methods": tuple(
        f"methods/{name}"
        for name in (
            *("annot_mix", "ccc", "coinnet", "conal", "crowdar"),
            *("geocrowdnet", "madl", "trace_reg", "unionnet"),
        )
    ),
    "Truth inference": ("aggregation", "annotations"),
}
PACKAGES = {package.split("/")[0] for packages in SECTIONS.values() for package in packages}


def section(title: str) -> str:
    match = re.search(rf"^## {title}[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, title
    return match[1]


# A comment from "Deviation:" to its last line, or to the next one of the same comment.
COMMENT = re.compile(r"# Deviation: ([^\n]+(?:\n *#(?! Deviation:)[^\n]*)*)")


def comments(package: str) -> list[str]:
    folder = ROOT / "neucrowd_tf" / package
    return [
        f"{path.relative_to(ROOT)}: {result}"
        for path in sorted([*folder.rglob("*.py"), *folder.parent.glob(f"{folder.name}.py")])
        for result in COMMENT.findall(path.read_text(encoding="utf-8"))
    ]


def rows(title: str) -> list[str]:
    """The items of a section's list, each on one line."""
    items = re.findall(r"^- .*(?:\n  .*)*", section(title), re.MULTILINE)
    return [re.sub(r"\s+", " ", item) for item in items]


def beginnings(text: str) -> set[str]:
    """The first five letters of the words that say something."""
    common = {
        "paper",
        "which",
        "their",
        "there",
        "where",
        "other",
        "whose",
        "would",
        "does",
        "here",
    }
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())} - common


@pytest.mark.parametrize("title", SECTIONS)
def test_each_comment_has_a_row_that_speaks_of_the_same(title: str) -> None:
    # Two in five of its words; another deviation's row has one in five, as a rule.
    message = [beginnings(row) for row in rows(title)]
    for comment in (result for package in SECTIONS[title] for result in comments(package)):
        custom = beginnings(comment.split(": ", 1)[1])
        assert max(len(custom & row) for row in message) >= 0.4 * len(custom), comment


@pytest.mark.parametrize("title", SECTIONS)
def test_each_package_with_comments_has_rows_for_them(title: str) -> None:
    result = [comment for package in SECTIONS[title] for comment in comments(package)]
    assert len(rows(title)) >= len(result), result
    assert all("*Here:*" in row for row in rows(title))


def test_no_comment_stands_where_the_page_has_no_section() -> None:
    shared = {"nn", "training"}  # what NeuCrowd and RLL are made of
    for path in (ROOT / "neucrowd_tf").rglob("*.py"):
        if "# Deviation:" in path.read_text(encoding="utf-8"):
            assert path.relative_to(ROOT / "neucrowd_tf").parts[0] in PACKAGES | shared, path


def words(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)(?:=[^`]*)?`", text))


@pytest.mark.parametrize("title", ["NeuCrowd", "RLL", "ICED"])
def test_arguments_that_rows_name_exist(title: str) -> None:
    from neucrowd_tf import registry
    from neucrowd_tf.harness import plugins

    plugins.register(("baselines",))
    names = ["iced", "cpc"] if title == "ICED" else ["neucrowd", "rll"]
    certain = {argument for name in names for argument in registry.method(name).make().get_params()}
    certain |= {method.name for method in registry.methods()} | {"certainty_classes_"}
    assert words(section(title)) <= certain, words(section(title)) - certain
