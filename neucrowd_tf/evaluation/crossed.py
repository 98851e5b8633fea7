"""Intervals over seeds and test instances together: where all seeds share one test set, an interval
over seeds alone says nothing of other instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation.intervals import Interval, check_confidence
from neucrowd_tf.metrics import instance_brier_scores, instance_log_losses

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Codes = NDArray[np.int64]
    Scores = NDArray[np.float64]


def crossed_interval(differences: ArrayLike, confidence: float = 0.95) -> Interval:
    """Returns the mean of values in a table of runs by instances, with an interval that counts both
    as drawn.

    The variance of the mean is (MS_runs + MS_instances - MS_rest) / (S M), the unbiased estimate
    under two crossed random effects, and no less than that over either of them alone; its degrees
    of freedom are Satterthwaite's.

    Args:
        differences: `[S, M]` the differences of two methods (1, 0 or -1 where they are right or
            wrong) for S seeds on M test instances. One seed gives an interval over instances alone.
        confidence: of the interval.

    Raises:
        DataError: not a table, or fewer than two instances.

    References:
        Searle, Casella and McCulloch (1992), Variance components, section 4.3; Satterthwaite
        (1946).
    """
    table = np.asarray(differences, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise DataError(
            "interval: expected a table of seeds by two instances or more, received shape"
            f" {table.shape}"
        )
    seeds, instances = table.shape
    mean, by_seed, by_instance = table.mean(), table.mean(axis=1), table.mean(axis=0)
    of_instances = seeds * by_instance.var(ddof=1)
    if seeds == 1:
        squares, degrees = np.array([of_instances]), np.array([instances - 1])
        signs = np.array([1.0])
    else:
        of_seeds = instances * by_seed.var(ddof=1)
        rest = table - by_seed[:, None] - by_instance[None, :] + mean
        freedom = np.array([seeds - 1, instances - 1, (seeds - 1) * (instances - 1)])
        all_three = np.array([of_seeds, of_instances, np.square(rest).sum() / freedom[2]])
        signs = np.array([1.0, 1.0, -1.0])
        choices = [(all_three, signs, freedom)]
        choices += [(all_three[[i]], signs[[i]], freedom[[i]]) for i in (0, 1)]
        squares, signs, degrees = max(choices, key=lambda choice: float(choice[0] @ choice[1]))
    variance = float(squares @ signs)
    if variance <= 0:
        return Interval(float(mean), float(mean), float(mean))
    freedom_of_sum = variance**2 / float(np.sum(np.square(squares) / degrees))
    error = np.sqrt(variance / (seeds * instances))
    half = float(stats.t.ppf(0.5 + check_confidence(confidence) / 2, freedom_of_sum) * error)
    return Interval(float(mean), float(mean) - half, float(mean) + half)


def instance_values(
    metric: str, truth: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns `[M]` what each test instance adds to a metric; their mean is the metric.

    For a metric that is no mean over instances these are its value plus the instance's influence on
    it (the infinitesimal jackknife), so that the variance of their mean is the metric's in large
    samples; for AUC that is DeLong's.

    Args:
        metric: "accuracy", "balanced_accuracy", "f1", "auc", "log_loss" or "brier", as
            `classification_metrics` has them.
        truth: `[M]` class codes.
        probabilities: `[M, C]`.

    Raises:
        UsageError: another metric.

    References:
        DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44.
    """
    if metric not in VALUES:
        raise UsageError(f"metric: expected one of {', '.join(VALUES)}, received {metric!r}")
    return VALUES[metric](np.asarray(truth), np.asarray(probabilities, dtype=np.float64))


def _right(truth: Codes, scores: Scores) -> Scores:
    return (scores.argmax(axis=1) == truth).astype(np.float64)


def _recalls(truth: Codes, scores: Scores) -> Scores:
    codes, which, support = np.unique(truth, return_inverse=True, return_counts=True)
    right = _right(truth, scores)
    recall = np.bincount(which, right) / support
    weight = len(truth) / (support[which] * len(codes))
    return recall.mean() + weight * (right - recall[which])


def _f1(truth: Codes, scores: Scores) -> Scores:
    size = scores.shape[1]
    own, given = np.eye(size)[truth], np.eye(size)[scores.argmax(axis=1)]
    both, either = own * given, own + given
    total = either.sum(axis=0)
    found = total > 0
    score = np.divide(2 * both.sum(axis=0), total, out=np.zeros(size), where=found)
    influence = (2 * both - score * either)[:, found] / total[found]
    mean: Scores = score[found].mean() + len(truth) * influence.mean(axis=1)
    return mean


def _auc(truth: Codes, scores: Scores) -> Scores:
    codes = [1] if scores.shape[1] == 2 else np.unique(truth)
    return np.mean([_placements(truth == code, scores[:, code]) for code in codes], axis=0)


def _placements(positive: NDArray[np.bool_], score: Scores) -> Scores:
    """Returns `[M]` an AUC and its instances' influence on it, from the share of the other side
    that each is placed before; NaN with one side alone.
    """
    sides = np.sort(score[positive]), np.sort(score[~positive])
    if not all(map(len, sides)):
        return np.full(len(score), np.nan)
    placed = np.empty(len(score))
    for here, other, sign in ((positive, sides[1], 1), (~positive, sides[0], -1)):
        ends = [np.searchsorted(other, score[here], side) for side in ("left", "right")]
        below = np.mean(ends, axis=0) / len(other)  # ties count half
        placed[here] = below if sign > 0 else 1.0 - below
    area = float(placed[positive].mean())
    weight = len(score) / np.where(positive, positive.sum(), (~positive).sum())
    values: Scores = area + weight * (placed - area)
    return values


VALUES: dict[str, Callable[[Codes, Scores], Scores]] = {
    "accuracy": _right,
    "balanced_accuracy": _recalls,
    "f1": _f1,
    "auc": _auc,
    "log_loss": instance_log_losses,
    "brier": instance_brier_scores,
}
