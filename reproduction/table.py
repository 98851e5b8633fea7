"""From finished runs to a table: the published value, ours with its interval, and the verdict."""

from __future__ import annotations

import dataclasses
import math
import operator
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.cli.runs.results import NO_INTERVAL, aligned, bounds, compare
from neucrowd_tf.declare.picking import attributes_of, entries_of, mapped
from neucrowd_tf.declare.types import Axes, Fields
from neucrowd_tf.evaluation.intervals import Interval, mean_interval
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.run_files import FINISHED
from neucrowd_tf.io.tables.writing import number_cell, rounded_cell, to_csv
from neucrowd_tf.names import without
from reproduction import panels
from reproduction.collect import FinishedRun, absent_reason, row_runs
from reproduction.printed import Figure, why_absent
from reproduction.suite import Case, Suite
from reproduction.verdicts import NOT_TRAINED, kind_of, prediction_interval, value_verdict

COLUMNS = (
    *("dataset", "method", "metric", "published", "mean", "sd", "runs"),
    *("predicted_low", "predicted_high", "worst", "verdict"),
    *("gain", "gain_low", "gain_high", "gain_instances_low", "gain_instances_high"),
)
SEED_COLUMNS = ("dataset", "method", "metric", "seed", "fold", "value")
# Metrics whose smallest value is the worst; of others no worst seed is shown.
HIGHER = {"accuracy", "balanced_accuracy", "f1", "f1_positive", "auc", "last_round_accuracy"}
NOT_RUN = "not run"
NO_IDENTITIES = "not run: it needs annotator identities, which this dataset does not publish"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of a table.

    `values` has our values, one per run, and `runs` their seeds and folders. `gain` is the paired
    gain over the suite's baseline with its interval over seeds; `gain_instances` has the interval
    over seeds and instances, if all runs share one test set. `trained` is whether most runs beat
    their own copies after one training step.
    """

    dataset: str
    method: str
    metric: str
    published: Figure | None
    values: tuple[float, ...]
    folds: int | None = None
    reason: str = ""
    gain: Interval | None = None
    gain_instances: Interval | None = None
    runs: tuple[tuple[int, str], ...] = ()
    trained: bool = True

    @property
    def by_seed(self) -> tuple[float, ...]:
        """Our values, one per seed: means over the folds of a cross-validation."""
        if not self.runs:
            return self.values
        seeds = pd.Series(self.values).groupby([seed for seed, _ in self.runs], sort=False)
        return tuple(seeds.mean())

    @property
    def predicted(self) -> Interval:
        """The 95% prediction interval of the mean of as many runs as the paper averaged."""
        values = pd.Series(self.by_seed, dtype=float)
        ours = float(values.mean()), float(values.std()), len(values)
        return prediction_interval(*ours, self.published, kind=kind_of(self.metric))

    @property
    def worst(self) -> float:
        """The worst seed's value; NaN for a metric whose smallest value is not the worst."""
        if self.metric in HIGHER:
            return min(self.by_seed, default=math.nan)
        return math.nan

    @property
    def verdict(self) -> str:
        """What our runs say of the published value, or why nothing was run."""
        if not self.values:
            return why_absent(self.dataset) or self.reason or NOT_RUN
        if not self.trained:
            return NOT_TRAINED
        if self.published is None:
            return ""
        return value_verdict(self.published.mean, self.predicted, len(self.by_seed))

    def row(self) -> dict[str, str]:
        """Returns the cell as a row of the suite's CSV."""
        values = pd.Series(self.values, dtype=float)
        gain = self.gain or NO_INTERVAL
        numbers = {
            "published": (self.published or Figure(math.nan)).mean,
            "mean": values.mean(),
            "sd": values.std(),
            "worst": self.worst,
            "gain": gain.estimate,
            **bounds("predicted", self.predicted),
            **bounds("gain", gain),
            **bounds("gain_instances", self.gain_instances or NO_INTERVAL),
        }
        cells = mapped(rounded_cell, numbers)
        cells |= attributes_of(self, ("dataset", "method", "metric", "verdict"))
        return cells | {"runs": str(len(self.values))}


