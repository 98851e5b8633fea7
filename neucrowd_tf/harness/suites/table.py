"""From finished runs to a table: the paper's figure, ours with its interval, and what that says."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.csv_cells import number_cell, to_csv
from neucrowd_tf.evaluation.intervals import mean_interval
from neucrowd_tf.files import read_json, write_text
from neucrowd_tf.harness.suites.papers import ELSEWHERE, PRIVATE
from neucrowd_tf.harness.suites.suite import FIRST_SEED, Case, Suite

RUNS = "runs"
COLUMNS = ("dataset", "method", "metric", "paper", "mean", "sd", "low", "high", "runs", "difference", "status")
REPRODUCED, ABOVE, BELOW = "reproduced within the interval", "above", "below"
PRIVATE_DATA = "not reproduced: private data"
PUBLIC_DATA = "not reproduced: public data, not in data_dir"
NO_FIGURE, NOT_RUN = "the paper prints none", "not run"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of a table; `values` has ours, a number a run."""

    dataset: str
    method: str
    metric: str
    paper: float | None
    values: tuple[float, ...]
    folds: int | None = None
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float, float]:
        """Mean and 95 % interval of ours; NaN without runs."""
        if not self.values:
            return math.nan, math.nan, math.nan
        ratio = 0.0 if self.folds is None else 1.0 / (self.folds - 1)
        found = mean_interval(self.values, test_train_ratio=ratio)
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
        # Equal runs (a method without randomness) have no width; half of the last printed digit is then the tolerance.
        if abs(mean - self.paper) <= 5e-4:
            return REPRODUCED
        return ABOVE if mean > self.paper else BELOW

    def row(self) -> dict[str, str]:
        """Returns the cell as a row of the suite's CSV."""
        mean, low, high = self.interval
        deviation = float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan
        difference = mean - self.paper if self.paper is not None else math.nan
        numbers = {"paper": self.paper, "mean": mean, "sd": deviation, "low": low, "high": high, "difference": difference}
        shown = {name: "" if value is None or math.isnan(value) else number_cell(round(value, 6)) for name, value in numbers.items()}
        return {"dataset": self.dataset, "method": self.method, "metric": self.metric, **shown, "runs": str(len(self.values)), "status": self.status}


def case_folder(root: Path, case: Case) -> Path:
    """Returns where a case's runs lie: in the pool `<root>/runs`, by setting. Suites with the same case share its runs."""
    return root / RUNS / case.folder


def run_folders(root: Path, case: Case, dataset: str, method: str) -> list[Path]:
    """Returns the folders of a row's own seeds, whether they are there or not; other suites may have run more."""
    folder = case_folder(root, case) / dataset / method
    return [folder / f"seed-{seed}" for seed in range(FIRST_SEED, FIRST_SEED + case.seeds)]


def _values(root: Path, case: Case, dataset: str, method: str, metric: str) -> tuple[tuple[float, ...], str]:
    """Returns a metric of all finished runs, by seed and fold, and why there are none."""
    found: list[float] = []
    reason = ""
    for folder in run_folders(root, case, dataset, method):
        for path in [folder / "metrics.json", *sorted(folder.glob("fold-*/metrics.json"))]:
            value = read_json(path)["test"].get(metric) if path.exists() else None
            if value is not None:
                found.append(float(value))
        for path in [folder / "status.json", *sorted(folder.glob("fold-*/status.json"))]:
            if not reason and path.exists():
                record = read_json(path)
                reason = f"{record.get('status', 'skipped')}: {record.get('reason', '')}".strip(": ")
    return tuple(found), reason


def cells(suite: Suite, root: Path) -> list[Cell]:
    """Returns a suite's table: its own runs first, then what the paper prints of datasets that cannot be had."""
    found: list[Cell] = []
    seen: set[tuple[str, str]] = set()
    for case in suite.cases:
        for dataset in case.datasets:
            for method in case.methods:
                name = case.row_name(method)
                seen.add((dataset, name))
                printed = suite.printed.get((dataset, name), {})
                for metric in suite.metrics:
                    values, reason = _values(root, case, dataset, method, metric)
                    paper = printed[metric][0] if metric in printed else None
                    folds = case.options.get("folds") if case.options.get("evaluation") == "cv" else None
                    found.append(Cell(dataset, name, metric, paper, values, folds, reason))
    for (dataset, name), printed in suite.printed.items():
        if (dataset, name) not in seen:
            absent = "" if dataset in PRIVATE | ELSEWHERE else "not run: it needs annotator identities, which this dataset does not publish"
            found += [Cell(dataset, name, metric, value, (), None, absent) for metric, (value, _) in printed.items()]
    return found


