"""What each test instance adds to a metric, from which intervals over instances follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neucrowd_tf.aggregation.base import Codes
from neucrowd_tf.declare.types import Floats, Mask
from neucrowd_tf.evaluation.auc_and_log_loss import log_losses


def instance_values(metric: str, truth: Codes, probabilities: Floats) -> Floats:
    """Returns `[M]` what each test instance adds to a metric; their mean is the metric.

    For a metric that is not a mean over instances, a value is the metric plus the instance's
    influence on it (the infinitesimal jackknife). The variance of their mean is then the metric's
    variance in large samples; for AUC it is DeLong's. NaN if the metric is undefined.

    Args:
        metric: "accuracy", "balanced_accuracy", "f1", "auc", "log_loss" or "brier", as in
            `classification_metrics`.
        truth: `[M]` class codes.
        probabilities: `[M, C]`.

    References:
        DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44.
    """
    return VALUES[metric](np.asarray(truth), np.asarray(probabilities, dtype=np.float64))


def _correct(truth: Codes, scores: Floats) -> Floats:
    return (scores.argmax(axis=1) == truth).astype(np.float64)


def _recalls(truth: Codes, scores: Floats) -> Floats:
    codes, which, support = np.unique(truth, return_inverse=True, return_counts=True)
    correct = _correct(truth, scores)
    recall = np.bincount(which, correct) / support
    weight = len(truth) / (support[which] * len(codes))
    return recall.mean() + weight * (correct - recall[which])


def _f1(truth: Codes, scores: Floats) -> Floats:
    size = scores.shape[1]
    actual = np.eye(size)[truth]
    predicted = np.eye(size)[scores.argmax(axis=1)]
    both = actual * predicted
    either = actual + predicted
    total = either.sum(axis=0)
    occurs = total > 0
    score = np.divide(2 * both.sum(axis=0), total, out=np.zeros(size), where=occurs)
    influence = (2 * both - score * either)[:, occurs] / total[occurs]
    return score[occurs].mean() + len(truth) * influence.mean(axis=1)


def _auc(truth: Codes, scores: Floats) -> Floats:
    codes = [1] if scores.shape[1] == 2 else np.unique(truth)
    return np.mean([_placements(truth == code, scores[:, code]) for code in codes], axis=0)


def _placements(positive: Mask, score: Floats) -> Floats:
    """Returns `[M]` a curve's area and its instances' influence on it.

    An instance's placement is the share of the other side that it is ordered correctly against.
    NaN if one side is empty.
    """
    sizes = np.where(positive, positive.sum(), (~positive).sum())
    if positive.all() or not positive.any():
        return np.full(len(score), np.nan)
    placed = np.empty(len(score))
    for members in (positive, ~positive):
        opposite = np.sort(score[~members])
        ends = [np.searchsorted(opposite, score[members], side) for side in ("left", "right")]
        placed[members] = np.mean(ends, axis=0) / len(opposite)  # ties count half
    placed[~positive] = 1.0 - placed[~positive]
    area = float(placed[positive].mean())
    weight = len(score) / sizes
    return area + weight * (placed - area)


def _brier_scores(truth: Codes, scores: Floats) -> Floats:
    size = scores.shape[1]
    squares = np.square(scores - np.eye(size)[truth]).sum(axis=1)
    return squares / 2 if size == 2 else squares


VALUES: dict[str, Callable[[Codes, Floats], Floats]] = {
    "accuracy": _correct,
    "balanced_accuracy": _recalls,
    "f1": _f1,
    "auc": _auc,
    "log_loss": log_losses,
    "brier": _brier_scores,
}
