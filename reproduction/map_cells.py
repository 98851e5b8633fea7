"""Cells of maps: the gain over the best simple rival at one place of a grid, and its file."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from neucrowd_tf.cli.runs.results import NO_INTERVAL
from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.types import Floats, Integers
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.influence import instance_values
from neucrowd_tf.evaluation.intervals import Interval, mean_interval
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.io.run_files import PREDICTIONS
from neucrowd_tf.io.tables.writing import rounded_cell
from neucrowd_tf.names import without
from reproduction.collect import FinishedRun, row_runs
from reproduction.suite import Case, Suite
from reproduction.table import stored_table

PREFIX = "map_"
# The setting of a network after one step, which is compared with the same network trained.
CONTROL = "one step"
# Each seed draws other instances under the same names.
REDRAWN = ("syn1_dependent",)
# Before these columns stand the dataset and the axes. Values and gains are of `metric`, the first
# of its suite, which decides; AUC stands beside it.
COLUMNS = (
    *("method", "rival", "metric", "runs", "asked"),
    *("value", "value_of_rival", "gain", "gain_low", "gain_high"),
    *("auc", "auc_of_rival", "auc_gain", "auc_gain_low", "auc_gain_high"),
)
CONFIDENCE = 0.95
Row = Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """The gain of a method in one cell.

    Attributes:
        place: the dataset and the value of each axis, by name.
        method: of the map, or an ablation or control of it.
        runs, asked: how many runs there are, and how many its suite asks for.
        gain: in the metric that decides.
        auc_gain: NaN without AUC.
    """

    place: Mapping[str, str]
    method: str
    runs: int
    asked: int
    gain: Interval
    auc_gain: float

    @classmethod
    def of(cls, row: Row) -> Cell:
        """Returns the cell of a row of a map's CSV."""
        names = ("gain", "gain_low", "gain_high", "auc_gain")
        *gain, auc_gain = (float(row[name] or "nan") for name in names)
        counts = int(row["runs"]), int(row["asked"])
        return cls(place_of(row), row["method"], *counts, Interval(*gain), auc_gain)

    @property
    def is_complete(self) -> bool:
        """Whether there are as many runs as asked for."""
        return self.runs >= self.asked

    @property
    def outcome(self) -> int:
        """1 if the gain's interval is above 0, -1 if it is below, otherwise 0."""
        return int(self.gain.low > 0) - int(self.gain.high < 0)


def place_of(row: Row) -> dict[str, str]:
    """Returns the dataset and the value of each axis of a row."""
    return entries_of(row, without(row, COLUMNS))


def split_setting(setting: str) -> tuple[dict[str, str], str]:
    """Returns a cell's value on each axis, and what its setting says besides ("pixels")."""
    place = {}
    others = []
    for text in setting.split(","):
        axis, is_axis, value = text.partition("=")
        if is_axis:
            place[axis] = value
        else:
            others.append(text)
    return place, ",".join(others)


def maps_of(suites: Iterable[Suite]) -> list[Suite]:
    """Returns those suites that are maps."""
    return [suite for suite in suites if suite.name.startswith(PREFIX)]


def places(suite: Suite) -> list[dict[str, str]]:
    """Returns the dataset and the axes' values of each cell: numbers rise, texts come last."""
    distinct: list[dict[str, str]] = []
    for case in suite.cases:
        axes, _ = split_setting(case.setting)
        for dataset in case.datasets:
            place = {"dataset": dataset, **axes}
            if place not in distinct:
                distinct.append(place)
    datasets = list(dict.fromkeys(place["dataset"] for place in distinct))
    distinct = in_order(distinct, list(distinct[0])[1:])
    return sorted(distinct, key=lambda place: datasets.index(place["dataset"]))


def in_order(distinct: Iterable[dict[str, str]], axes: Sequence[str]) -> list[dict[str, str]]:
    """Returns places sorted by their values on some axes: numbers rise, texts come last."""

    def rank(place: dict[str, str]) -> list[float]:
        texts = map(place.__getitem__, axes)
        return [float(text) if text[0].isdigit() else math.inf for text in texts]

    return sorted(distinct, key=rank)


def read_rows(folder: Path, name: str) -> list[Row]:
    """Returns the stored rows of a map; none without its file."""
    return stored_table(folder / f"{name}.csv").to_dict("records")  # type: ignore[return-value]


