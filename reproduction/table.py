"""From finished runs to a table: the paper's figure, ours with its interval, and what that says."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf.evaluation.intervals import Interval, mean_interval
from neucrowd_tf.harness.results import NO_INTERVAL, aligned, compare
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from reproduction import panels
from reproduction.collect import FinishedRun, absent_reason, row_runs
from reproduction.printed import ELSEWHERE, PRIVATE
from reproduction.suite import Case, Suite
from reproduction.verdicts import prediction_interval, value_verdict

COLUMNS = (
    *("dataset", "method", "metric", "paper", "mean", "sd", "low", "high", "runs", "difference"),
    *("status", "one_run_low", "one_run_high", "worst", "verdict"),
    *("gain", "gain_low", "gain_high", "gain_instances_low", "gain_instances_high"),
)
SEED_COLUMNS = ("dataset", "method", "metric", "seed", "fold", "value")
# Metrics whose smallest value is the worst; of others no worst seed is shown.
HIGHER = {"accuracy", "balanced_accuracy", "f1", "f1_positive", "auc", "last_round_accuracy"}
REPRODUCED, ABOVE, BELOW = "reproduced within the interval", "above", "below"
PRIVATE_DATA = "not reproduced: private data"
PUBLIC_DATA = "not reproduced: public data, not in data_dir"
NO_FIGURE, NOT_RUN = "the paper prints none", "not run"
NO_IDENTITIES = "not run: it needs annotator identities, which this dataset does not publish"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of a table.

    `values` has our values, one per run, and `runs` their seeds and folders. `gain` is the paired
    gain over the suite's baseline with its interval over seeds; `gain_instances` has the interval
    over seeds and instances, if all runs share one test set.
    """

    dataset: str
    method: str
    metric: str
    paper: float | None
    values: tuple[float, ...]
    folds: int | None = None
    reason: str = ""
    gain: Interval | None = None
    gain_instances: Interval | None = None
    runs: tuple[tuple[int, str], ...] = ()

    @property
    def interval(self) -> tuple[float, float, float]:
        """Mean and 95 % interval of ours; NaN without runs."""
        if not self.values:
            return math.nan, math.nan, math.nan
        interval = mean_interval(self.values, test_train_ratio=_ratio(self.folds))
        return interval.estimate, interval.low, interval.high

    @property
    def by_seed(self) -> tuple[float, ...]:
        """Our values, one per seed: means over the folds of a cross-validation."""
        if not self.runs:
            return self.values
        seeds = pd.Series(self.values).groupby([seed for seed, _ in self.runs], sort=False)
        return tuple(seeds.mean())

    @property
    def one_run(self) -> Interval:
        """The 95% prediction interval of one more seed."""
        values = pd.Series(self.by_seed, dtype=float)
        return prediction_interval(float(values.mean()), float(values.std()), len(values))

    @property
    def worst(self) -> float | None:
        """The worst seed's value; None for a metric whose smallest value is not the worst."""
        return min(self.by_seed, default=None) if self.metric in HIGHER else None

    @property
    def verdict(self) -> str:
        """What `one_run` says of the published value as that of a single run; "" without both."""
        if not self.by_seed or self.paper is None:
            return ""
        return value_verdict(self.paper, self.one_run, len(self.by_seed))

    @property
    def status(self) -> str:
        """What the comparison with the paper's figure says."""
        if not self.values:
            if self.dataset in PRIVATE:
                return PRIVATE_DATA
            return PUBLIC_DATA if self.dataset in ELSEWHERE else (self.reason or NOT_RUN)
        if self.paper is None:
            return NO_FIGURE
        mean, low, high = self.interval
        if low <= self.paper <= high:
            return REPRODUCED
        # Equal runs (a method without randomness) have no width; half of the last printed digit is
        # then the tolerance.
        if abs(mean - self.paper) <= 5e-4:
            return REPRODUCED
        return ABOVE if mean > self.paper else BELOW

    def row(self) -> dict[str, str]:
        """Returns the cell as a row of the suite's CSV."""
        mean, low, high = self.interval
        gain, wider = self.gain or NO_INTERVAL, self.gain_instances or NO_INTERVAL
        numbers = {
            "paper": self.paper,
            "mean": mean,
            "sd": float(pd.Series(self.values, dtype=float).std()),
            "low": low,
            "high": high,
            "difference": None if self.paper is None else mean - self.paper,
            "one_run_low": self.one_run.low,
            "one_run_high": self.one_run.high,
            "worst": self.worst,
            "gain": gain.estimate,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "gain_instances_low": wider.low,
            "gain_instances_high": wider.high,
        }
        shown = {k: number_cell(v if v is None else round(v, 6)) for k, v in numbers.items()}
        texts = {name: getattr(self, name) for name in ("dataset", "method", "metric", "status")}
        return texts | shown | {"runs": str(len(self.values)), "verdict": self.verdict}


