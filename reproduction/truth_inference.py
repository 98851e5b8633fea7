"""Truth inference on published benchmarks: every method of the catalogue, with published values."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from data import truth_inference as benchmarks
from neucrowd_tf.aggregation.catalogue import AGGREGATORS, make_aggregator
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.tables.writing import number_cell
from neucrowd_tf.names import without
from reproduction.panels import write_rows
from reproduction.suite import Suite

# Without gold labels it is the majority vote.
METHODS = tuple(without(AGGREGATORS, ["gold_majority_vote"]))
COLUMNS = ("dataset", "method", "accuracy", "published", "difference", "seconds")
ABSENT = "not run: no truth_inference folder in data_dir"


def measured(data_dir: Path, name: str, seed: int) -> Iterator[Fields]:
    """Yields the row of each method on one benchmark."""
    data = benchmarks.load(data_dir, name)
    published = benchmarks.printed(data_dir)
    for method in METHODS:
        start = time.perf_counter()
        probas = make_aggregator(method, seed).fit(data.annotations).probas_
        seconds = time.perf_counter() - start
        accuracy = data.accuracy(probas)
        printed = published.get(method, {}).get(name, math.nan)
        values = (name, method, accuracy, printed, accuracy - printed, seconds)
        yield dict(zip(COLUMNS, values, strict=True))


def table(rows: Sequence[Fields]) -> list[list[str]]:
    """Returns the means over the benchmarks, then each benchmark's rows."""
    frame = pd.DataFrame(rows)
    size = frame["dataset"].nunique()
    sums = frame.groupby("method", sort=False)[list(COLUMNS[2:])].sum(min_count=size)
    means = (sums / size).reset_index().assign(dataset=f"mean of {size}")
    lines = []
    for row in pd.concat([means, frame]).to_dict("records"):
        figures = [number_cell(round(row[name], 4)) for name in COLUMNS[2:]]
        lines.append([row["dataset"], row["method"], *figures])
    return lines


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes the table as CSV and Markdown, again after each benchmark."""
    warnings.simplefilter("ignore")  # not converged, on small sets
    rows: list[Fields] = []
    names = benchmarks.names(options.data_dir)
    if not names:
        return write_rows(suite, options, COLUMNS, [["", "", "", "", "", ABSENT]])
    for name in names:
        rows += measured(Path(options.data_dir or ""), name, options.seed)
        files = write_rows(suite, options, COLUMNS, table(rows))
    return files
