"""Maps of where a method pays: its gain over the best simple rival in each cell of a grid.

`python -m reproduction.maps OUT/results results` adds finished cells to the stored maps and draws
them anew.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import math
import operator
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.results import NO_INTERVAL
from neucrowd_tf.declare.types import Axes, Floats, Indices
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.evaluation.influence import instance_values
from neucrowd_tf.evaluation.intervals import Interval, mean_interval
from neucrowd_tf.io.files.atomic import atomic_path, write_text
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.io.run_files import PREDICTIONS
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from reproduction.collect import FinishedRun, row_runs
from reproduction.panels import RESULTS, Figure
from reproduction.suite import Case, Suite

try:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle
except ImportError:  # then there are no pictures, as without `Figure`
    pass

PREFIX = "map_"
# The setting of a network after one step, which is compared with the same network trained.
CONTROL = "one step"
OVERVIEW = "maps.png"
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
Place = dict[str, str]

# --------------------------------------------------------------------------- cells


def split_setting(setting: str) -> tuple[Place, str]:
    """Returns a cell's value on each axis, and what its setting says besides ("pixels")."""
    parts = setting.split(",")
    place = dict(part.split("=", 1) for part in parts if "=" in part)
    return place, ",".join(part for part in parts if "=" not in part)


def interval_of_runs(runs: Indices, instances: Indices, differences: Floats) -> Interval:
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
    over_runs = mean_interval(means)
    if len(by_run) < 2:
        return over_runs
    mean = float(differences.mean())
    squares = [
        float(np.square(differences).sum()),
        float(by_run @ np.square(means)),
        float(np.square(np.bincount(instances, differences)) @ (1 / by_instance)),
        size * mean**2,
    ]
    # Their expectations in the squared mean and the variances of runs, instances and the rest.
    expected = [
        [size, size, size, size],
        [size, size, len(by_run), len(by_run)],
        [size, len(by_instance), size, len(by_instance)],
        [size, np.square(by_run).sum() / size, np.square(by_instance).sum() / size, 1.0],
    ]
    variance = float(means.var(ddof=1)) / len(by_run)
    if by_instance.max() > 1:
        parts = np.maximum(np.linalg.solve(expected, squares)[1:], 0.0)
        shares = np.array([np.square(by_run).sum(), np.square(by_instance).sum(), size])
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
    pairs = [(run, rival.get((run.seed, run.folder.name))) for run in ours]
    runs = list[int]()
    names = list[tuple[str, int]]()
    differences = list[Floats]()
    for number, (run, other) in enumerate(pair for pair in pairs if pair[1] is not None):
        tasks, values = _values(run.folder, metric)
        other_tasks, other_values = _values(other.folder, metric)  # type: ignore[union-attr]
        if tasks != other_tasks:
            raise DataError(f"{run.folder}: its test items are not those of its rival's run")
        if run.dataset in REDRAWN:
            redrawn = run.seed
        else:
            redrawn = 0
        names += [(task, redrawn) for task in tasks]
        runs += [number] * len(tasks)
        differences.append(values - other_values)
    if not differences:
        return NO_INTERVAL
    instances, _ = pd.factorize(pd.Series(names))
    return interval_of_runs(np.array(runs), instances, np.concatenate(differences))


def _mean(runs: Iterable[FinishedRun], metric: str) -> float:
    values = [value for run in runs if (value := run.metric(metric)) is not None]
    if values:
        return float(np.mean(values))
    return math.nan


def _ours(suite: Suite, method: str) -> str:
    """Returns the method of the map that a row belongs to: the one whose name ends most alike."""

    def shared(name: str) -> int:
        pairs = zip(reversed(name), reversed(method), strict=False)
        return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))

    return max(suite.rivals, key=shared)


