"""Writes RESULTS.md and docs/results/ from claims.toml and the tables in a results folder.

RESULTS.md has a row per claim and counts of the published values; docs/results/ has a page per
paper with its tables; the paper's page in docs/methods/ has its claims. Run
`python -m reproduction.page results RESULTS.md`.
"""

from __future__ import annotations

import posixpath
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.harness.results import aligned
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import read_json
from reproduction import claims
from reproduction.catalogue import SUITES
from reproduction.suite import Suite
from reproduction.table import ABOVE, BELOW, PRIVATE_DATA, PUBLIC_DATA, REPRODUCED

# Columns of the summary, and what is not one of them.
STATUSES = (REPRODUCED, ABOVE, BELOW, PRIVATE_DATA, PUBLIC_DATA)
OTHER = "not run"
_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")
# Where NOTES.md wants the claims and the counts.
CLAIMS, COUNTS = "<!-- claims -->", "<!-- counts -->"
_PLACE = re.compile(f"(?<={CLAIMS}\n).*?(?=<!-- end of claims -->)", re.DOTALL)
PAPERS = {
    "neucrowd": "NeuCrowd",
    "rll": "RLL",
    "dasc": "DASC",
    "crowding": "CrowdInG",
    "iced": "ICED",
    "others": "Truth inference, later methods and datasets",
}
# A word for each verdict of claims.toml.
WORDS = {claims.READING: "reading", "cannot be told": "unclear", "not shown": "unseen"}
Records = list[tuple[Suite, Mapping[str, Any]]]


def summary(records: Iterable[tuple[Suite, Mapping[str, Any]]]) -> list[str]:
    """Returns a table of how the published values of each paper ended."""
    papers: dict[str, Counter[str]] = {}
    for suite, record in records:
        counts = papers.setdefault(PAPERS[_paper(suite)], Counter())
        for status, count in record["outcomes"].items():
            counts[status if status in STATUSES else OTHER] += count
    columns = [
        status for status in (*STATUSES, OTHER) if any(counts[status] for counts in papers.values())
    ]
    rows = [
        [paper, str(counts.total()), *(str(counts[status]) for status in columns)]
        for paper, counts in papers.items()
        if counts.total()
    ]
    return aligned([["paper", "values", *columns], *rows], "md", "")


def at_a_glance(rows: Iterable[claims.Claim]) -> list[str]:
    """Returns a table per paper with a row per claim; the verdict is one word."""
    rows, lines = list(rows), []
    papers = dict.fromkeys(claim.paper for claim in rows)
    for paper in sorted(papers, key=[*PAPERS.values(), *papers].index):
        table = [["claim", "where", "published", "ours", "seeds", "verdict"]]
        for claim in rows:
            if claim.paper == paper:
                verdict = claim.verdict.partition(",")[0]
                shown = WORDS.get(verdict, verdict)
                table.append([claim.claim, claim.where, *claims.figures(claim), shown])
        lines += [f"### {paper}", "", *aligned(table, "md", ""), ""]
    return lines


def _paper(suite: Suite) -> str:
    name = suite.name.partition("_")[0]
    return name if name in PAPERS else "others"


def _short(revision: str) -> str:
    name, plus, changes = revision.partition("+")
    return name[:12] + plus + changes


def _wrapped(text: str) -> Iterator[str]:
    """Yields the lines of a text, prose in at most 100 characters."""
    for line in text.splitlines():
        if len(line) <= 100 or line.startswith(("|", "#", "!", "`")):
            yield line
        else:
            yield from textwrap.wrap(line, 100, break_long_words=False, break_on_hyphens=False)


def _section(suite: Suite, record: Mapping[str, Any], results: Path) -> list[str]:
    """Returns the section of one suite."""
    lines = [*_wrapped((results / f"{suite.name}.md").read_text(encoding="utf-8").rstrip()), ""]
    lines += [*_wrapped(_seeds(suite, results)), ""] if suite.cases else []
    runs = [f"`{_short(name)}` ({count})" for name, count in record.get("revisions", {}).items()]
    lines += [*_wrapped(f"Commits of the runs: {', '.join(runs)}."), ""] if runs else []
    failures = [f"- {line}" for line in record.get("failures", [])]
    if failures:
        rest = ["- ..."] * (len(failures) > 10)
        lines += [f"{len(failures)} failed:", "", *failures[:10], *rest, ""]
    pictures, tables = (_files(results, suite, ending) for ending in ("png", "csv"))
    lines += [f"![{suite.title}]({name})\n" for name in pictures]
    links = ", ".join(f"[{name}]({name})" for name in tables)
    return lines + ([*_wrapped(f"As CSV: {links}."), ""] if links else [])