def write_csv(path: Path, table: Iterable[Cell]) -> None:
    """Writes a suite's table as CSV."""
    write_text(path, to_csv(COLUMNS, [[row[name] for name in COLUMNS] for row in (cell.row() for cell in table)]))


def _shown(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"


def markdown(suite: Suite, table: list[Cell], command: str) -> str:
    """Returns a suite's table as Markdown: one row a dataset and method, one column a metric."""
    lines = [f"## {suite.title}", "", f"`{command}`", ""]
    if suite.note:
        lines += [suite.note, ""]
    head = ["dataset", "method"]
    for metric in suite.metrics:
        head += [f"{metric}, paper", f"{metric}, ours [95 % interval]", "outcome"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in table:
        rows.setdefault((cell.dataset, cell.method), {})[cell.metric] = cell
    for (dataset, method), by_metric in rows.items():
        items: list[str] = [dataset, method]
        for metric in suite.metrics:
            found = by_metric.get(metric)
            if found is None:
                items += ["", "", ""]
                continue
            mean, low, high = found.interval
            ours = f"{mean:.3f} [{low:.3f}, {high:.3f}] ({len(found.values)})" if found.values else ""
            items += [_shown(found.paper), ours, found.status]
        lines.append("| " + " | ".join(items) + " |")
    return "\n".join([*lines, ""])


def outcome_counts(table: Iterable[Cell]) -> dict[str, int]:
    """Returns how many printed figures ended in which status."""
    counts: dict[str, int] = {}
    for cell in table:
        if cell.paper is not None:
            counts[cell.status] = counts.get(cell.status, 0) + 1
    return counts


def draw(suite: Suite, table: list[Cell], path: Path) -> bool:
    """Draws the table (ours with intervals, the paper's figure as a cross); returns False where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    from neucrowd_tf.files import atomic_path

    metric = suite.metrics[0]
    shown = [cell for cell in table if cell.metric == metric and cell.values]
    datasets = list(dict.fromkeys(cell.dataset for cell in shown))
    if not datasets:
        return False
    rows = max(sum(cell.dataset == name for cell in shown) for name in datasets)
    figure = Figure(figsize=(4.2 * len(datasets), 1.2 + 0.26 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, name in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        part = [cell for cell in shown if cell.dataset == name][::-1]
        _draw_dataset(axis, part, f"{name}: {metric}")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png", metadata={"Software": None})
    return True


def _draw_dataset(axis: Any, part: list[Cell], title: str) -> None:
    middle = [cell.interval for cell in part]
    places = np.arange(len(part))
    means = np.array([m[0] for m in middle])
    errors = np.array([[m[0] - m[1], m[2] - m[0]] for m in middle]).T
    axis.errorbar(means, places, xerr=np.nan_to_num(errors), fmt="o", capsize=2, label="ours, 95 % interval")
    printed = [(cell.paper, place) for cell, place in zip(part, places, strict=True) if cell.paper is not None]
    if printed:
        axis.plot([p[0] for p in printed], [p[1] for p in printed], "x", color="tab:red", label="paper")
    axis.set_yticks(places, [cell.method for cell in part], fontsize=7)
    axis.set_title(title, fontsize=9)
    axis.grid(axis="x", alpha=0.3)
    axis.legend(fontsize=6)


def suite_from_files(names: Iterable[str], results: Path) -> dict[str, dict[str, Any]]:
    """Returns, for each suite whose outcome lies in `results`, its counts (read from the JSON beside its CSV)."""
    return {name: read_json(results / f"{name}.json") for name in names if (results / f"{name}.json").exists()}
