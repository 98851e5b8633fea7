"""The page's curves of training, and the picture of what the run's method adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from neucrowd_tf.declare.types import Fields, NamedValues
from neucrowd_tf.evaluation.report.text import number, polyline, shown
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.run_files import EVALUATION, HISTORY

# What history.json and evaluation.json name shortly, in words, for the page and TensorBoard.
PLAIN = {
    "loss": "loss in training",
    "val_loss": "loss on validation data",
    "val_log_loss": "log loss on validation data",
    "val_fixed_tuplet_loss": "loss of the same tuplets in each epoch",
    "val_accuracy": "accuracy on validation data",
    "val_auc": "AUC on validation data",
    "test_accuracy": "accuracy on test data",
    "safe_share": "share of safe items",
    "confidence": "confidence in the labels",
    "generated_accuracy": "accuracy of generated labels",
    "information_loss": "information loss",
    "auxiliary_accuracy": "accuracy of the auxiliary network Q",
    "generator_entropy": "entropy of generated labels",
    "discriminator_training_auc": "AUC of the discriminator in training",
    "pseudo_accuracy": "accuracy of the selected labels",
    "imbalance_ratio": "imbalance R of the labels trained on",
    "selected": "selected labels",
    "label_accuracy": "accuracy of inferred labels",
    "balanced_label_accuracy": "balanced accuracy of inferred labels",
    "candidate_purity": "purity of the candidates",
    "synthetic": "synthetic items",
    "synthetic_as_made": "share of synthetic items inferred as their class",
    "balance": "smallest class over the largest",
}
CURVES = {
    "Loss": ("loss", "val_loss", "val_log_loss", "val_fixed_tuplet_loss"),
    "Validation data": ("val_accuracy", "val_auc"),
}
# What each method adds: of a run, the first that has any of the figures is drawn.
ADDED = {
    "Safety: the share of training items whose neighbours have the same label": ("safe_share",),
    "Synthetic items: the labels inferred with them": (
        *("label_accuracy", "candidate_purity", "balance"),
    ),
    "Balance of the labels by round": ("imbalance_ratio",),
    "Generated labels and how well the discriminator tells them": (
        *("generated_accuracy", "generator_entropy", "discriminator_training_auc"),
    ),
}
GROUPING = "Grouping: the mean confidence in the labels, by class"
WIDTH = 400  # of a drawing, in its own units
HEIGHT = 150
LINES = 4


def training_sections(folder: Path) -> Fields:
    """Returns the template's values for a run's training: charts, and bars by class."""
    history = _read(folder / HISTORY)
    evaluation = _read(folder / EVALUATION)
    rounds = evaluation.get("rounds", {})
    by_class = evaluation.get("by_class", {}).get("confidence", {})
    charts = [chart(title, history, names, "epoch") for title, names in CURVES.items()]
    title = ""
    bars = [(shown(name), value) for name, value in by_class.items()]
    if bars:
        title = GROUPING
    else:
        for heading, names in ADDED.items():
            added = chart(heading, rounds, names, "round")
            added = added or chart(heading, history, names, "epoch")
            if added:
                charts.append(added)
                break
    return {"charts": list(filter(None, charts)), "bars": bars, "bars_title": title}


def _read(path: Path) -> Fields:
    if path.exists():
        return dict(read_json(path))
    return {}


def chart(
    title: str, values: Mapping[str, Sequence[Any]], names: Sequence[str], step: str
) -> Fields | None:
    """Returns a chart's lines as points of a drawing, or None if no figure has two values.

    Args:
        title: above the chart.
        values: figures by name, one value per step; None and NaN are left out.
        names: of those that are drawn, at most `LINES`.
        step: "epoch" or "round".
    """
    drawn = {}
    for name in names:
        figures = {at: value for at, value in enumerate(values.get(name, ())) if _is_number(value)}
        if len(figures) > 1:
            drawn[name] = pd.Series(figures, dtype=float)
    if not drawn:
        return None
    low = min(map(min, drawn.values()))
    high = max(map(max, drawn.values()))
    last = max(int(curve.index[-1]) for curve in drawn.values())
    scale = 0.0
    if high > low:
        scale = HEIGHT / (high - low)
    lines = []
    for name, curve in drawn.items():
        points = polyline(WIDTH * curve.index / last, HEIGHT - scale * (curve - low))
        lines.append({"label": PLAIN[name], "last": number(curve.iloc[-1]), "points": points})
    bounds = {"low": number(low), "high": number(high), "last": last, "step": step}
    return {"title": title, "lines": lines[:LINES], **bounds}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def by_step(evaluation: NamedValues, classes: Sequence[object]) -> list[dict[str, float]]:
    """Returns the figures of each round of evaluation.json under plain names, for TensorBoard.

    A figure with a value for each class has the class's name after its own.
    """
    rounds = evaluation.get("rounds", {})
    steps: list[dict[str, float]] = [{} for _ in range(max(map(len, rounds.values()), default=0))]
    for name, values in rounds.items():
        for step, value in zip(steps, values, strict=False):
            step |= _named(PLAIN.get(name, name.replace("_", " ")), value, classes)
    last = steps[-1] if steps else {}
    for name, value in evaluation.items():
        if name in PLAIN:
            last |= _named(PLAIN[name], value, classes)
    for name, value in evaluation.get("by_class", {}).items():
        last |= _named(PLAIN.get(name, name), value, classes)
    return steps or [last] * bool(last)


def _named(name: str, value: Any, classes: Sequence[Any]) -> dict[str, float]:
    """Returns a figure, or that of each class, without those that are not numbers."""
    figures = {name: value}
    if isinstance(value, Sequence):
        value = dict(zip(classes, value, strict=False))
    if isinstance(value, Mapping):
        figures = {f"{name}/{label}": x for label, x in value.items()}
    return {label: float(x) for label, x in figures.items() if _is_number(x)}