def rows(suite: Suite, root: Path) -> Iterator[dict[str, str]]:
    """Yields a row for each method but the rivals in each cell that has runs of both."""
    cells: dict[tuple[str, tuple[str, ...]], dict[str, tuple[Case, list[FinishedRun]]]] = {}
    settings = (split_setting(case.setting)[0] for case in suite.cases)
    axes = list(dict.fromkeys(itertools.chain.from_iterable(settings)))
    for case in suite.cases:
        place, variant = split_setting(case.setting)
        for dataset, method in itertools.product(case.datasets, case.methods):
            cell = cells.setdefault((dataset, tuple(place[axis] for axis in axes)), {})
            if variant == CONTROL:
                name = f"{method}, {CONTROL}"
            else:
                name = method
            cell[name] = case, row_runs(root, case, dataset, method)
    all_rivals = set(itertools.chain.from_iterable(suite.rivals.values()))
    for (dataset, place_of_cell), cell in cells.items():
        for name, (case, runs) in cell.items():
            method, _, variant = name.partition(", ")
            rivals = (method,) if variant else suite.rivals[_ours(suite, method)]
            finished = [rival for rival in rivals if cell.get(rival, ((), ()))[1]]
            complete = all(len(cell[rival][1]) >= len(runs) for rival in rivals if rival in cell)
            if name in all_rivals or not runs or not finished or not complete:
                continue
            metric = suite.metrics[0]
            best = max(finished, key=lambda rival: _mean(cell[rival][1], metric))
            asked = case.seeds * (case.folds or 1) * case.options.get("repeats", 1)
            row = {"dataset": dataset, **dict(zip(axes, place_of_cell, strict=True))}
            row |= {"method": name, "rival": best, "metric": metric}
            row |= {"runs": str(len(runs)), "asked": str(asked)}
            numbers = _numbers(runs, cell[best][1], metric)
            numbers += _numbers(runs, cell[best][1], "auc")
            for column, number in zip(COLUMNS[5:], numbers, strict=True):
                row[column] = number_cell(round(number, 6))
            yield row


def _numbers(
    runs: Sequence[FinishedRun], theirs: Sequence[FinishedRun], metric: str
) -> list[float]:
    """Returns a metric's mean, the rival's, and the gain with its interval."""
    gain = _gain(runs, theirs, metric)
    return [_mean(runs, metric), _mean(theirs, metric), gain.estimate, gain.low, gain.high]


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes a map of finished runs as CSV and PNG; returns the files."""
    return store(suite, list(rows(suite, options.output_dir)), options.output_dir / RESULTS)


def store(suite: Suite, table: Sequence[Row], folder: Path) -> list[Path]:
    """Writes a map's cells as CSV and, with matplotlib, as PNG."""
    if not table:
        return []
    path = folder / f"{suite.name}.csv"
    columns = [*table[0]]
    write_text(path, to_csv(columns, map(operator.itemgetter(*columns), table)))
    return [path, *_draw(path.with_suffix(".png"), {suite.title: (suite, table)}, False)]


def read(folder: Path, name: str) -> list[Row]:
    """Returns the stored cells of a map; an empty one without any."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def axes_of(row: Row) -> list[str]:
    """Returns the names of a map's axes."""
    return [name for name in row if name not in ("dataset", *COLUMNS)]


def _key(row: Row) -> tuple[str, ...]:
    return row["dataset"], *(row[axis] for axis in axes_of(row)), row["method"]


def is_complete(row: Row) -> bool:
    """Whether a cell has as many runs as its suite asks for."""
    return int(row["runs"]) >= int(row["asked"])


def maps_of(suites: Iterable[Suite]) -> list[Suite]:
    """Returns those suites that are maps."""
    return [suite for suite in suites if suite.name.startswith(PREFIX)]


def merge(source: Path, target: Path, suites: Iterable[Suite]) -> list[Path]:
    """Adds the cells of one folder to those of another; of one cell, that of more runs stays."""
    written = list[Path]()
    maps = dict[str, tuple[Suite, Sequence[Row]]]()
    for suite in maps_of(suites):
        cells = {_key(row): row for row in read(target, suite.name)}
        for row in read(source, suite.name):
            if _key(row) not in cells or int(cells[_key(row)]["runs"]) <= int(row["runs"]):
                cells[_key(row)] = row
        order = {place: number for number, place in enumerate(_places(suite))}
        table = sorted(cells.values(), key=lambda row: order.get(_key(row)[:-1], len(order)))
        written += store(suite, table, target)
        if table:
            maps[suite.title.partition(",")[0]] = suite, table
    return [*written, *_draw(target / OVERVIEW, maps, True)]


