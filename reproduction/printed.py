"""The papers' published values, each once.

`TABLES[table][(dataset, method)]` maps a metric to a `Figure`.

Datasets and methods have this project's names; a dataset that nobody published keeps the paper's.
Settings of a table (k, d) precede the method as "k=3/". Accuracies are shares, not per cent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple


class Figure(NamedTuple):
    """A published value: the mean of `runs` runs, with their deviation where it is published."""

    mean: float
    deviation: float | None = None
    runs: int = 1


Table = dict[tuple[str, str], dict[str, Figure]]
# Datasets that the papers describe and nobody published.
PRIVATE = frozenset({"pre_k", "oral", "class", "emotion"})
# Published, but not part of the usual data folder: a table shows them when a user has them.
ELSEWHERE = frozenset({"cifar10h", "cifar10h_lt", "gisette_syn"})
PRIVATE_DATA = "private data"
ABSENT_DATA = "data not available"


def why_absent(dataset: str) -> str:
    """Returns why a dataset is not in the usual data folder; "" for one that is."""
    if dataset in PRIVATE:
        return PRIVATE_DATA
    if dataset in ELSEWHERE:
        return ABSENT_DATA
    return ""


def _lines(file: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yields the parts of the heading, the name and the cells of each line."""
    heading: list[str] = []
    for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]").split(" | ")
        elif line and not line.startswith("#"):
            name, *cells = line.split()
            yield heading, name, cells


def _figure(cell: str, runs: int) -> Figure:
    if "/" not in cell:
        return Figure(float(cell), None, runs)
    mean, deviation = cell.split("/")
    return Figure(float(mean) / 100, float(deviation) / 100, runs)


def _tables() -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for (name, datasets, metrics, runs), method, cells in _lines("printed_tables.txt"):
        table = tables.setdefault(name, {})
        columns = product(datasets.split(), metrics.split())
        for (dataset, metric), cell in zip(columns, cells, strict=True):
            if cell != "-":
                table.setdefault((dataset, method), {})[metric] = _figure(cell, int(runs))
    # Syn with the authors' dependent errors has the published values of Syn.
    dependent = tables.setdefault("neucrowd_syn", {})
    published = tables["neucrowd_table2"] | tables["neucrowd_table3"]
    for (dataset, method), figures in published.items():
        if dataset.startswith("syn"):
            dependent[f"{dataset}_dependent", method] = figures
    return tables


def _datasets() -> dict[str, dict[str, dict[str, float]]]:
    papers: dict[str, dict[str, dict[str, float]]] = {}
    for (paper, statistics), dataset, cells in _lines("printed_datasets.txt"):
        numbers = [float(cell) if "." in cell else int(cell) for cell in cells]
        papers.setdefault(paper, {})[dataset] = dict(zip(statistics.split(), numbers, strict=True))
    return papers


TABLES = _tables()
DATASETS = _datasets()
