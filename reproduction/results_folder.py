"""What results/ says of its own files: README.md, files.csv and runs.json."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd

import baselines  # noqa: F401  (registers the rivals)
from neucrowd_tf.cli.runs.results import aligned
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.picking import mapped
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.tables.writing import to_csv
from reproduction.catalogue import SUITES
from reproduction.table import stored_table

# What made each file: by suite, and of all others.
RUNS = "runs.json"
STUDIES = "studies.csv"
TOLERANCE = "tolerance.csv"
FILES = "files.csv"
README = f"""\
# Results as files

Each CSV has a table or a figure, or the answer to a question;
[{FILES}]({FILES}) lists them. `<table>_seeds.csv` has a table's values by seed.
[{RUNS}]({RUNS}) has the command of each suite and the commits of its runs.
[{STUDIES}]({STUDIES}) has the command of every other file, and the commit that has the
command if its script was removed. [notes.csv](notes.csv) has conditions and single
figures of these files. Tables in long form have a row per cell.
"""
TOLERANCE_NOTE = """\
A new run of a row agrees with the stored seed within its table's tolerance in accuracy: the largest
distance of the repeats in [tolerance.csv](tolerance.csv) (other threads, without oneDNN, other
machines) of any package that a method of the table is from; 0.0 if no repeat differed."""


def files_csv(results: Path) -> str:
    """Returns a line for each file of results, with the question that it answers."""
    titles = {suite.name: suite.title for suite in SUITES}
    studies = pd.read_csv(results / STUDIES).drop_duplicates("file").set_index("file")["question"]
    rows = []
    for path in sorted(results.glob("*.csv")):
        if not path.stem.endswith("_seeds") and path.name not in (STUDIES, "notes.csv", FILES):
            suite = max(filter(path.stem.startswith, titles), key=len, default="")
            question = titles.get(suite, "")
            if path.stem != suite:
                question = studies.get(path.name, question)
            rows.append((path.name, question.partition(" (")[0]))
    return to_csv(("file", "question"), rows)


def readme(results: Path) -> str:
    """Returns results/README.md: what the files are, and how near a rerun should come."""
    if not (results / TOLERANCE).exists():
        return README
    lines = ["## Tolerance", "", *textwrap.wrap(TOLERANCE_NOTE, 100), "", *tolerances(results), ""]
    return "\n".join([README, *lines])


def tolerances(results: Path) -> list[str]:
    """Returns a table of how far repeated runs of a suite's packages lie apart."""
    repeats = pd.read_csv(results / TOLERANCE)
    points = 100 * repeats["instances_apart"] / repeats["test_instances"]
    apart = points.groupby(repeats["method"].map(_package)).max()
    groups: dict[str, list[str]] = {}
    for suite in SUITES:
        used = set[str]().union(*(map(_package, case.methods) for case in suite.cases))
        if used and len(stored_table(results / f"{suite.name}.csv")):
            measured = apart[apart.index.isin(used)]
            words = [f"`{name}` not measured" for name in sorted(used - {*measured.index})]
            if len(measured):
                words.insert(0, f"{measured.max():.1f}")
            groups.setdefault("; ".join(words), []).append(f"`{suite.name}`")
    rows = sorted(mapped(", ".join, groups).items())
    return aligned([["points", "tables"], *rows], "md", "")


def _package(method: str) -> str:
    """Returns the package of a row's method, as "neucrowd" below `neucrowd_tf.methods`."""
    module = registry.entry("method", method.rpartition("/")[2]).module
    return module.removeprefix("neucrowd_tf.methods.").partition(".")[0]


def collect_runs(results: Path) -> None:
    """Moves what a suite says of its runs, `<suite>.json`, into one file."""
    path = results / RUNS
    single = sorted({*results.glob("*.json")} - {path})
    if not single:
        return
    records = {}
    if path.exists():
        records = read_json(path)
    records |= {file.stem: read_json(file) for file in single}
    write_json(path, dict(sorted(records.items())))
    for file in single:
        file.unlink()