def _gain(
    suite: Suite, root: Path, case: Case, dataset: str, method: str
) -> tuple[Interval | None, Interval | None]:
    """Returns the paired gain in the first metric over the suite's baseline.

    The baseline has the same setting if it runs there, else none, but always the same data. The
    gain comes with its interval over seeds, and with that over seeds and instances.
    """
    data_options = _data_options(case)
    plain = [dataclasses.replace(case, setting="", hparams={}, options={})]
    if data_options:
        plain = [x for x in suite.cases if not x.hparams and _data_options(x) == data_options]
    metric = suite.metrics[0]
    ours = _by_run(row_runs(root, case, dataset, method), metric)
    baseline = suite.baseline_of(method)
    for source in (case, *plain):
        # The baseline with other settings is measured over itself, on the same data.
        if not baseline or (method == baseline and (source == case or case.options)):
            continue
        baseline_runs = _by_run(row_runs(root, source, dataset, baseline), metric)
        gain, wider = compare(ours, baseline_runs, metric, _ratio(case.folds))
        if not math.isnan(gain.estimate):
            return gain, None if wider is NO_INTERVAL else wider
    return None, None


def _data_options(case: Case) -> Fields:
    """Returns the options of a case that change its data."""
    return entries_of(case.options, without(case.options, ["curves"]))


def _by_run(runs: Iterable[FinishedRun], metric: str) -> dict[tuple[int, str], tuple[float, Path]]:
    values = {}
    for run in runs:
        value = run.metric(metric)
        if value is not None:
            values[run.seed, run.folder.name] = value, run.folder
    return values


def _ratio(folds: int | None) -> float:
    """Returns the ratio of test to training instances.

    Folds that share training instances widen an interval by it.
    """
    if folds is None:
        return 0.0
    return 1.0 / (folds - 1)


def cells(suite: Suite, root: Path, *, only_rows: bool = False) -> list[Cell]:
    """Returns a suite's table.

    Its own runs come first, then the published values of datasets that are not available.
    """
    table = []
    for case in suite.cases:
        for dataset, method in product(case.datasets, case.methods):
            name = case.row_name(method)
            runs = row_runs(root, case, dataset, method)
            reason = "" if runs else absent_reason(root, case, dataset, method)
            gains = _gain(suite, root, case, dataset, method)
            untrained = sum(run.read(FINISHED).get("trained") is False for run in runs)
            published = suite.figures.get((dataset, name), {})
            for metric in suite.metrics:
                values = _by_run(runs, metric)
                ours = tuple(value for value, _ in values.values())
                how = case.folds, reason, *gains, tuple(values), 2 * untrained <= len(runs)
                table.append(Cell(dataset, name, metric, published.get(metric), ours, *how))
                gains = None, None  # of the first metric alone
    rows = {(cell.dataset, cell.method) for cell in table}
    for (dataset, name), figures in () if only_rows else suite.figures.items():
        if (dataset, name) not in rows:
            for metric, figure in figures.items():
                table.append(Cell(dataset, name, metric, figure, (), reason=NO_IDENTITIES))
    return table


def stored_table(path: Path) -> pd.DataFrame:
    """Returns a suite's table, or that by seed, as text; empty without one or for another kind."""
    if path.exists():
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if {*SEED_COLUMNS[:3]} <= {*table}:
            return table
    return pd.DataFrame()


def write_csv(path: Path, table: Iterable[Cell]) -> None:
    """Writes a suite's table as CSV."""
    write_text(path, to_csv(COLUMNS, map(operator.itemgetter(*COLUMNS), map(Cell.row, table))))


def write_seeds(path: Path, table: Iterable[Cell]) -> None:
    """Writes our values, one line per run and metric, so that a single run can be checked."""
    write_text(path, to_csv(SEED_COLUMNS, seed_rows(table)))


