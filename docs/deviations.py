"""Writes docs/reference/deviations.csv: where the code departs from a paper, or chooses for it.

A comment in the code names the paper and the place, then what the paper says, what the code does,
why, and the effect: `# Deviation: DASC eq. 3. Paper: ... Here: ... Why: ... Effect: ...`. The
effect is "claim NAME" of reproduction/claims.toml, whose figure the table shows, a table
"results/NAME.csv", "none" with the reason, or "not measured". Choices where a paper is silent stand
in `reproduction/choices.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neucrowd_tf.io.tables.writing import to_csv

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "reference" / "deviations.csv"
CHOICES = ROOT / "reproduction" / "choices.toml"
PAPERS = ("NeuCrowd", "RLL", "DASC", "CrowdInG", "ICED")
OTHERS = "others"  # truth inference and later methods
FIELDS = ("Paper", "Here", "Why", "Effect")
COLUMNS = ("paper", "kind", "place", "published", "ours", "why", "effect", "file")
# A comment from "Deviation:" to its last line, or to the next one of the same comment.
COMMENT = re.compile(r"# Deviation: ([^\n]+(?:\n *#(?! Deviation:)[^\n]*)*)")
CLAIMS = ROOT / "reproduction" / "claims.toml"
_CLAIM = re.compile(r"\b[a-z]\w*_\w+\b")
_TABLE = re.compile(r"results/\w+\.csv")
MARK = re.compile(r" *\b(Paper|Here|Why|Effect): ")
Row = dict[str, str]


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
    names = _CLAIM.findall(text)
    stored = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    if not text.startswith("claim") or not names or not {*names} <= {*stored}:
        raise ValueError(f"Effect: {text!r} is no claim, no table, and not 'not measured'")
    shown = [f"{name}: {_figure(stored[name])}" for name in names]
    return f"{'; '.join(shown)}."


def _figure(claim: dict[str, Any]) -> str:
    """Returns a claim's figure, its interval and its seeds; a gain is in points."""
    ours = claim["ours"]
    gain = "control" in claim
    form = ".3f"
    scale = 1
    if gain:
        form = "+.1f"
        scale = 100
    parts = [f"{scale * ours[name]:{form}}" for name in ("mean", "low", "high") if name in ours]
    interval = f" [{', '.join(parts[1:])}]" * (len(parts) == 3)
    return f"{parts[0]}{interval}{' points' * gain} ({ours['runs']} seeds)"


def deviations() -> list[Row]:
    """Returns a row per comment; equal comments of two files are one."""
    files: dict[str, list[str]] = {}
    for path, text in comments():
        files.setdefault(text, []).append(path.removeprefix("neucrowd_tf/"))
    rows = []
    for text, paths in files.items():
        paper = next((name for name in PAPERS if text.startswith(f"{name} ")), OTHERS)
        place, *parts = MARK.split(text)
        fields = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
        fields["Effect"] = effect(fields["Effect"])
        values = [fields.get(field, "") for field in FIELDS]
        place = place.removeprefix(f"{paper} ").strip().rstrip(".")
        cells = (paper, "deviation", place, *values, ", ".join(paths))
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def choices() -> list[Row]:
    """Returns a row per entry of `choices.toml`."""
    entries = tomllib.loads(CHOICES.read_text(encoding="utf-8"))["choice"]
    return [{"kind": "choice", "file": "", **entry} for entry in entries]


def table() -> str:
    """Returns the table as CSV, by paper, deviations first."""
    order = (*PAPERS, OTHERS).index
    rows = sorted([*deviations(), *choices()], key=lambda row: (order(row["paper"]), row["place"]))
    return to_csv(COLUMNS, ([row.get(name, "") for name in COLUMNS] for row in rows))


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
