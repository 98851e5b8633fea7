"""The page's part on a model: test metrics, confusion, calibration, learning curves, comparison and
recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.evaluation.intervals import Interval, metric_intervals, wilson_interval
from neucrowd_tf.metrics import classification_metrics
from neucrowd_tf.report.pictures import Page
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CELLS = 12  # classes up to which a confusion matrix is a table
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 (macro)",
    "auc": "AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
}
# The values drawn first, by the end of their names.
_CURVES = (
    "loss",
    "val_accuracy",
    "val_auc",
    "val_log_loss",
    "accuracy",
    "val_loss",
    "imbalance",
    "R",
)
MOST_CURVES = 6


def model_part(model: ModelResults, page: Page) -> dict[str, Any]:
    """Returns what the template shows of a model."""
    known = np.flatnonzero(model.labels >= 0)
    classes = [shown(name) for name in model.class_names.tolist()]
    found: dict[str, Any] = {
        "method": model.method,
        "labels_are": model.labels_are,
        "size": len(known),
        "classes": classes,
        "metrics": [],
        "per_class": [],
        "confusion": None,
        "meaning": model.meaning,
        "reliability": [],
        "recommendation": (
            None if model.recommendation is None else _recommendation(model.recommendation, page)
        ),
        "settings": [
            (name, shown(value, 60))
            for name, value in dict(model.settings.get("parameters") or {}).items()
        ],
        "seed": model.settings.get("seed"),
        "comparison": list(model.comparison),
        "method_metrics": METRICS,
    }
    shares = None
    if len(known):
        truth, scores = model.labels[known], model.probabilities[known]
        found |= _scores(truth, scores, classes, model)
        found["reliability"] = _reliability(truth, scores)
        counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
        np.add.at(counts, (truth, scores.argmax(axis=1)), 1)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        if len(classes) <= MOST_CELLS:
            cells = [
                list(zip(row, part, strict=True))
                for row, part in zip(counts.tolist(), shares.tolist(), strict=True)
            ]
            found["confusion"] = list(zip(classes, cells, strict=True))
    found["pictures"] = _pictures(model, shares, page)
    found["curves"] = _curves(model, page)
    return found


def _pictures(
    model: ModelResults, confusion: NDArray[np.float64] | None, page: Page
) -> list[dict[str, str]]:
    """Returns the confusion matrix of many classes, calibration, and the map of the test rows.

    Args:
        confusion: `[C, C]` shares of each true class; None where no true class is known.
    """
    pictures = []
    if confusion is not None:
        if len(confusion) > MOST_CELLS:
            caption = "Confusion matrix, shares of each true class"
            pictures += page.draw(caption, "matrix", confusion, model.labels_are)
        caption = "Calibration: how often predictions of a given confidence are right"
        known = model.labels >= 0
        scored = model.labels[known], model.probabilities[known]
        pictures += page.draw(caption, "calibration", *scored)
    if model.points is not None:
        points, codes, wrong, what = model.points
        caption = (
            f"Map of the test rows: {what}, first two principal components; rings mark wrong"
            " predictions"
        )
        names = model.class_names.tolist()
        pictures += page.draw(caption, "scatter", points, codes, names, wrong)
    return pictures


def _scores(
    truth: NDArray[np.int64], scores: NDArray[np.float64], classes: list[str], model: ModelResults
) -> dict[str, Any]:
    metrics = classification_metrics(truth, scores)
    intervals: dict[str, Interval] = {}
    if model.meaning:  # expected figures, which these labels do not give
        metrics |= {name: model.metrics[name] for name in METRICS if name in model.metrics}
    else:
        intervals = metric_intervals(truth, scores)
    per_class = [(name, metrics["per_class"][str(code)]) for code, name in enumerate(classes)]
    rows = [(label, metrics.get(name), intervals.get(name)) for name, label in METRICS.items()]
    return {"metrics": rows, "per_class": per_class[:50], "headline": metrics}


def _reliability(truth: NDArray[np.int64], scores: NDArray[np.float64]) -> list[dict[str, float]]:
    """Returns what the probabilities are worth: for each tenth of confidence how many predictions,
    how sure they are on average, and how often they are right, with an interval.
    """
    sure, right = scores.max(axis=1), scores.argmax(axis=1) == truth
    tenth = np.clip(np.ceil(sure * 10).astype(int) - 1, 0, 9)
    rows = []
    for place in np.unique(tenth):
        mine = tenth == place
        hits, size = int(right[mine].sum()), int(mine.sum())
        low, high = (float(b[0]) for b in wilson_interval(np.array([hits]), np.array([size])))
        share = hits / size
        rows.append(
            {
                "from": place / 10,
                "to": (place + 1) / 10,
                "rows": size,
                "sure": float(sure[mine].mean()),
                "right": share,
                "low": low,
                "high": high,
            }
        )
    return rows


def _curves(model: ModelResults, page: Page) -> list[dict[str, str]]:
    def order(name: str) -> tuple[int, str]:
        return (_CURVES.index(name) if name in _CURVES else len(_CURVES), name)

    names = [
        name
        for name in sorted(model.curves, key=order)
        if any(len(steps) > 1 for steps, _ in model.curves[name].values())
    ]
    pictures = []
    for name in names[:MOST_CURVES]:
        pictures += page.draw(f"Learning curve: {shown(name)}", "curves", model.curves[name])
    return pictures


def _recommendation(found: Mapping[str, Any], page: Page) -> dict[str, Any]:
    rows = [row for row in found.get("methods", []) if row.get("score") is not None]
    rivals = [row for row in rows if row.get("difference") is not None]
    pictures = []
    if rivals:
        bounds = (
            np.array([100 * float(row[name]) for row in rivals])
            for name in ("difference", "low", "high")
        )
        names = [str(row["method"]) for row in rivals]
        caption = (
            "Held-out accuracy minus that of majority vote and logistic regression, in points, with"
            " intervals"
        )
        pictures = page.draw(caption, "intervals", names, *bounds, "points above mv_lr")
    return {
        "chosen": found.get("method"),
        "text": found.get("text", ""),
        "rows": rows,
        "left_out": [row for row in found.get("methods", []) if row.get("score") is None],
        "pictures": pictures,
    }
