"""Figures that show training itself: a fit's logged values by epoch, read from its TensorBoard files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.csv_cells import number_cell, to_csv
from neucrowd_tf.files import atomic_path, write_text
from neucrowd_tf.harness.suites.suite import Suite
from neucrowd_tf.harness.suites.table import run_folders

Curve = dict[int, float]


def read_scalars(folder: Path) -> dict[str, Curve]:
    """Returns every scalar of a run's TensorBoard files: tag -> {step: value}; a step that was logged again counts last."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    found: dict[str, Curve] = {}
    for tag in events.Tags()["tensors"]:
        curve: Curve = {}
        for event in events.Tensors(tag):
            value = np.asarray(tensor_util.make_ndarray(event.tensor_proto))
            if value.ndim == 0 and value.dtype.kind == "f":
                curve[int(event.step)] = float(value)
        if curve:
            found[tag] = curve
    return found


def _collect(suite: Suite, root: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns rows (dataset, method, seed, name, step, value) of the tags whose last part is among `names`."""
    rows: list[dict[str, Any]] = []
    for case in suite.cases:
        for dataset in case.datasets:
            for method in case.methods:
                for run in run_folders(root, case, dataset, method):
                    if not (run / "metrics.json").exists() or not (run / "tensorboard").is_dir():
                        continue
                    for tag, curve in read_scalars(run / "tensorboard").items():
                        if tag.rsplit("/", 1)[-1] in names:
                            base = {"dataset": dataset, "method": case.row_name(method), "seed": run.name.removeprefix("seed-"), "name": tag}
                            rows += [{**base, "step": step, "value": value} for step, value in sorted(curve.items())]
    return rows


def write_curves(path: Path, rows: Sequence[dict[str, Any]], title: str) -> list[Path]:
    """Writes curves as CSV and, with matplotlib, as a picture: the mean over seeds with its range; returns the files."""
    columns = ("dataset", "method", "seed", "name", "step", "value")
    csv = path.with_suffix(".csv")
    write_text(csv, to_csv(columns, [[str(row[c]) if c != "value" else number_cell(row[c]) for c in columns] for row in rows]))
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return [csv]
    panels = list(dict.fromkeys((row["dataset"], row["name"]) for row in rows))
    if not panels:
        return [csv]
    figure = Figure(figsize=(4.6 * len(panels), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (dataset, name) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for method in dict.fromkeys(row["method"] for row in rows if (row["dataset"], row["name"]) == (dataset, name)):
            values: dict[int, list[float]] = {}
            for row in rows:
                if (row["dataset"], row["name"], row["method"]) == (dataset, name, method):
                    values.setdefault(row["step"], []).append(row["value"])
            steps = sorted(values)
            axis.plot(steps, [np.mean(values[s]) for s in steps], marker="." if len(steps) < 20 else None, label=method)
            axis.fill_between(steps, [min(values[s]) for s in steps], [max(values[s]) for s in steps], alpha=0.15)
        axis.set_title(f"{dataset}: {name}", fontsize=9)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=6)
    figure.suptitle(title, fontsize=10)
    picture = path.with_suffix(".png")
    with atomic_path(picture) as temporary:
        figure.savefig(temporary, dpi=110, format="png", metadata={"Software": None})
    return [csv, picture]


def training_loss(suite: Suite, root: Path, results: Path) -> list[Path]:
    """The training loss by epoch (NeuCrowd, figure 2)."""
    return write_curves(results / f"{suite.name}_curves", _collect(suite, root, ("loss",)), suite.title)


def validation_accuracy(suite: Suite, root: Path, results: Path) -> list[Path]:
    """The validation accuracy by epoch."""
    return write_curves(results / f"{suite.name}_curves", _collect(suite, root, ("val_accuracy",)), suite.title)


def imbalance_by_round(suite: Suite, root: Path, results: Path) -> list[Path]:
    """The annotations' imbalance ratio R, pseudo-annotations included, by round of self-training (DASC, figures 1 and 4)."""
    return write_curves(results / f"{suite.name}_rounds", _collect(suite, root, ("imbalance_ratio",)), suite.title)