def _seeds(suite: Suite, results: Path) -> str:
    """Returns a sentence on a table's seeds, and on whether it is older than its suite."""
    seeds = sorted(claims.seed_rows(results, suite.name)["seed"].unique())
    shown = f"Seeds {seeds[0]} to {seeds[-1]}." if seeds else "Values by seed are not stored."
    planned = min(case.first_seed for case in suite.cases)
    if planned >= claims.NEW_SEEDS and not (seeds and seeds[0] >= claims.NEW_SEEDS):
        shown += f" The table is from older seeds; the suite now has those from {planned} on."
    return shown


def _files(results: Path, suite: Suite, ending: str) -> list[str]:
    """Returns the names of a suite's files, not of suites whose names begin like it."""
    return [
        path.name
        for path in sorted(results.glob(f"{suite.name}*.{ending}"))
        if path.stem == suite.name or path.stem.startswith(f"{suite.name}_")
    ]


def _records(results: Path) -> Records:
    records = [
        (suite, read_json(results / f"{suite.name}.json"))
        for suite in SUITES
        if (results / f"{suite.name}.json").exists()
    ]
    if not records:
        raise DataError(f"{results}: expected tables that --suite wrote, received none")
    return records


def page(results: Path) -> str:
    """Returns RESULTS.md.

    Raises:
        DataError: a folder without tables.
    """
    records = _records(results)
    notes = results / "NOTES.md"
    text = notes.read_text(encoding="utf-8") if notes.exists() else f"{CLAIMS}\n\n{COUNTS}\n"
    text = text.replace(CLAIMS, "\n".join(at_a_glance(claims.read())))
    text = text.replace(COUNTS, "\n".join(summary(records)))
    lines = ["# Results", "", _moved(text.strip(), "results", ""), ""]
    missing = [suite for suite in SUITES if not (results / f"{suite.name}.json").exists()]
    if missing:
        lines += ["## Suites that have not been run", ""]
        lines += [f"- `--suite={suite.name}`: {suite.title}" for suite in missing] + [""]
    return "\n".join(lines)


def paper_pages(results: Path) -> dict[str, str]:
    """Returns the pages of docs/results/ by name: every table of a paper, with its conditions."""
    records, rows = _records(results), claims.read()
    pages = {}
    for name, title in PAPERS.items():
        suites = [(suite, record) for suite, record in records if _paper(suite) == name]
        if not suites:
            continue
        lines = [f"# Results: {title}", ""]
        lines += [
            "This page has every table of the paper and of our own studies, with the command that",
            "makes each. [Results](../../RESULTS.md) has the summary and explains the verdicts.",
            "",
        ]
        noted = [claim for claim in rows if claim.paper == title and claim.note]
        lines += ["## Notes on the claims", ""] if noted else []
        for claim in noted:
            lines += _wrapped(f"**{claim.claim}** ({claim.where}): {claim.note}")
            lines.append("")
        for suite, record in suites:
            section = "\n".join(_section(suite, record, results))
            lines.append(_moved(section, "results", "docs/results"))
        pages[f"{name}.md"] = "\n".join(lines)
    return pages


def method_page(text: str, title: str) -> str:
    """Returns a page of docs/methods/ with the claims of its paper that have values."""
    rows = [claim for claim in claims.read() if claim.paper == title]
    table = at_a_glance(claim for claim in rows if not claim.verdict.startswith(claims.READING))
    return _PLACE.sub(lambda _: "\n".join(table[2:-1]) + "\n", text)


def _moved(text: str, old: str, new: str) -> str:
    """Returns a page of the folder `old` with its links relative to the folder `new`."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(old, match[1]))
        return f"]({posixpath.relpath(target, new or '.')})"

    return _LINK.sub(link, text)


def main(results: Path, target: Path) -> None:
    """Writes the pages from the tables in `results`; `target` is RESULTS.md."""
    docs = target.parent / "docs"
    write_text(target, page(results))
    for name, text in paper_pages(results).items():
        write_text(docs / "results" / name, text)
    for name, title in PAPERS.items():
        path = docs / "methods" / f"{name}.md"
        if path.exists():
            write_text(path, method_page(path.read_text(encoding="utf-8"), title))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("error: expected a results folder and a page to write")
    try:
        main(*map(Path, sys.argv[1:]))
    except (DataError, OSError) as error:
        sys.exit(f"error: {one_line(error)}")
