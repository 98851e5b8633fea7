"""Today's methods and ours on the same splits, base network and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.evaluation.intervals import Interval, crossed_interval, mean_interval
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.tables.writing import number_cell
from reproduction.collect import FinishedRun, suite_runs
from reproduction.curves import write_rows
from reproduction.suite import Suite

RANKS = (
    *("dataset", "rank", "method", "accuracy", "low", "high", "behind", "behind_low"),
    *("behind_high", "seeds"),
)


def hits(run: FinishedRun) -> pd.Series:
    """Returns, by task of the test split, whether a run was right."""
    table = pd.read_csv(run.folder / "predictions.csv", dtype=str).set_index("task")
    return table["label"] == table["predicted"]


def interval_of(runs: Sequence[pd.Series]) -> Interval:
    """Returns the mean over runs and test instances, with its interval.

    The interval is over both if all runs have the same test split, otherwise over runs.
    """
    if all(one.index.equals(runs[0].index) for one in runs):
        return crossed_interval(np.stack([one.to_numpy(float) for one in runs]))
    return mean_interval([one.mean() for one in runs])


def ranked(suite: Suite, root: Path) -> list[list[str]]:
    """Returns each dataset's methods from the best on.

    A row has the accuracy, and how far it is behind the first method on the seeds that both have.
    """
    runs_by_method: dict[str, dict[str, dict[int, pd.Series]]] = {}
    for run in suite_runs(suite, root):
        row = runs_by_method.setdefault(run.dataset, {}).setdefault(
            run.case.row_name(run.method), {}
        )
        row[run.seed] = hits(run).astype(float)
    rows = []
    for dataset, methods in runs_by_method.items():
        most = max(map(len, methods.values()))
        intervals = {name: interval_of(list(runs.values())) for name, runs in methods.items()}
        # A few lucky seeds are no first place.
        order = sorted(methods, key=lambda name: -intervals[name].estimate)
        first = next(name for name in order if len(methods[name]) == most)
        for rank, name in enumerate(order, start=1):
            both = sorted(set(methods[first]) & set(methods[name]))
            behind = [methods[first][seed] - methods[name][seed] for seed in both]
            cells = [dataclasses.astuple(intervals[name])]
            cells.append(dataclasses.astuple(interval_of(behind)) if behind else (np.nan,) * 3)
            shown = [number_cell(round(float(cell), 4)) for three in cells for cell in three]
            rows.append([dataset, str(rank), name, *shown, str(len(methods[name]))])
    return rows


def write_ranks(suite: Suite, options: Options) -> list[Path]:
    """Writes the ranks beside the suite's table."""
    note = (
        "95 % intervals over seeds and test instances together where all seeds share one test"
        " split, else over seeds. behind: how far behind the first of those with all seeds, on the"
        " same seeds and instances; an interval above 0 is a difference."
    )
    rows, title = ranked(suite, options.output_dir), "Rivals: ranks by accuracy"
    return write_rows(suite, options, RANKS, rows, name="_ranks", title=title, note=note)
