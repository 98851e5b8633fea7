"""From finished runs to a table: the paper's figure, ours with its interval, and what that says."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.evaluation.comparison import paired_comparison
from neucrowd_tf.evaluation.intervals import Interval, mean_interval
from neucrowd_tf.io.csv_cells import number_cell, to_csv
from neucrowd_tf.io.files import atomic_path, write_text
from reproduction.collect import Found, absent_reason, row_runs
from reproduction.printed import ELSEWHERE, PRIVATE
from reproduction.suite import Case, Suite

COLUMNS = (
    "dataset",
    "method",
    "metric",
    "paper",
    "mean",
    "sd",
    "low",
    "high",
    "runs",
    "difference",
    "status",
    "gain",
    "gain_low",
    "gain_high",
)
REPRODUCED, ABOVE, BELOW = "reproduced within the interval", "above", "below"
PRIVATE_DATA = "not reproduced: private data"
PUBLIC_DATA = "not reproduced: public data, not in data_dir"
NO_FIGURE, NOT_RUN = "the paper prints none", "not run"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of a table; `values` has ours, a number a run, and `gain` the paired gain over the
    suite's baseline.
    """

    dataset: str
    method: str
    metric: str
    paper: float | None
    values: tuple[float, ...]
    folds: int | None = None
    reason: str = ""
    gain: Interval | None = None

    @property
    def interval(self) -> tuple[float, float, float]:
        """Mean and 95 % interval of ours; NaN without runs."""
        if not self.values:
            return math.nan, math.nan, math.nan
        found = mean_interval(self.values, test_train_ratio=_ratio(self.folds))
        return found.estimate, found.low, found.high

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
        deviation = float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan
        difference = mean - self.paper if self.paper is not None else math.nan
        gain = self.gain or Interval(math.nan, math.nan, math.nan)
        numbers = {
            "paper": self.paper,
            "mean": mean,
            "sd": deviation,
            "low": low,
            "high": high,
            "difference": difference,
        }
        numbers |= {"gain": gain.estimate, "gain_low": gain.low, "gain_high": gain.high}
        shown = {
            name: "" if value is None or math.isnan(value) else number_cell(round(value, 6))
            for name, value in numbers.items()
        }
        return {
            "dataset": self.dataset,
            "method": self.method,
            "metric": self.metric,
            **shown,
            "runs": str(len(self.values)),
            "status": self.status,
        }


def _gain(suite: Suite, root: Path, case: Case, dataset: str, method: str) -> Interval | None:
    """Returns the paired gain in the first metric over the suite's baseline, of the same setting
    where it runs there.
    """
    if not suite.baseline or method == suite.baseline:
        return None
    plain = dataclasses.replace(case, setting="", hparams={}, options={})
    mine = _by_run(row_runs(root, case, dataset, method), suite.metrics[0])
    for place in (case, plain):
        theirs = _by_run(row_runs(root, place, dataset, suite.baseline), suite.metrics[0])
        both = [key for key in mine if key in theirs]
        if both:
            found = paired_comparison(
                [mine[k] for k in both],
                [theirs[k] for k in both],
                test_train_ratio=_ratio(case.folds),
            )
            return Interval(found.difference, found.low, found.high)
    return None


def _by_run(runs: Iterable[Found], metric: str) -> dict[tuple[int, str], float]:
    values = ((run.seed, run.folder.name, run.metric(metric)) for run in runs)
    return {(seed, name): value for seed, name, value in values if value is not None}


def _ratio(folds: int | None) -> float:
    """Returns test over training instances, by which folds that share training instances widen an
    interval.
    """
    return 0.0 if folds is None else 1.0 / (folds - 1)


def cells(suite: Suite, root: Path) -> list[Cell]:
    """Returns a suite's table: its own runs first, then what the paper prints of datasets that
    cannot be had.
    """
    found: list[Cell] = []
    seen: set[tuple[str, str]] = set()
    for case in suite.cases:
        for dataset in case.datasets:
            for method in case.methods:
                name = case.row_name(method)
                seen.add((dataset, name))
                runs = row_runs(root, case, dataset, method)
                reason = "" if runs else absent_reason(root, case, dataset, method)
                for metric in suite.metrics:
                    values = tuple(_by_run(runs, metric).values())
                    gain = (
                        _gain(suite, root, case, dataset, method)
                        if metric == suite.metrics[0]
                        else None
                    )
                    paper = suite.figures.get((dataset, name), {}).get(metric, (None,))[0]
                    found.append(
                        Cell(dataset, name, metric, paper, values, case.folds, reason, gain)
                    )
    for (dataset, name), printed in suite.figures.items():
        if (dataset, name) not in seen:
            absent = (
                ""
                if dataset in PRIVATE | ELSEWHERE
                else "not run: it needs annotator identities, which this dataset does not publish"
            )
            found += [
                Cell(dataset, name, metric, value, (), None, absent)
                for metric, (value, _) in printed.items()
            ]
    return found


