"""Writes the deviations of docs/research/ from the `Deviation:` comments in the code.

A comment names the paper and the place, then what the paper says, what the code does, why, and the
effect: `# Deviation: DASC eq. 3. Paper: ... Here: ... Why: ... Effect: ...`. The effect is "claim
NAME" of reproduction/claims.toml, whose figure the page shows, a table "results/NAME.csv", "none"
with the reason, or "not measured".
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: name.lower() for name in ("NeuCrowd", "RLL", "DASC", "CrowdInG", "ICED")}
OTHERS = "others"  # truth inference and later methods
PLACE = re.compile(r"(?<=<!-- deviations -->\n).*?(?=<!-- end of deviations -->)", re.DOTALL)
# A comment from "Deviation:" to its last line, or to the next one of the same comment.
COMMENT = re.compile(r"# Deviation: ([^\n]+(?:\n *#(?! Deviation:)[^\n]*)*)")
CLAIMS = ROOT / "reproduction" / "claims.toml"
_CLAIM = re.compile(r"\b[a-z]\w*_\w+\b")
_TABLE = re.compile(r"results/\w+\.csv")
MARK = re.compile(r" *\b(Paper|Here|Why|Effect): ")


def comments() -> Iterator[tuple[str, str]]:
    """Yields the file, and the text on one line, of each comment in the library."""
    for path in sorted((ROOT / "neucrowd_tf").rglob("*.py")):
        for text in COMMENT.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), re.sub(r"\s*\n\s*# ?", " ", text)


def effect(text: str) -> str:
    """Returns an effect with the figures of its claims.

    Raises:
        ValueError: it is neither a stored row or table, nor "none" with a reason, nor "not
            measured".
    """
    if text == "not measured." or re.fullmatch(r"none\b.{5,}", text):
        return text
    tables = _TABLE.findall(text)
    if tables and all((ROOT / name).exists() for name in tables):
        return text
    names = _CLAIM.findall(text) if text.startswith("claim") else []
    stored = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    if not names or not all(name in stored for name in names):
        raise ValueError(f"Effect: {text!r} is no claim, no table, and not 'not measured'")
    shown = [f"`{name}`: {_figure(stored[name])}" for name in names]
    return f"{'; '.join(shown)}."


def _figure(claim: dict[str, Any]) -> str:
    """Returns a claim's figure, its interval and its seeds; a gain is in points."""
    ours, gain = claim["ours"], "control" in claim
    scale, form = (100, "+.1f") if gain else (1, ".3f")
    parts = [f"{scale * ours[name]:{form}}" for name in ("mean", "low", "high") if name in ours]
    interval = f" [{', '.join(parts[1:])}]" if len(parts) == 3 else ""
    return f"{parts[0]}{interval}{' points' if gain else ''} ({ours['runs']} seeds)"


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
        reason, _, end = text[len(place) :].partition("Effect: ")
        fields = MARK.sub(r" *\1:* ", f"{reason}Effect: {effect(end.strip())}")
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
