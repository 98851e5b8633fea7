"""Writes the deviations of docs/research/ from the `Deviation:` comments in the code.

A comment names the paper and the place, then what the paper says, what the code does, why, and the
effect: `# Deviation: DASC eq. 3. Paper: ... Here: ... Why: ... Effect: ...`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: name.lower() for name in ("NeuCrowd", "RLL", "DASC", "CrowdInG", "ICED")}
OTHERS = "others"  # truth inference and later methods
PLACE = re.compile(r"(?<=<!-- deviations -->\n).*?(?=<!-- end of deviations -->)", re.DOTALL)
# A comment from "Deviation:" to its last line, or to the next one of the same comment.
COMMENT = re.compile(r"# Deviation: ([^\n]+(?:\n *#(?! Deviation:)[^\n]*)*)")
MARK = re.compile(r" *\b(Paper|Here|Why|Effect): ")


def comments() -> Iterator[tuple[str, str]]:
    """Yields the file, and the text on one line, of each comment in the library."""
    for path in sorted((ROOT / "neucrowd_tf").rglob("*.py")):
        for text in COMMENT.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), re.sub(r"\s*\n\s*# ?", " ", text)


def lines(page: str) -> list[str]:
    """Returns the items of a page, one per comment; equal comments of two files are one."""
    items: dict[str, list[str]] = {}
    for path, text in comments():
        papers = (PAGES[name] for name in PAGES if text.startswith(f"{name} "))
        if next(papers, OTHERS) == page:
            items.setdefault(text, []).append(path)
    result = []
    for text, paths in sorted(items.items(), key=lambda item: item[0]):
        place = MARK.split(text)[0]
        fields = MARK.sub(r" *\1:* ", text[len(place) :])
        where = ", ".join(f"`{path.removeprefix('neucrowd_tf/')}`" for path in paths)
        item = f"- **{place.strip().rstrip('.')}** ({where}).{fields}"
        options = {"subsequent_indent": "  ", "break_on_hyphens": False}
        result += textwrap.wrap(item, 100, break_long_words=False, **options)
    return result


def updated(page: str, text: str) -> str:
    """Returns a page of docs/research/ with its deviations."""
    return PLACE.sub(lambda _: "\n".join(lines(page)) + "\n", text)


if __name__ == "__main__":
    for page in (*PAGES.values(), OTHERS):
        path = ROOT / "docs" / "research" / f"{page}.md"
        path.write_text(updated(page, path.read_text(encoding="utf-8")), encoding="utf-8")
