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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from data import truth_inference as benchmarks
from neucrowd_tf.aggregation import AGGREGATORS, make_aggregator
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.tables.writing import number_cell
from reproduction.curves import write_rows
from reproduction.suite import Suite

# Accuracy, the printed one, seconds and MB.
Figures: TypeAlias = "tuple[float, float, float, float]"

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


def _ours(method: str, data: benchmarks.Benchmark, seed: int) -> np.ndarray:
    return make_aggregator(method, seed).fit(data.annotations).probas_


def _theirs(method: str, data: benchmarks.Benchmark, seed: int) -> np.ndarray:
    return crowd_kit(*SHARED[method], data)


def crowd_kit(kind: str, arguments: dict[str, Any], data: benchmarks.Benchmark) -> np.ndarray:
    """Returns what a class of crowd-kit's makes of a benchmark, `[N, C]`."""
    aggregator = getattr(importlib.import_module("crowdkit.aggregation"), kind)(**arguments)
    aggregator.fit(data.annotations.to_frame())
    crowd = data.annotations
    table = aggregator.probas_.reindex(index=crowd.instance_names, columns=crowd.class_names)
    return np.asarray(table.fillna(0.0).to_numpy())


def measure(
    data_dir: Path, methods: tuple[str, ...], peer: bool, seed: int, name: str
) -> list[tuple[str, float, float, float]]:
    """Returns (method, accuracy, seconds, additional MB) of one benchmark.

    The methods run in this process.
    """
    warnings.simplefilter("ignore")  # not converged, on small sets
    data = benchmarks.load(data_dir, name)
    run: Callable[..., np.ndarray] = _theirs if peer else _ours
    if peer:
        importlib.import_module("crowdkit.aggregation")
    rows = []
    for method in methods:
        _reset_peak()
        before = _memory("VmRSS")
        start = time.perf_counter()
        probas = run(method, data, seed)
        took = time.perf_counter() - start
        shown = f"{method} (crowd-kit)" if peer else method
        rows.append((shown, data.accuracy(probas), took, _memory("VmHWM") - before))
    return rows


def measured(data_dir: Path, seed: int) -> Iterator[tuple[str, str, Figures]]:
    """Yields benchmark, method and figures.

    Ours come from one process, crowd-kit's from another, one after the other.
    """
    printed = benchmarks.printed(data_dir)
    sides = [(METHODS, False)]
    if importlib.util.find_spec("crowdkit") is not None:
        sides.append((tuple(SHARED), True))
    names = benchmarks.names(data_dir)
    for methods, peer in sides:
        one = partial(measure, data_dir, methods, peer, seed)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for name, rows in zip(names, pool.imap(one, names), strict=True):
                for method, accuracy, took, memory in rows:
                    print_ = printed.get(method, {}).get(name, float("nan"))
                    yield name, method, (accuracy, print_, took, memory)


def table(figures: Sequence[tuple[str, str, Figures]]) -> list[list[str]]:
    """Returns the means over the benchmarks, of memory the largest, then each benchmark's rows."""
    by_method: dict[str, list[Figures]] = {}
    for _, method, one in figures:
        by_method.setdefault(method, []).append(one)
    rows = []
    for method, rows_of_method in by_method.items():
        accuracy, print_, took, _ = np.mean(rows_of_method, axis=0)
        most = max(one[3] for one in rows_of_method)
        rows.append(_row(f"mean of {len(rows_of_method)}", method, (accuracy, print_, took, most)))
    ordered = sorted(figures, key=lambda row: row[0])
    return rows + [_row(name, method, one) for name, method, one in ordered]


def _row(name: str, method: str, figures: tuple[float, ...]) -> list[str]:
    accuracy, print_, took, memory = figures
    cells = [accuracy, print_, accuracy - print_]
    return [
        name,
        method,
        *(number_cell(round(float(cell), 4)) for cell in cells),
        number_cell(round(float(took), 3)),
        number_cell(round(float(memory), 1)),
    ]


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes the table as CSV and Markdown, again after each benchmark."""
    if options.data_dir is None or not benchmarks.names(options.data_dir):
        return write_rows(suite, options, COLUMNS, [["", "", "", "", "", "", ABSENT]])
    figures: list[tuple[str, str, Figures]] = []
    for one in measured(options.data_dir, options.seed):
        if figures and one[0] != figures[-1][0]:
            write_rows(suite, options, COLUMNS, table(figures))
        figures.append(one)
    return write_rows(suite, options, COLUMNS, table(figures))