def _places(suite: Suite) -> list[tuple[str, ...]]:
    """Returns the dataset and the axes' values of each cell, in the order of the axes."""
    places = dict[tuple[str, ...], None]()
    for case in suite.cases:
        for dataset in case.datasets:
            places[dataset, *split_setting(case.setting)[0].values()] = None
    return list(places)


# --------------------------------------------------------------------------- pictures


def _draw(
    path: Path, maps: Mapping[str, tuple[Suite, Sequence[Row]]], overview: bool
) -> list[Path]:
    """Draws a panel for each dataset of each map; returns the picture.

    Columns are the values of all axes but the last, rows those of the last by method. An overview
    has each map's first dataset and the methods that it is of. The result is empty without cells or
    matplotlib.
    """
    panels = []
    for title, (suite, table) in maps.items():
        datasets = list(dict.fromkeys(row["dataset"] for row in table))
        for dataset in datasets[:1] if overview else datasets:
            shown = [
                row for row in table if row["dataset"] == dataset and ", " not in row["method"]
            ]
            if overview:
                shown = [row for row in shown if row["method"] in suite.rivals]
            if shown:
                panels.append((f"{title}: {dataset}" if overview else dataset, suite, shown))
    if Figure is None or not panels:
        return []
    grids = [_Grid.of(suite, shown) for _, suite, shown in panels]
    heights = [max(2, len(grid.down)) for grid in grids]
    figure = Figure(figsize=(14, 0.55 * sum(heights) + 1.5 * len(grids)), layout="constrained")
    axes = figure.subplots(len(grids), 1, squeeze=False, height_ratios=heights).ravel()
    for axis, grid, (title, *_) in zip(axes, grids, panels, strict=True):
        grid.draw(axis)
        axis.set_title(title, fontsize=9, loc="left")
    figure.suptitle(
        "Gain in accuracy (DASC: balanced) over the best simple rival, in points (below it:"
        " in AUC). Coloured: the 95% interval excludes 0. Hatched: runs are missing.",
        fontsize=9,
    )
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=90, format="png", metadata={"Software": None})
    return [path]


@dataclass(frozen=True)
class _Grid:
    """The cells of a panel: `across` and `down` are their places, `axes` what they are of."""

    across: list[tuple[str, ...]]
    down: list[tuple[str, ...]]
    axes: list[str]
    cells: Mapping[tuple[tuple[str, ...], tuple[str, ...]], Row]

    @classmethod
    def of(cls, suite: Suite, shown: Sequence[Row]) -> _Grid:
        axes = axes_of(shown[0])
        if len(axes) > 1:
            last = axes[-1:]
        else:
            last = []
        rest = axes[: len(axes) - len(last)]
        dataset = shown[0]["dataset"]
        places = [dict(zip(axes, x[1:], strict=True)) for x in _places(suite) if x[0] == dataset]
        across = list(dict.fromkeys(_values_at(place, rest) for place in places))
        methods = dict.fromkeys(row["method"] for row in shown)
        lasts = dict.fromkeys(_values_at(place, last) for place in places)
        down = [(method, *values) for method, values in itertools.product(methods, lasts)]
        cells: dict[tuple[tuple[str, ...], tuple[str, ...]], Row] = {}
        for row in shown:
            cells[_values_at(row, rest), _values_at(row, ["method", *last])] = row
        return cls(across, down, [*rest, *last], cells)

    def draw(self, axis: Axes) -> None:
        """Draws the cells with their numbers."""
        for x, column in enumerate(self.across):
            for y, line in enumerate(self.down):
                row = self.cells.get((column, line))
                if row is not None:
                    _draw_cell(axis, x, y, row)
        rest = self.axes[: len(self.across[0])]
        labels = [_title(rest, values) for values in self.across]
        axis.set_xticks(range(len(labels)), [x.replace(" ", "\n") for x in labels], fontsize=6)
        last = self.axes[len(rest) :]
        names = [f"{method} {_title(last, values)}".rstrip() for method, *values in self.down]
        axis.set_yticks(range(len(names)), names, fontsize=7)
        axis.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(names) - 0.5, -0.5))