def seed_rows(table: Iterable[Cell]) -> list[list[str]]:
    """Returns the lines of our values, a line per run and metric."""
    lines: list[list[str]] = []
    for cell in table:
        for (seed, folder), value in zip(cell.runs, cell.values, strict=True):
            fold = folder.partition("fold-")[2]
            names = (cell.dataset, cell.method, cell.metric)
            lines.append([*names, str(seed), fold, number_cell(value)])
    return lines


def markdown(suite: Suite, rows: Sequence[Mapping[str, str]], command: str) -> str:
    """Returns a suite's table as Markdown: one row a dataset and method, one column a metric.

    Args:
        suite: the table's.
        rows: of its CSV.
        command: that makes it.
    """
    lines = [f"## {suite.title}", "", f"`{command}`", ""]
    if suite.note:
        lines += [*textwrap.wrap(suite.note, 100, break_long_words=False), ""]
    return "\n".join([*lines, *aligned(rows_shown(suite, rows), "md", ""), ""] if rows else lines)


def rows_shown(suite: Suite, rows: Iterable[Mapping[str, str]]) -> list[list[str]]:
    """Returns the head and the rows of a suite's table, by the rows of its CSV, as it is shown."""
    rows = list(rows)
    compared = {row["metric"] for row in rows if row["published"]}
    head = ["dataset", "method"]
    for metric in suite.metrics:
        ours = f"{metric}, ours [95% prediction interval] (runs)"
        if metric in compared:
            head += [f"{metric}, published", ours, "verdict"]
        else:
            head += [ours]
    if suite.baseline:
        head.append(f"gain over {_over(suite)} [95% interval]")
    lines: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for row in rows:
        lines.setdefault((row["dataset"], row["method"]), {})[row["metric"]] = row
    table = [head]
    for key, by_metric in lines.items():
        line = [*key]
        for metric in suite.metrics:
            row = by_metric.get(metric, {})
            ours = _shown(row, "mean", "predicted")
            if ours:
                ours += f" ({row['runs']})"
            verdict = row.get("verdict", "")
            if metric in compared:
                line += [_shown(row, "published", ""), ours, verdict]
            else:
                line.append(ours or verdict)
        if suite.baseline:
            row = by_metric.get(suite.metrics[0], {})
            # Over seeds and instances, or else over seeds.
            interval = "gain_instances" if row.get("gain_instances_low") else "gain"
            line.append(_shown(row, "gain", interval, "+"))
        table.append(line)
    return table


def _over(suite: Suite) -> str:
    """Returns the baseline in words."""
    first, *layers = suite.baseline.split()
    if layers:
        return f"its own layer ({', '.join(layers)}, otherwise {first})"
    return first


def _shown(row: Mapping[str, str], mean: str, interval: str, sign: str = "") -> str:
    """Returns "0.850 [0.830, 0.870]"; no interval where one run has none, nothing without runs."""
    names = (mean, f"{interval}_low", f"{interval}_high")
    texts = [f"{float(row[name]):{sign}.3f}" for name in names if row.get(name)]
    if len(texts) < 3:
        return "".join(texts[:1])
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


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

    def draw_rows(axis: Axes, name: str) -> None:
        for y, cell in enumerate(rows[name]):
            ours = mean_interval(cell.values, test_train_ratio=_ratio(cell.folds))
            mean, low, high = np.nan_to_num(dataclasses.astuple(ours), nan=ours.estimate)
            axis.plot(cell.values, [y] * len(cell.values), ".", color="tab:gray", markersize=3)
            errors = [[mean - low], [high - mean]]
            axis.errorbar(mean, y, xerr=errors, fmt="o", capsize=2, color="tab:blue")
            if cell.published is not None:
                axis.plot(cell.published.mean, y, "x", color="tab:red")
        axis.set_yticks(range(len(rows[name])), [cell.method for cell in rows[name]], fontsize=7)

    title = f"{suite.title} (ours with 95% interval; x: published)"
    title = textwrap.fill(title, 55 * len(rows) or 1)
    return panels.draw_panels(path, list(rows), draw_rows, title, height=height)