def _gain(
    suite: Suite, root: Path, case: Case, dataset: str, method: str
) -> tuple[Interval | None, Interval | None]:
    """Returns the paired gain in the first metric over the suite's baseline.

    The baseline has the same setting if it runs there, else none, but always the same data. The
    gain comes with its interval over seeds, and with that over seeds and instances.
    """
    plain = [dataclasses.replace(case, setting="", hparams={}, options={})]
    if _data_options(case):
        plain = [
            x for x in suite.cases if not x.hparams and _data_options(x) == _data_options(case)
        ]
    metric = suite.metrics[0]
    mine = _by_run(row_runs(root, case, dataset, method), metric)
    baseline = suite.baseline_of(method)
    for place in (case, *plain):
        # The baseline with other settings is measured over itself, on the same data.
        if not baseline or (method == baseline and (place == case or case.options)):
            continue
        theirs = _by_run(row_runs(root, place, dataset, baseline), metric)
        gain, wider = compare(mine, theirs, metric, _ratio(case.folds))
        if not math.isnan(gain.estimate):
            return gain, None if wider is NO_INTERVAL else wider
    return None, None


def _data_options(case: Case) -> dict[str, Any]:
    """Returns the options of a case that change its data."""
    return {name: value for name, value in case.options.items() if name != "curves"}


def _by_run(runs: Iterable[FinishedRun], metric: str) -> dict[tuple[int, str], tuple[float, Path]]:
    return {
        (run.seed, run.folder.name): (value, run.folder)
        for run in runs
        if (value := run.metric(metric)) is not None
    }


def _ratio(folds: int | None) -> float:
    """Returns the ratio of test to training instances.

    Folds that share training instances widen an interval by it.
    """
    return 0.0 if folds is None else 1.0 / (folds - 1)


def cells(suite: Suite, root: Path, *, only_rows: bool = False) -> list[Cell]:
    """Returns a suite's table.

    Its own runs come first, then the published values of datasets that are not available.
    """
    table: list[Cell] = []
    for case in suite.cases:
        for dataset, method in product(case.datasets, case.methods):
            name = case.row_name(method)
            runs = row_runs(root, case, dataset, method)
            reason = "" if runs else absent_reason(root, case, dataset, method)
            gains = _gain(suite, root, case, dataset, method)
            for metric in suite.metrics:
                values = _by_run(runs, metric)
                paper = suite.figures.get((dataset, name), {}).get(metric, (None,))[0]
                ours, places = tuple(v for v, _ in values.values()), tuple(values)
                how = case.folds, reason, *gains, places
                table.append(Cell(dataset, name, metric, paper, ours, *how))
                gains = None, None  # of the first metric alone
    rows = {(cell.dataset, cell.method) for cell in table}
    for (dataset, name), printed in () if only_rows else suite.figures.items():
        if (dataset, name) not in rows:
            reason = "" if dataset in PRIVATE | ELSEWHERE else NO_IDENTITIES
            table += [
                Cell(dataset, name, metric, value, (), None, reason)
                for metric, (value, _) in printed.items()
            ]
    return table


def write_csv(path: Path, table: Iterable[Cell]) -> None:
    """Writes a suite's table as CSV."""
    rows = [cell.row() for cell in table]
    write_text(path, to_csv(COLUMNS, [[row[name] for name in COLUMNS] for row in rows]))


def write_seeds(path: Path, table: Iterable[Cell]) -> None:
    """Writes our values, one line per run and metric, so that a single run can be checked."""
    rows = []
    for cell in table:
        for (seed, folder), value in zip(cell.runs, cell.values, strict=True):
            fold = folder.partition("fold-")[2]
            place = [cell.dataset, cell.method, cell.metric, str(seed), fold]
            rows.append([*place, number_cell(value)])
    write_text(path, to_csv(SEED_COLUMNS, rows))