def _values_at(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(row[name] for name in names)


def _title(names: Sequence[str], values: Sequence[str]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


_STRONGEST = 0.08  # the gain of the strongest colour


def _draw_cell(axis: Axes, x: int, y: int, row: Row) -> None:
    """Draws a cell: coloured if its interval excludes 0, hatched if runs are missing."""
    gain = float(row["gain"])
    apart = is_complete(row) and outcome(row) != 0
    share = 0.5 + 0.5 * max(-1.0, min(1.0, gain / _STRONGEST))
    style = {"facecolor": colormaps["RdBu"](share) if apart else "white", "edgecolor": "0.6"}
    if not is_complete(row):
        style["hatch"] = "////"
    axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, linewidth=0.6, **style))
    text = f"{100 * gain:+.1f}\n({_points(row['auc_gain'])})"
    strong = apart and abs(gain) > 0.6 * _STRONGEST
    axis.text(
        x, y, text, ha="center", va="center", fontsize=7, color="white" if strong else "black"
    )


def _points(text: str) -> str:
    if text:
        return f"{100 * float(text):+.1f}"
    return ""


# --------------------------------------------------------------------------- sentences


def outcome(row: Row) -> int:
    """Returns 1 if a cell's interval is above 0, -1 if it is below, otherwise 0."""
    if not row["gain_low"]:
        return 0
    low = float(row["gain_low"])
    high = float(row["gain_high"])
    return 1 if low > 0 else -1 if high < 0 else 0


def sentences(results: Path, suites: Iterable[Suite], paper: str | None = None) -> list[str]:
    """Returns when each method of a map pays and when not, from its complete cells.

    Args:
        results: folder of the stored tables.
        suites: of the catalogue.
        paper: the one paper, as suites' titles begin ("NeuCrowd"); None for all.
    """
    lines = []
    for suite in maps_of(suites):
        if paper in (None, suite.title.partition(",")[0]):
            table = read(results, suite.name)
            for method in suite.rivals:
                ours = [row for row in table if row["method"] == method]
                text = f"- {_sentence(suite, method, ours)}"
                lines += textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def section(results: Path, suites: Iterable[Suite]) -> str:
    """Returns the section on maps for the page of results; "" without a stored map."""
    stored = [suite for suite in maps_of(suites) if read(results, suite.name)]
    if not stored:
        return ""
    lines = [
        "",
        "## Where each method pays",
        "",
        "Maps of the gain over the best simple rival; [maps](docs/research/maps.md) has the axes.",
        "",
        *sentences(results, stored),
    ]
    if (results / OVERVIEW).exists():
        lines += ["", f"![Gain by cell of each map](results/{OVERVIEW})"]
    return "\n".join(lines) + "\n"


def _sentence(suite: Suite, method: str, ours: Sequence[Row]) -> str:
    """Returns the sentence of one method."""
    asked = _cells_asked(suite, method)
    measured = [row for row in ours if is_complete(row)]
    over = " or ".join(f"`{name}`" for name in suite.rivals[method])
    missing = asked - len(measured)
    if missing:
        still = f" {missing} of {asked} cells still lack runs."
    else:
        still = ""
    if not measured:
        return f"`{method}`: no cell of its map has all its runs yet.{still}"
    parts: dict[int, list[Row]] = {1: [], -1: [], 0: []}
    for row in measured:
        parts[outcome(row)].append(row)
    text = f"`{method}` pays, compared with the best of {over}, {_where(measured, parts[1])}."
    text += f" It does not pay (it is less accurate) {_where(measured, parts[-1])}."
    if parts[0]:
        text += f" In {len(parts[0])} of {len(measured)} cells the interval includes 0."
    return f"{text} {_change(measured)}{still}"


