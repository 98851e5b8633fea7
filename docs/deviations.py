"""Writes docs/reference/deviations.csv: where the code departs from a paper, or chooses for it.

A comment in the code names the paper and the place, then what the paper says, what the code does,
why, and the effect: `# Deviation: DASC eq. 3. Paper: ... Here: ... Why: ... Effect: ...`. Choices
where a paper is silent stand in `reproduction/choices.toml`.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "reference" / "deviations.csv"
CHOICES = ROOT / "reproduction" / "choices.toml"
PAPERS = ("NeuCrowd", "RLL", "DASC", "CrowdInG", "ICED")
OTHERS = "others"  # truth inference and later methods
FIELDS = ("Paper", "Here", "Why", "Effect")
COLUMNS = ("paper", "kind", "place", "published", "ours", "why", "effect", "file")
# A comment from "Deviation:" to its last line, or to the next one of the same comment.
COMMENT = re.compile(r"# Deviation: ([^\n]+(?:\n *#(?! Deviation:)[^\n]*)*)")
MARK = re.compile(r" *\b(Paper|Here|Why|Effect): ")
Row = dict[str, str]


def comments() -> Iterator[tuple[str, str]]:
    """Yields the file, and the text on one line, of each comment in the library."""
    for path in sorted((ROOT / "neucrowd_tf").rglob("*.py")):
        for text in COMMENT.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), re.sub(r"\s*\n\s*# ?", " ", text)


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
    order = {paper: number for number, paper in enumerate((*PAPERS, OTHERS))}
    rows = sorted([*deviations(), *choices()], key=lambda row: (order[row["paper"]], row["place"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