def interval_of_runs(runs: Integers, instances: Integers, differences: Floats) -> Interval:
    """Returns the mean of differences by run and instance, with an interval over both.

    Runs need not share their instances, as those of cross-validation do not. The components of
    variance are Henderson's estimates by his first method, those below zero are zero, and the
    variance of the mean is at least that over runs alone. It has a degree of freedom less than
    there are runs.

    Args:
        runs: `[N]` codes from 0.
        instances: `[N]` codes from 0, at most once for each run.
        differences: `[N]`.

    References:
        Searle, Casella and McCulloch (1992), Variance components, section 5.3.
    """
    size = len(differences)
    by_run = np.bincount(runs)
    by_instance = np.bincount(instances)
    means = np.bincount(runs, differences) / by_run
    if len(by_run) < 2:
        return mean_interval(means)
    mean = float(differences.mean())
    squares = [
        float(np.square(differences).sum()),
        float(by_run @ np.square(means)),
        float(np.square(np.bincount(instances, differences)) @ (1 / by_instance)),
        size * mean**2,
    ]
    of_runs = np.square(by_run).sum()
    of_instances = np.square(by_instance).sum()
    # Their expectations in the squared mean and the variances of runs, instances and the rest.
    expected = [
        [size, size, size, size],
        [size, size, len(by_run), len(by_run)],
        [size, len(by_instance), size, len(by_instance)],
        [size, of_runs / size, of_instances / size, 1.0],
    ]
    variance = float(means.var(ddof=1)) / len(by_run)
    if by_instance.max() > 1:
        parts = np.maximum(np.linalg.solve(expected, squares)[1:], 0.0)
        shares = np.array([of_runs, of_instances, size])
        variance = max(variance, float(shares @ parts) / size**2)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(by_run) - 1)) * math.sqrt(variance)
    return Interval(mean, mean - half, mean + half)


@functools.cache
def _values(folder: Path, metric: str) -> tuple[tuple[str, ...], Floats]:
    """Returns the test instances of a finished run and what each adds to a metric."""
    table = read_predictions(folder / PREDICTIONS)
    return table.tasks, instance_values(metric, table.labels, table.probabilities)


def _gain(ours: Sequence[FinishedRun], theirs: Sequence[FinishedRun], metric: str) -> Interval:
    """Returns the mean gain over the runs that both have; NaN without any."""
    rival = {(run.seed, run.folder.name): run for run in theirs}
    tables = []
    for number, run in enumerate(ours):
        other = rival.get((run.seed, run.folder.name))
        if other is None:
            continue
        tasks, values = _values(run.folder, metric)
        other_tasks, other_values = _values(other.folder, metric)
        if tasks != other_tasks:
            raise DataError(f"{run.folder}: its test items are not those of its rival's run")
        draw = run.seed if run.dataset in REDRAWN else 0
        columns = {"run": number, "draw": draw, "task": tasks, "gain": values - other_values}
        tables.append(pd.DataFrame(columns))
    if not tables:
        return NO_INTERVAL
    table = pd.concat(tables)
    runs = table.groupby("run").ngroup()
    instances = table.groupby(["draw", "task"], sort=False).ngroup()
    codes = (runs.to_numpy(), instances.to_numpy())
    return interval_of_runs(*codes, table["gain"].to_numpy())


def _mean(runs: Iterable[FinishedRun], metric: str) -> float:
    values = pd.Series([run.metric(metric) for run in runs], dtype=float)
    return float(np.mean(values.dropna().to_numpy())) if values.count() else math.nan


def _map_method(suite: Suite, method: str) -> str:
    """Returns the method of the map that a row belongs to: the one whose name ends most alike."""

    def shared(name: str) -> int:
        return len(os.path.commonprefix([name[::-1], method[::-1]]))  # noqa: RUF071

    return max(suite.rivals, key=shared)


def rows(suite: Suite, root: Path) -> Iterator[dict[str, str]]:
    """Yields a row for each method but the rivals in each cell that has runs of both."""
    cells: dict[tuple[tuple[str, str], ...], dict[str, tuple[Case, list[FinishedRun]]]] = {}
    for case in suite.cases:
        place, variant = split_setting(case.setting)
        for dataset, method in itertools.product(case.datasets, case.methods):
            cell = cells.setdefault((("dataset", dataset), *place.items()), {})
            name = f"{method}, {CONTROL}" if variant == CONTROL else method
            cell[name] = case, row_runs(root, case, dataset, method)
    all_rivals = set(itertools.chain.from_iterable(suite.rivals.values()))
    for place_of_cell, cell in cells.items():
        for name, (case, runs) in cell.items():
            method, _, variant = name.partition(", ")
            rivals = (method,) if variant else suite.rivals[_map_method(suite, method)]
            runs_of = {rival: cell[rival][1] for rival in rivals if rival in cell}
            fewest = min(map(len, runs_of.values()), default=0)
            if name in all_rivals or not runs or fewest < len(runs):
                continue
            metric = suite.metrics[0]
            best = max(filter(runs_of.get, runs_of), key=lambda x: _mean(runs_of[x], metric))
            asked = case.seeds * (case.folds or 1) * case.options.get("repeats", 1)
            row = dict(place_of_cell)
            texts = (name, best, metric, str(len(runs)), str(asked))
            numbers = _numbers(runs, runs_of[best], metric) + _numbers(runs, runs_of[best], "auc")
            cells_of_row = [*texts, *map(rounded_cell, numbers)]
            yield row | dict(zip(COLUMNS, cells_of_row, strict=True))


def _numbers(
    runs: Sequence[FinishedRun], theirs: Sequence[FinishedRun], metric: str
) -> list[float]:
    """Returns a metric's mean, the rival's, and the gain with its interval."""
    gain = _gain(runs, theirs, metric)
    return [_mean(runs, metric), _mean(theirs, metric), gain.estimate, gain.low, gain.high]