def _cells_asked(suite: Suite, method: str) -> int:
    places: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for case in suite.cases:
        place, variant = split_setting(case.setting)
        if method in case.methods and variant != CONTROL:
            places |= {(dataset, tuple(place.items())) for dataset in case.datasets}
    return len(places)


def _gain_text(row: Row) -> str:
    low = float(row["gain_low"])
    high = float(row["gain_high"])
    return f"{float(row['gain']):+.3f} [{low:+.3f}, {high:+.3f}]"


def _where(measured: Sequence[Row], chosen: Sequence[Row]) -> str:
    """Returns "in no cell", the cells if they are few, or the values that they are limited to."""
    if not chosen:
        return f"in none of {len(measured)} cells"
    if len(chosen) <= 3:
        cells: list[str] = []
        for row in chosen:
            place = ", ".join(f"{axis} {row[axis]}" for axis in axes_of(row))
            cells.append(f"{row['dataset']} with {place} ({_gain_text(row)})")
        return "in " + "; ".join(cells)
    names = ["dataset", *axes_of(chosen[0])]
    limits = []
    for name in names:
        tested = list(dict.fromkeys(row[name] for row in measured))
        remaining = {row[name] for row in chosen}
        values = [value for value in tested if value in remaining]
        if len(values) < len(tested):
            limits.append(f"{name} {' or '.join(values)}")
    if limits:
        which = f", all with {' and '.join(limits)}"
    else:
        which = ", at every value of each axis"
    gains = [float(row["gain"]) for row in chosen]
    size = f"{min(gains):+.3f} to {max(gains):+.3f}"
    return f"in {len(chosen)} of {len(measured)} cells{which} ({size})"


def _change(measured: Sequence[Row]) -> str:
    """Returns along which axis the gain changes most, or that no change is beyond its interval.

    Compared are all pairs of cells that differ in one axis; Bonferroni's correction is for them.
    """
    pairs = []
    for first, second in itertools.combinations(measured, 2):
        names = ["dataset", *axes_of(first)]
        differ = [name for name in names if first[name] != second[name]]
        if len(differ) == 1 and differ != ["dataset"]:
            change = float(second["gain"]) - float(first["gain"])
            errors = list(map(_error, (first, second)))
            pairs.append((abs(change) / math.hypot(*errors), differ[0], first, second))
    if not pairs:
        return "No two cells that differ in one axis have all their runs."
    size, axis, first, second = max(pairs, key=lambda pair: pair[0])
    if size <= stats.norm.ppf(1 - (1 - CONFIDENCE) / 2 / len(pairs)):
        widest = max(2 * _error(row) for row in measured)
        return (
            f"No axis along which the gain changes beyond its interval was found among"
            f" {len(measured)} cells, whose intervals are up to {widest:.3f} to either side."
        )
    same = ", ".join(f"{x} {first[x]}" for x in ["dataset", *axes_of(first)] if x != axis)
    return (
        f"The gain changes most clearly along {axis} ({same}): {float(first['gain']):+.3f}"
        f" at {first[axis]}, {float(second['gain']):+.3f} at {second[axis]}."
    )


def _error(row: Row) -> float:
    """Returns the standard error of a cell's gain, a little above zero."""
    low = float(row["gain_low"])
    high = float(row["gain_high"])
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, int(row["runs"]) - 1))
    return max((high - low) / 2 / quantile, 1e-9)


if __name__ == "__main__":
    from reproduction.catalogue import SUITES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="results folder of the runs")
    parser.add_argument("target", type=Path, help="folder of the stored tables")
    try:
        for path in merge(**vars(parser.parse_args()), suites=SUITES):
            print(path)
    except (DataError, OSError) as error:
        sys.exit(f"error: {one_line(error)}")
