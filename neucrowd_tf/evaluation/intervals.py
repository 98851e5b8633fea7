"""Confidence intervals: of a mean over runs, a paired difference and a metric."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from neucrowd_tf.declare.types import Floats, Indices
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation.influence import VALUES, instance_values

LEAST_RUNS = 5  # an interval of fewer pairs of runs decides nothing


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; the bounds are NaN for a single value."""

    estimate: float
    low: float
    high: float


def _student(mean: float, error: float, freedom: float, confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise UsageError(f"confidence: expected a number between 0 and 1, received {confidence}")
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    return Interval(mean, mean - half, mean + half)


def mean_interval(
    values: ArrayLike, confidence: float = 0.95, *, test_train_ratio: float = 0.0
) -> Interval:
    """Returns Student's interval of a mean over runs.

    Args:
        values: `[n]` one value per run; NaN (a run without that metric) is left out.
        confidence: of the interval.
        test_train_ratio: n_test / n_train if the values come from a cross-validation (1 / (folds -
            1)). Its training sets overlap, so the variance of the mean is (1/n + ratio) times the
            sample variance. 0 for independent runs.

    Raises:
        DataError: no values.

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
    return _student(mean, error, len(array) - 1, confidence)


def paired_interval(
    first: ArrayLike, second: ArrayLike, confidence: float = 0.95, *, test_train_ratio: float = 0.0
) -> Interval:
    """Returns the mean of first minus second over runs that both methods finished.

    Args:
        first: `[n]` a metric of one method by run; pairs with a NaN are left out.
        second: `[n]` the same metric of the other method in the same runs.
        confidence: of the interval.
        test_train_ratio: see `mean_interval`. With it this is the interval of the corrected
            resampled t-test, without it that of the paired t-test.

    Raises:
        DataError: different numbers of values, or no pair.
    """
    sizes = np.size(first), np.size(second)
    if sizes[0] != sizes[1]:
        raise DataError(
            f"interval: expected as many values of both methods, received {sizes[0]} and {sizes[1]}"
        )
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return mean_interval(differences, confidence, test_train_ratio=test_train_ratio)


def crossed_interval(differences: ArrayLike) -> Interval:
    """Returns the mean of a table of runs by instances, with a 95% interval over both.

    If all seeds share one test set, an interval over seeds alone ignores that other instances
    could have been tested. The variance of the mean is (MS_runs + MS_instances - MS_rest) / (S M),
    the unbiased estimate under two crossed random effects, and at least that over either of them
    alone. Its degrees of freedom are Satterthwaite's.

    Args:
        differences: `[S, M]` differences of two methods (1, 0 or -1 for right and wrong) for S
            seeds on M test instances, at least two. One seed gives an interval over instances
            alone.

    References:
        Searle, Casella and McCulloch (1992), Variance components, section 4.3; Satterthwaite
        (1946).
    """
    table = np.asarray(differences, dtype=np.float64)
    seeds, instances = table.shape
    mean = table.mean()
    by_seed = table.mean(axis=1)
    by_instance = table.mean(axis=0)
    # Mean squares of seeds, of instances and of the rest.
    squares = np.zeros(3)
    squares[1] = seeds * by_instance.var(ddof=1)
    degrees = np.array([seeds - 1, instances - 1, (seeds - 1) * (instances - 1)])
    signs = np.array([1.0, 1.0, -1.0])
    choices = [[1]]
    if seeds > 1:
        residuals = table - by_seed[:, None] - by_instance[None, :] + mean
        squares[0] = instances * by_seed.var(ddof=1)
        squares[2] = np.square(residuals).sum() / degrees[2]
        choices = [[0, 1, 2], [0], [1]]
    parts = max(choices, key=lambda parts: float(squares[parts] @ signs[parts]))
    variance = float(squares[parts] @ signs[parts])
    if variance <= 0:
        return Interval(float(mean), float(mean), float(mean))
    freedom_of_sum = variance**2 / float(np.sum(np.square(squares[parts]) / degrees[parts]))
    error = float(np.sqrt(variance / (seeds * instances)))
    return _student(float(mean), error, freedom_of_sum, 0.95)


def metric_intervals(truth: Indices, probabilities: Floats) -> dict[str, Interval]:
    """Returns a 95% interval over test instances for each metric that has one.

    It is Wilson's for accuracy, and for the others Student's of `instance_values`. It covers
    other test instances, not other seeds of the training run.

    Args:
        truth: `[M]` class codes, at least two.
        probabilities: `[M, C]`.
    """
    intervals = {}
    for metric in VALUES:
        values = instance_values(metric, truth, probabilities)
        if metric == "accuracy":
            wilson = stats.binomtest(int(values.sum()), len(values)).proportion_ci(method="wilson")
            intervals[metric] = Interval(float(values.mean()), wilson.low, wilson.high)
        elif len(values) > 1 and not np.isnan(values).any():
            interval = crossed_interval(values[None])
            most = math.inf if metric == "log_loss" else 1.0 if metric != "brier" else 2.0
            bounds = max(0.0, interval.low), min(most, interval.high)
            intervals[metric] = Interval(interval.estimate, *bounds)
    return intervals
