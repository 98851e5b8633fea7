"""Truth inference on published benchmarks: every method of the catalogue beside print, and seconds
and memory beside crowd-kit's.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from data import truth_inference as benchmarks
from neucrowd_tf.aggregation import AGGREGATORS, make_aggregator
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.csv_cells import number_cell, to_csv
from neucrowd_tf.io.files import write_text
from reproduction.curves import RESULTS
from reproduction.suite import Suite

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


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform != "darwin" else 1024**2)


def _ours(method: str, data: benchmarks.Benchmark, seed: int) -> np.ndarray:
    return make_aggregator(method, seed).fit(data.annotations).probas_


def _theirs(method: str, data: benchmarks.Benchmark, seed: int) -> np.ndarray:
    kind, arguments = SHARED[method]
    made = getattr(importlib.import_module("crowdkit.aggregation"), kind)(**arguments)
    made.fit(data.annotations.to_frame())
    crowd = data.annotations
    found = made.probas_.reindex(index=crowd.instance_names, columns=crowd.class_names)
    return np.asarray(found.fillna(0.0).to_numpy())


def measure(
    data_dir: Path, name: str, methods: tuple[str, ...], peer: bool, seed: int
) -> list[tuple[str, float, float, float]]:
    """Returns (method, accuracy, seconds, MB above what there was before) of one benchmark, in this
    process.
    """
    warnings.simplefilter("ignore")  # not converged, on small sets
    data = benchmarks.load(data_dir, name)
    run: Callable[..., np.ndarray] = _theirs if peer else _ours
    if peer:
        importlib.import_module("crowdkit.aggregation")
    before = _peak_mb()
    rows = []
    for method in methods:
        start = time.perf_counter()
        probas = run(method, data, seed)
        took = time.perf_counter() - start
        shown = f"{method} (crowd-kit)" if peer else method
        rows.append((shown, data.accuracy(probas), took, _peak_mb() - before))
    return rows


def _apart(*arguments: Any) -> list[tuple[str, float, float, float]]:
    """Runs `measure` in a process of its own, so that peaks are its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)


def rows_of(data_dir: Path, seed: int) -> list[list[str]]:
    """Returns the table's rows: each benchmark's, then the means."""
    printed = benchmarks.printed(data_dir)
    known = benchmarks.names(data_dir)
    peer = importlib.util.find_spec("crowdkit") is not None
    shared = tuple(SHARED)
    alone = tuple(name for name in METHODS if name not in SHARED)
    rows: list[list[str]] = []
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for name in known:
        measured = _apart(data_dir, name, shared, False, seed)
        measured += _apart(data_dir, name, shared, True, seed) if peer else []
        measured += _apart(data_dir, name, alone, False, seed)
        for method, accuracy, took, memory in measured:
            print_ = printed.get(method, {}).get(name, float("nan"))
            found.setdefault(method, []).append((accuracy, print_, took, memory))
            rows.append(_row(name, method, (accuracy, print_, took, memory)))
    for method, figures in found.items():
        accuracy, print_, took, _ = np.mean(figures, axis=0)
        most = max(figure[3] for figure in figures)
        rows.append(_row(f"mean of {len(figures)}", method, (accuracy, print_, took, most)))
    return rows


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
    """Writes the table as CSV and Markdown."""
    known = benchmarks.names(options.data_dir)
    if options.data_dir is None or not known:
        rows = [["", "", "", "", "", "", ABSENT]]
    else:
        rows = rows_of(options.data_dir, options.seed)
    folder = options.output_dir / RESULTS
    csv_path, page = folder / f"{suite.name}.csv", folder / f"{suite.name}.md"
    write_text(csv_path, to_csv(COLUMNS, rows))
    said = [
        f"## {suite.title}",
        "",
        f"`python run_experiment.py --suite={suite.name} --data_dir=DATA --output_dir=OUT`",
        "",
        suite.note,
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    # The means first: they are what is read.
    ordered = sorted(rows, key=lambda row: not row[0].startswith("mean"))
    said += ["| " + " | ".join(row) + " |" for row in ordered]
    write_text(page, "\n".join([*said, ""]))
    return [csv_path, page]


SUITES: tuple[Suite, ...] = (
    Suite(
        "truth_inference",
        "Truth inference, published benchmarks without features",
        (),
        analysis=write,
        note=(
            "Accuracy on the instances with a truth (a label tied at the top counts by its share);"
            " printed: EBCC's, IBCC's and BWA's from Li, Rubinstein and Cohn's notebooks, with 40"
            " restarts of EBCC. Seconds are of one process; memory is the peak above that of the"
            " data, of the methods of a row and those above it that share its process, and for the"
            " means the largest. crowd-kit ran in the same run; its MACE with one start, as all of"
            " its starts are the same."
        ),
    ),
)