def write_csv(path: Path, table: Iterable[Cell]) -> None:
    """Writes a suite's table as CSV."""
    write_text(
        path,
        to_csv(
            COLUMNS, [[row[name] for name in COLUMNS] for row in (cell.row() for cell in table)]
        ),
    )


def _shown(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"


def markdown(suite: Suite, table: list[Cell], command: str) -> str:
    """Returns a suite's table as Markdown: one row a dataset and method, one column a metric."""
    lines = [f"## {suite.title}", "", f"`{command}`", ""]
    if suite.note:
        lines += [suite.note, ""]
    if not table:
        return "\n".join(lines)
    head = ["dataset", "method"]
    for metric in suite.metrics:
        printed = any(cell.paper is not None and cell.metric == metric for cell in table)
        head += (
            [f"{metric}, paper"] * printed
            + [f"{metric}, ours [95 % interval] (runs)"]
            + ["outcome"] * printed
        )
    if suite.baseline:
        head.append(f"{suite.metrics[0]}, gain over {suite.baseline} [95 % interval]")
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in table:
        rows.setdefault((cell.dataset, cell.method), {})[cell.metric] = cell
    for (dataset, method), by_metric in rows.items():
        items: list[str] = [dataset, method]
        for metric in suite.metrics:
            cell = by_metric.get(metric) or Cell(dataset, method, metric, None, ())
            printed = f"{metric}, paper" in head
            ours = _ours(cell) or ("" if printed else cell.reason)
            items += (
                [_shown(cell.paper)] * printed
                + [ours]
                + ["" if cell.status == NO_FIGURE else cell.status] * printed
            )
        if suite.baseline:
            gain = by_metric[suite.metrics[0]].gain if suite.metrics[0] in by_metric else None
            items.append(
                "" if gain is None else f"{gain.estimate:+.3f}{_between(gain.low, gain.high, '+')}"
            )
        lines.append("| " + " | ".join(items) + " |")
    return "\n".join([*lines, ""])


def _ours(cell: Cell) -> str:
    mean, low, high = cell.interval
    return f"{mean:.3f}{_between(low, high)} ({len(cell.values)})" if cell.values else ""


def _between(low: float, high: float, sign: str = "") -> str:
    """Returns an interval; nothing where one run has none."""
    return "" if math.isnan(low) else f" [{low:{sign}.3f}, {high:{sign}.3f}]"


def outcome_counts(table: Iterable[Cell]) -> dict[str, int]:
    """Returns how many printed figures ended in which status."""
    counts: dict[str, int] = {}
    for cell in table:
        if cell.paper is not None:
            counts[cell.status] = counts.get(cell.status, 0) + 1
    return counts


def draw(suite: Suite, table: list[Cell], path: Path) -> bool:
    """Draws the table (ours with intervals, the paper's figure as a cross); returns False where
    matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    shown = [cell for cell in table if cell.values]
    # A row of panels for each metric that the paper prints; the first one where it prints none of
    # these methods.
    metrics = [
        name
        for name in suite.metrics
        if any(cell.metric == name and cell.paper is not None for cell in shown)
    ] or [suite.metrics[0]]
    shown = [cell for cell in shown if cell.metric in metrics]
    datasets = list(dict.fromkeys(cell.dataset for cell in shown))
    if not datasets:
        return False
    parts = {
        (m, d): [cell for cell in shown if cell.metric == m and cell.dataset == d][::-1]
        for m in metrics
        for d in datasets
    }
    heights = [
        1.2 + 0.26 * max(len(parts[metric, name]) for name in datasets) for metric in metrics
    ]
    figure = Figure(figsize=(4.2 * len(datasets), sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(metrics), len(datasets), squeeze=False, height_ratios=heights)
    for axis, ((metric, name), part) in zip(axes.ravel(), parts.items(), strict=True):
        if part:
            _draw_dataset(axis, part, f"{name}: {metric}")
        else:
            axis.set_axis_off()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png", metadata={"Software": None})
    return True


def _draw_dataset(axis: Any, part: list[Cell], title: str) -> None:
    middle = [cell.interval for cell in part]
    places = np.arange(len(part))
    means = np.array([m[0] for m in middle])
    errors = np.array([[m[0] - m[1], m[2] - m[0]] for m in middle]).T
    axis.errorbar(
        means, places, xerr=np.nan_to_num(errors), fmt="o", capsize=2, label="ours, 95 % interval"
    )
    printed = [
        (cell.paper, place)
        for cell, place in zip(part, places, strict=True)
        if cell.paper is not None
    ]
    if printed:
        axis.plot(
            [p[0] for p in printed], [p[1] for p in printed], "x", color="tab:red", label="paper"
        )
    axis.set_yticks(places, [cell.method for cell in part], fontsize=7)
    axis.set_title(title, fontsize=9)
    axis.grid(axis="x", alpha=0.3)
    axis.legend(fontsize=6)
