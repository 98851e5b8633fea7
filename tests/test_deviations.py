"""Every `Deviation:` comment has its row in docs/deviations.md, and rows name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
# Which section of the page speaks of which packages.
SECTIONS = {
    "NeuCrowd": ("neucrowd",),
    "RLL": ("rll",),
    "Crowd layers": ("crowd_layers",),
    "DASC": ("dasc",),
    "CrowdInG": ("crowding",),
    "ICED": ("iced",),
    "Truth inference": ("aggregation", "annotations"),
}
PACKAGES = {package for packages in SECTIONS.values() for package in packages}


def section(title: str) -> str:
    match = re.search(rf"^## {title}[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, title
    return match[1]


def comments(package: str) -> list[str]:
    folder = ROOT / "neucrowd_tf" / package
    return [
        f"{path.relative_to(ROOT)}: {found}"
        for path in sorted(folder.rglob("*.py"))
        for found in re.findall(r"# Deviation: ([^\n]+)", path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("title", SECTIONS)
def test_each_package_with_comments_has_rows_for_them(title: str) -> None:
    rows = [row for row in section(title).splitlines() if re.match(r"\| (?!equation|---)", row)]
    found = [comment for package in SECTIONS[title] for comment in comments(package)]
    assert len(rows) >= len(found), found
    assert all(row.count(" | ") >= 4 for row in rows)


def test_no_comment_stands_where_the_page_has_no_section() -> None:
    shared = {"nn", "training"}  # what NeuCrowd and RLL are made of
    for path in (ROOT / "neucrowd_tf").rglob("*.py"):
        if "# Deviation:" in path.read_text(encoding="utf-8"):
            assert path.relative_to(ROOT / "neucrowd_tf").parts[0] in PACKAGES | shared, path


def words(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)(?:=[^`]*)?`", text))


@pytest.mark.parametrize("title", ["NeuCrowd", "RLL"])
def test_arguments_that_rows_name_exist(title: str) -> None:
    from neucrowd_tf import registry
    from neucrowd_tf.neucrowd import NeuCrowd
    from neucrowd_tf.rll import RLL

    known = set(NeuCrowd().get_params()) | set(RLL().get_params())
    known |= {method.name for method in registry.methods()}
    assert words(section(title)) <= known, words(section(title)) - known
