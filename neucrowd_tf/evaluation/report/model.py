"""The page's sections on a run: recommendation, test metrics, confusion matrix and calibration."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.metrics import confusion_matrix

from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.types import Array, Fields, Floats, Indices, NamedValues
from neucrowd_tf.errors import one_at_a_time
from neucrowd_tf.evaluation.intervals import Interval, metric_intervals
from neucrowd_tf.evaluation.metrics import CALIBRATION_BINS, classification_metrics
from neucrowd_tf.evaluation.report.text import shown
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.io.run_files import PREDICTIONS

MOST_CLASSES = 30  # of a confusion matrix
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 (macro)",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
}


def model_sections(folder: Path, metrics: NamedValues, class_names: Array) -> Fields:
    """Returns the template's values for a run.

    Args:
        folder: of the run, with predictions.csv.
        metrics: the content of metrics.json.
        class_names: `[C]`; the file quotes those that begin like a formula.
    """
    table = read_predictions(folder / PREDICTIONS)
    rows = np.flatnonzero(table.labels >= 0)
    classes = list(map(shown, class_names.tolist()))
    values = {
        "method": metrics["method"],
        "labels_are": metrics["test_labels"],
        "size": len(rows),
        "classes": classes,
        "meaning": metrics.get("test_meaning", ""),
        "changes": metrics.get("changes", ""),
        "recommendation": None,
    }
    if (recommendation := metrics.get("recommendation")) is not None:
        tried = recommendation["methods"]
        values["recommendation"] = {
            "chosen": recommendation["method"],
            "text": recommendation["text"],
            "rows": [row for row in tried if row["score"] is not None],
            "left_out": [row for row in tried if row["score"] is None],
        }
    if len(rows):
        truth = table.labels[rows]
        probabilities = table.probabilities[rows]
        values |= _scores(truth, probabilities, classes, metrics)
    return values


def _scores(truth: Indices, scores: Floats, classes: list[str], recorded: NamedValues) -> Fields:
    """Returns metrics with intervals, also by class, the confusion matrix and calibration."""
    metrics = classification_metrics(truth, scores)
    if "test_meaning" in recorded:  # expected values, which do not follow from these labels
        test = recorded["test"]
        metrics |= entries_of(test, METRICS)
        bounds = operator.itemgetter("accuracy", "accuracy_low", "accuracy_high")
        intervals = {"accuracy": Interval(*bounds(test))}
    else:
        intervals = metric_intervals(truth, scores)
    with one_at_a_time():
        counts = confusion_matrix(truth, scores.argmax(axis=1), labels=range(len(classes)))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    pairs = zip(counts.tolist(), shares.tolist(), strict=True)
    cells = [list(zip(row, share, strict=True)) for row, share in pairs]
    return {
        "metrics": [
            (label, metrics.get(name), intervals.get(name)) for name, label in METRICS.items()
        ],
        "per_class": [(name, metrics["per_class"][str(code)]) for code, name in enumerate(classes)],
        "headline": metrics,
        "confusion": list(zip(classes, cells, strict=True)) if len(cells) <= MOST_CLASSES else [],
        "calibration": _calibration(truth, scores),
    }


def _calibration(truth: Indices, scores: Floats) -> list[dict[str, float]]:
    """Returns mean confidence and accuracy, with its interval, by bin of confidence."""
    confidence = scores.max(axis=1)
    right = scores.argmax(axis=1) == truth
    last = CALIBRATION_BINS - 1
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), last)
    rows = []
    for code in np.unique(bins):
        inside = bins == code
        trials = stats.binomtest(int(right[inside].sum()), int(inside.sum()))
        low, high = trials.proportion_ci(method="wilson")
        row = {"from": code / CALIBRATION_BINS, "to": (code + 1) / CALIBRATION_BINS}
        row |= {"rows": int(inside.sum()), "confidence": float(confidence[inside].mean())}
        rows.append(row | {"accuracy": float(right[inside].mean()), "low": low, "high": high})
    return rows
