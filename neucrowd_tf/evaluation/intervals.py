"""How sure a figure is: bootstrap intervals over test rows, t intervals over seeds, Wilson
intervals of proportions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.metrics import (
    check_predictions,
    classification_metrics,
    instance_brier_scores,
    instance_log_losses,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Resamples are made in blocks of about this many numbers.
CELLS_AT_ONCE = 4_000_000
BOOTSTRAPPED = ("accuracy", "balanced_accuracy", "f1", "auc", "log_loss", "brier")


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; `low` and `high` are NaN where one value alone
    gives none.
    """

    estimate: float
    low: float
    high: float


def check_confidence(confidence: float) -> float:
    """Returns `confidence`, refusing what is not between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence: expected a number between 0 and 1, received {confidence}")
    return confidence


def mean_interval(
    values: ArrayLike, confidence: float = 0.95, *, test_train_ratio: float = 0.0
) -> Interval:
    """Student's interval of a mean over runs.

    Args:
        values: `[n]` a value a run; NaN (a run without that metric) is left out.
        confidence: of the interval.
        test_train_ratio: n_test / n_train where the values are a cross-validation's (1 / (folds -
            1)). Its training sets overlap, so the variance of the mean is taken as (1/n + ratio)
            times the sample variance; 0 for independent runs.

    Raises:
        DataError: no value at all.

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[~np.isnan(array)]
    if not len(array):
        raise DataError("interval: expected at least one value, received none")
    mean = float(array.mean())
    if len(array) == 1:
        return Interval(mean, math.nan, math.nan)
    error = float(array.std(ddof=1)) * math.sqrt(1.0 / len(array) + test_train_ratio)
    half = float(stats.t.ppf(0.5 + check_confidence(confidence) / 2, len(array) - 1)) * error
    return Interval(mean, mean - half, mean + half)


def wilson_interval(
    successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's score interval of proportions, `[R]` low and high; (0, 1) where there is no trial.

    References:
        Wilson (1927), Journal of the American Statistical Association 22.
    """
    count, total = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if (count < 0).any() or (count > total).any():
        raise DataError("interval: expected from 0 to all trials as successes")
    squared = float(stats.norm.ppf(0.5 + check_confidence(confidence) / 2)) ** 2
    centre = count + squared / 2
    half = np.sqrt(squared) * np.sqrt(
        np.divide(count * (total - count), total, out=np.zeros_like(total), where=total > 0)
        + squared / 4
    )
    low, high = (centre - half) / (total + squared), (centre + half) / (total + squared)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def weighted_metrics(
    truth: NDArray[np.int64], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Returns what `classification_metrics` gives for B weightings of the rows at once, `[B]` a
    metric.

    Args:
        truth: `[M]` class codes.
        scores: `[M, C]` probabilities.
        weights: `[B, M]`, each row with a positive sum: how often each row was drawn.
    """
    size, total = scores.shape[1], weights.sum(axis=1)
    predicted = scores.argmax(axis=1)
    cells = np.eye(size * size)[truth * size + predicted]
    confusion = (weights @ cells).reshape(-1, size, size)
    right, support, given = (
        np.einsum("bcc->bc", confusion),
        confusion.sum(axis=2),
        confusion.sum(axis=1),
    )
    recall = np.divide(right, support, out=np.zeros_like(right), where=support > 0)
    f1 = np.divide(2 * right, support + given, out=np.zeros_like(right), where=support + given > 0)
    found = {
        "accuracy": right.sum(axis=1) / total,
        "balanced_accuracy": recall.sum(axis=1) / (support > 0).sum(axis=1),
        "f1": f1.sum(axis=1) / (support + given > 0).sum(axis=1),
    }
    if size == 2:
        found["f1_positive"] = f1[:, 1]
    curves = [1] if size == 2 else list(range(size))
    areas = np.stack(
        [_weighted_auc(truth == code, scores[:, code], weights) for code in curves], axis=1
    )
    defined = ~np.isnan(areas)
    found["auc"] = np.divide(
        np.nansum(areas, axis=1),
        defined.sum(axis=1),
        out=np.full(len(weights), np.nan),
        where=defined.any(axis=1),
    )
    found["log_loss"] = weights @ instance_log_losses(truth, scores) / total
    found["brier"] = weights @ instance_brier_scores(truth, scores) / total
    return found


def _weighted_auc(
    positive: NDArray[np.bool_], score: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns `[B]`: the weighted share of pairs (positive, negative) in the right order, ties
    half; NaN without any pair.
    """
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(score[order]) > 0]))
    above = np.add.reduceat(weights[:, order] * positive[order], starts, axis=1)
    below = np.add.reduceat(weights[:, order] * ~positive[order], starts, axis=1)
    pairs = above.sum(axis=1) * below.sum(axis=1)
    won = np.sum(above * (np.cumsum(below, axis=1) - 0.5 * below), axis=1)
    return np.divide(won, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)


def bootstrap_intervals(
    codes: ArrayLike,
    probabilities: ArrayLike,
    *,
    metrics: Sequence[str] = BOOTSTRAPPED,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Percentile bootstrap intervals of metrics over test rows.

    They say how much a figure depends on which rows were tested, not on the training run's seed.

    Args:
        codes: `[M]` true class codes.
        probabilities: `[M, C]`.
        metrics: names that `classification_metrics` gives, `ece` excepted.
        resamples: how often M rows are drawn with replacement.
        confidence: of the intervals.
        seed: of the draws.

    Returns:
        a row a metric with columns estimate, low, high. Resamples in which a metric is undefined
        (AUC with one class) are left out; NaN where it is undefined in all.

    Raises:
        UsageError: an unknown metric, no resamples.
        DataError: see `metrics.check_predictions`.
    """
    truth, scores = check_predictions(codes, probabilities)
    if resamples < 1:
        raise UsageError(f"resamples: expected at least 1, received {resamples}")
    estimates = classification_metrics(truth, scores, calibration=False)
    known = [name for name, value in estimates.items() if isinstance(value, float)]
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise UsageError(f"metrics: expected some of {', '.join(known)}, received {unknown[0]!r}")
    rng = np.random.default_rng([seed, len(truth)])
    at_once = max(1, CELLS_AT_ONCE // len(truth))
    drawn = np.empty((resamples, len(metrics)))
    for start in range(0, resamples, at_once):
        part = drawn[start : start + at_once]
        index = rng.integers(0, len(truth), (len(part), len(truth)))
        counts = np.stack([np.bincount(row, minlength=len(truth)) for row in index]).astype(
            np.float64
        )
        found = weighted_metrics(truth, scores, counts)
        part[:] = np.stack([found[name] for name in metrics], axis=1)
    tail = (1.0 - check_confidence(confidence)) / 2
    bounds = np.full((2, len(metrics)), np.nan)
    defined = ~np.isnan(drawn).all(axis=0)
    bounds[:, defined] = np.nanquantile(drawn[:, defined], [tail, 1.0 - tail], axis=0)
    columns: dict[str, Any] = {
        "estimate": [estimates[name] for name in metrics],
        "low": bounds[0],
        "high": bounds[1],
    }
    return pd.DataFrame(columns, index=pd.Index(list(metrics), name="metric"))