def markdown(suite: Suite, table: list[Cell], command: str) -> str:
    """Returns a suite's table as Markdown: one row a dataset and method, one column a metric."""
    lines = [f"## {suite.title}", "", f"`{command}`", ""]
    lines += [*textwrap.wrap(suite.note, 100, break_long_words=False), ""] if suite.note else []
    return "\n".join([*lines, *aligned(rows_shown(suite, table), "md", ""), ""] if table else lines)


def rows_shown(suite: Suite, table: list[Cell]) -> list[list[str]]:
    """Returns the head and the rows of a suite's table as it is shown."""
    printed = {cell.metric for cell in table if cell.paper is not None}
    head = ["dataset", "method"]
    for metric in suite.metrics:
        ours = f"{metric}, ours [95 % interval] (runs)"
        one_run = "one run of ours [95% prediction interval] (worst seed)"
        compared = [f"{metric}, paper", ours, "outcome", one_run, "verdict"]
        head += compared if metric in printed else [ours]
    if suite.baseline:
        head.append(
            f"{suite.metrics[0]}, gain over {_over(suite)} [95 % interval over seeds] {{over"
            " seeds and instances}"
        )
    lines = [head]
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in table:
        rows.setdefault((cell.dataset, cell.method), {})[cell.metric] = cell
    for (dataset, method), cells_ in rows.items():
        items = [dataset, method]
        for metric in suite.metrics:
            cell = cells_.get(metric) or Cell(dataset, method, metric, None, ())
            if metric in printed:
                paper = "" if cell.paper is None else f"{cell.paper:.3f}"
                items += [paper, _ours(cell), "" if cell.status == NO_FIGURE else cell.status]
                items += [_one_run(cell), cell.verdict]
            else:
                items.append(_ours(cell) or cell.reason)
        if suite.baseline:
            first = cells_.get(suite.metrics[0])
            items.append("" if first is None else _shown_gain(first))
        lines.append(items)
    return lines


def _over(suite: Suite) -> str:
    """Returns the baseline in words."""
    first, *others = suite.baseline.split()
    return f"its own layer ({', '.join(others)}, otherwise {first})" if others else first


def _ours(cell: Cell) -> str:
    mean, low, high = cell.interval
    return f"{mean:.3f}{_between(low, high)} ({len(cell.values)})" if cell.values else ""


def _one_run(cell: Cell) -> str:
    one, worst = cell.one_run, cell.worst
    if math.isnan(one.low):
        return ""
    shown = _between(one.low, one.high).strip()
    return shown if worst is None else f"{shown} ({worst:.3f})"


def _shown_gain(cell: Cell) -> str:
    gain, wider = cell.gain, cell.gain_instances
    if gain is None:
        return ""
    shown = f"{gain.estimate:+.3f}{_between(gain.low, gain.high, '+')}"
    return shown if wider is None else f"{shown} {{{wider.low:+.3f}, {wider.high:+.3f}}}"


def _between(low: float, high: float, sign: str = "") -> str:
    """Returns an interval; nothing where one run has none."""
    return "" if math.isnan(low) else f" [{low:{sign}.3f}, {high:{sign}.3f}]"


def draw(suite: Suite, table: list[Cell], path: Path) -> list[Path]:
    """Draws the suite's first metric and returns the picture.

    Our values have intervals; published values are crosses. The result is empty without runs or
    without matplotlib.
    """
    rows: dict[str, list[Cell]] = {}
    for cell in reversed(table):
        if cell.values and cell.metric == suite.metrics[0]:
            rows.setdefault(f"{cell.dataset}: {cell.metric}", []).append(cell)
    height = 1.2 + 0.26 * max(map(len, rows.values()), default=0)

    def draw_rows(axis: Any, name: str) -> None:
        for place, cell in enumerate(rows[name]):
            mean, low, high = np.nan_to_num(cell.interval, nan=cell.interval[0])
            axis.plot(cell.values, [place] * len(cell.values), ".", color="tab:gray", markersize=3)
            errors = [[mean - low], [high - mean]]
            axis.errorbar(mean, place, xerr=errors, fmt="o", capsize=2, color="tab:blue")
            if cell.paper is not None:
                axis.plot(cell.paper, place, "x", color="tab:red")
        axis.set_yticks(range(len(rows[name])), [cell.method for cell in rows[name]], fontsize=7)

    title = textwrap.fill(f"{suite.title} (ours with 95 % interval; x: paper)", 55 * len(rows) or 1)
    return panels.draw_panels(path, list(rows), draw_rows, title, height=height)
