"""Writes RESULTS.md from the tables in a results folder.

It begins with what reproduced and what did not; then follow the tables.

python -m reproduction.page results RESULTS.md
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import read_json
from reproduction.catalogue import SUITES
from reproduction.suite import FIRST_SEED, Suite
from reproduction.table import ABOVE, BELOW, PRIVATE_DATA, PUBLIC_DATA, REPRODUCED

# Columns of the summary, and what is not one of them.
STATUSES = (REPRODUCED, ABOVE, BELOW, PRIVATE_DATA, PUBLIC_DATA)
OTHER = "not run"
_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")
# Where NOTES.md wants the counts; without it they come first.
COUNTS = "<!-- counts -->"


def summary(records: Iterable[tuple[Suite, Mapping[str, Any]]]) -> list[str]:
    """Returns the first lines: how the printed figures of each paper ended."""
    papers: dict[str, Counter[str]] = {}
    for suite, record in records:
        for status, count in record["outcomes"].items():
            papers.setdefault(suite.paper, Counter())[status if status in STATUSES else OTHER] += (
                count
            )
    columns = [
        status for status in (*STATUSES, OTHER) if any(counts[status] for counts in papers.values())
    ]
    lines = [f"| printed by | figures | {' | '.join(columns)} |", "|" + "---|" * (2 + len(columns))]
    for paper, counts in papers.items():
        lines.append(
            f"| {paper} | {counts.total()} |"
            f" {' | '.join(str(counts[status]) for status in columns)} |"
        )
    return lines


def commits(records: Iterable[Mapping[str, Any]]) -> str:
    """Returns which commits made the runs."""
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record.get("revisions", {}))
    if not counts:
        return ""
    shown = ", ".join(f"`{_short(name)}`" for name, _ in counts.most_common())
    return (
        f"Runs made by {shown}, with the hyper-parameters and presets frozen there: a suite takes"
        " no others."
    )


def _short(revision: str) -> str:
    name, plus, changes = revision.partition("+")
    return name[:12] + plus + changes


def _section(suite: Suite, record: Mapping[str, Any], results: Path) -> list[str]:
    """Returns what the page says of one suite."""
    lines = [(results / f"{suite.name}.md").read_text(encoding="utf-8").rstrip(), ""]
    runs = [f"`{_short(name)}` ({count})" for name, count in record.get("revisions", {}).items()]
    lines += [f"Runs of {', '.join(runs)}.", ""] if runs else []
    failures = [f"- {line}" for line in record.get("failures", [])]
    if failures:
        rest = ["- ..."] * (len(failures) > 10)
        lines += [f"{len(failures)} failed:", "", *failures[:10], *rest, ""]
    pictures, tables = (_files(results, suite, ending) for ending in ("png", "csv"))
    lines += [f"![{suite.title}](results/{name})\n" for name in pictures]
    links = ", ".join(f"[{name}](results/{name})" for name in tables)
    return lines + ([f"As CSV: {links}.", ""] if links else [])


def _files(results: Path, suite: Suite, ending: str) -> list[str]:
    """Returns the names of a suite's files, not of suites whose names begin like it."""
    return [
        path.name
        for path in sorted(results.glob(f"{suite.name}*.{ending}"))
        if path.stem == suite.name or path.stem.startswith(f"{suite.name}_")
    ]


def page(results: Path) -> str:
    """Returns RESULTS.md.

    Raises:
        DataError: a folder without tables.
    """
    records = [
        (suite, read_json(results / f"{suite.name}.json"))
        for suite in SUITES
        if (results / f"{suite.name}.json").exists()
    ]
    if not records:
        raise DataError(f"{results}: expected tables that --suite wrote, received none")
    notes = results / "NOTES.md"
    text = _from_root(notes.read_text(encoding="utf-8").strip()) if notes.exists() else ""
    before, after = text.split(COUNTS, 1) if COUNTS in text else ("", text)
    lines = ["# Results", ""]
    for text in (before.strip(), "\n".join(summary(records)), after.strip()):
        lines += [text, ""] if text else []
    lines += [
        (
            "Made by `make results` from `results/`; every table names the command that makes it."
            f" Means over seeds from {FIRST_SEED} on (1000 in tables not rerun since, or as a"
            " suite's note says), with Student's 95 % intervals; no choice was"
            " made on these seeds' test labels. \"Reproduced\" says that the paper's figure lies"
            " within our interval, which holds the test set fixed and so is narrower than what"
            " another test set would give. A row by itself: `--dataset`, `--method`, its first seed"
            " as `--seed`, `--num_runs`, and what its name says as `--hparam` (k=3:"
            " `--hparam=k=3`)."
        ),
        "",
        commits(record for _, record in records),
        "",
    ]
    for suite, record in records:
        lines += _section(suite, record, results)
    missing = [suite for suite in SUITES if not (results / f"{suite.name}.json").exists()]
    if missing:
        lines += [
            "## Not in this folder yet",
            "",
            *(f"- `--suite={suite.name}`: {suite.title}" for suite in missing),
            "",
        ]
    return "\n".join(lines)


def _from_root(text: str) -> str:
    """Returns a text of the results' folder with its links relative to the page.

    The page is in that folder's parent.
    """
    return _LINK.sub(lambda match: f"]({posixpath.normpath(f'results/{match[1]}')})", text)


def main(arguments: list[str]) -> int:
    """Writes the page; returns the exit code."""
    if len(arguments) != 2:
        print("error: expected a results folder and a page to write", file=sys.stderr)
        return 2
    try:
        write_text(arguments[1], page(Path(arguments[0])))
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
