"""Truth inference on published benchmarks.

Every method of the catalogue is compared with the published value; seconds and memory are
compared with crowd-kit's.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import multiprocessing
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from data import truth_inference as benchmarks
from neucrowd_tf.aggregation import AGGREGATORS, make_aggregator
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.tables.writing import number_cell
from reproduction.curves import write_rows
from reproduction.suite import Suite

# Benchmark, method, accuracy, the printed one, seconds and additional MB.
Row: TypeAlias = "tuple[str, str, float, float, float, float]"

# Without gold labels it is the majority vote.
METHODS = tuple(name for name in AGGREGATORS if name != "gold_majority_vote")
# Timed here and in crowd-kit; its GLAD, which takes minutes, is in benchmarks/aggregation.py. Its
# MACE begins each of its restarts with the same numbers, so that one does.
SHARED: dict[str, tuple[str, dict[str, Any]]] = {
    "majority_vote": ("MajorityVote", {}),
    "dawid_skene": ("DawidSkene", {}),
    "mace": ("MACE", {"n_restarts": 1}),
}
COLUMNS = ("dataset", "method", "accuracy", "printed", "difference", "seconds", "peak_memory_mb")
ABSENT = "not run: no truth_inference folder in data_dir"


def _memory(key: str) -> float:
    """Returns a line of this process's memory in MB.

    The lines are its peak since the last reset (VmHWM), or its present size (VmRSS). The value is
    NaN if the system has no such file.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return float("nan")
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith(key)), float("nan"))


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def crowd_kit(kind: str, arguments: dict[str, Any], data: benchmarks.Benchmark) -> np.ndarray:
    """Returns what a class of crowd-kit's makes of a benchmark, `[N, C]`."""
    aggregator = getattr(importlib.import_module("crowdkit.aggregation"), kind)(**arguments)
    aggregator.fit(data.annotations.to_frame())
    crowd = data.annotations
    table = aggregator.probas_.reindex(index=crowd.instance_names, columns=crowd.class_names)
    return np.asarray(table.fillna(0.0).to_numpy())


def measure(
    data_dir: Path, methods: tuple[str, ...], peer: bool, seed: int, name: str
) -> list[Row]:
    """Returns the rows of one benchmark's methods, which run in this process."""
    warnings.simplefilter("ignore")  # not converged, on small sets
    data, published = benchmarks.load(data_dir, name), benchmarks.printed(data_dir)
    if peer:
        importlib.import_module("crowdkit.aggregation")
    rows = []
    for method in methods:
        _reset_peak()
        before = _memory("VmRSS")
        start = time.perf_counter()
        if peer:
            probas = crowd_kit(*SHARED[method], data)
        else:
            probas = make_aggregator(method, seed).fit(data.annotations).probas_
        took = time.perf_counter() - start
        shown = f"{method} (crowd-kit)" if peer else method
        printed = published.get(shown, {}).get(name, float("nan"))
        memory = _memory("VmHWM") - before
        rows.append((name, shown, data.accuracy(probas), printed, took, memory))
    return rows


def measured(data_dir: Path, seed: int) -> Iterator[list[Row]]:
    """Yields the rows of each benchmark.

    Ours come from one process, crowd-kit's from another, one after the other.
    """
    sides = [(METHODS, False)]
    if importlib.util.find_spec("crowdkit") is not None:
        sides.append((tuple(SHARED), True))
    for methods, peer in sides:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            one = partial(measure, data_dir, methods, peer, seed)
            yield from pool.imap(one, benchmarks.names(data_dir))


def _mean(values: Any) -> float:
    return float(values.mean(skipna=False))


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Returns the means over the benchmarks, of memory the largest, then each benchmark's rows."""
    numbers = ["accuracy", "printed", "seconds", "memory"]
    frame = pd.DataFrame(rows, columns=["dataset", "method", *numbers])
    methods = frame.groupby("method", sort=False)
    means = methods[numbers].agg(_mean).assign(memory=methods["memory"].max())
    means.insert(0, "dataset", [f"mean of {size}" for size in methods.size()])
    every = pd.concat([means.reset_index(), frame.sort_values("dataset", kind="stable")])
    every.insert(4, "difference", every["accuracy"] - every["printed"])
    digits = dict(zip(COLUMNS[2:], (4, 4, 4, 3, 1), strict=True))
    every = every.rename(columns={"memory": COLUMNS[-1]})
    return [
        [row["dataset"], row["method"]]
        + [number_cell(round(float(row[name]), places)) for name, places in digits.items()]
        for row in every.to_dict("records")
    ]


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes the table as CSV and Markdown, again after each benchmark."""
    if options.data_dir is None or not benchmarks.names(options.data_dir):
        return write_rows(suite, options, COLUMNS, [["", "", "", "", "", "", ABSENT]])
    rows: list[Row] = []
    files: list[Path] = []
    for more in measured(options.data_dir, options.seed):
        rows += more
        files = write_rows(suite, options, COLUMNS, table(rows))
    return files
