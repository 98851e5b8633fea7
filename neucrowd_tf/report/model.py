"""The page's sections on a model: recommendation, test metrics, calibration and comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.evaluation.intervals import Interval, metric_intervals, wilson_interval
from neucrowd_tf.metrics import CALIBRATION_BINS, classification_metrics
from neucrowd_tf.report.pictures import heatmap
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import shown

MOST_CELLS = 12  # classes of a confusion matrix with numbers
MOST_CLASSES = 50
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 (macro)",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
}


def model_sections(model: ModelResults) -> dict[str, Any]:
    """Returns the template's values for a model."""
    rows = np.flatnonzero(model.labels >= 0)
    classes = [shown(name) for name in model.class_names.tolist()]
    parameters = dict(model.settings.get("parameters") or {})
    values: dict[str, Any] = {
        "method": model.method,
        "labels_are": model.labels_are,
        "size": len(rows),
        "classes": classes,
        "meaning": model.meaning,
        "recommendation": None,
        "settings": [(name, shown(value, 60)) for name, value in parameters.items()],
        "seed": model.settings.get("seed"),
        "comparison": list(model.comparison),
        "method_metrics": METRICS,
    }
    if model.recommendation is not None:
        tried = model.recommendation.get("methods", [])
        values["recommendation"] = {
            "chosen": model.recommendation.get("method"),
            "text": model.recommendation.get("text", ""),
            "rows": [row for row in tried if row.get("score") is not None],
            "left_out": [row for row in tried if row.get("score") is None],
        }
    if len(rows):
        values |= _scores(model.labels[rows], model.probabilities[rows], classes, model)
    return values


def _scores(
    truth: NDArray[np.int64], scores: NDArray[np.float64], classes: list[str], model: ModelResults
) -> dict[str, Any]:
    """Returns metrics with intervals, also by class, the confusion matrix and calibration."""
    metrics = classification_metrics(truth, scores)
    intervals: dict[str, Interval] = {}
    if model.meaning:  # expected values, which do not follow from these labels
        metrics |= {name: model.metrics[name] for name in METRICS if name in model.metrics}
        named = ("accuracy", "accuracy_low", "accuracy_high")
        if all(name in model.metrics for name in named):
            intervals["accuracy"] = Interval(*(model.metrics[name] for name in named))
    else:
        intervals = metric_intervals(truth, scores)
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (truth, scores.argmax(axis=1)), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    confusion = None
    if len(classes) <= MOST_CELLS:
        pairs = zip(counts.tolist(), shares.tolist(), strict=True)
        cells = [list(zip(row, share, strict=True)) for row, share in pairs]
        confusion = list(zip(classes, cells, strict=True))
    per_class = [(name, metrics["per_class"][str(code)]) for code, name in enumerate(classes)]
    return {
        "metrics": [
            (label, metrics.get(name), intervals.get(name)) for name, label in METRICS.items()
        ],
        "per_class": per_class[:MOST_CLASSES],
        "headline": metrics,
        "confusion": confusion,
        "heatmap": None if confusion else heatmap(shares),
        "calibration": _calibration(truth, scores),
    }


def _calibration(truth: NDArray[np.int64], scores: NDArray[np.float64]) -> list[dict[str, float]]:
    """Returns mean confidence and accuracy, with its interval, by bin of confidence."""
    confidence, right = scores.max(axis=1), scores.argmax(axis=1) == truth
    last = CALIBRATION_BINS - 1
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), last)
    rows = []
    for place in np.unique(bins):
        inside = bins == place
        low, high = wilson_interval(right[inside].sum(), inside.sum())
        rows.append(
            {
                "from": place / CALIBRATION_BINS,
                "to": (place + 1) / CALIBRATION_BINS,
                "rows": int(inside.sum()),
                "confidence": float(confidence[inside].mean()),
                "accuracy": float(right[inside].mean()),
                "low": float(low),
                "high": float(high),
            }
        )
    return rows
