"""Intervals over seeds and test instances together: where all seeds share one test set, an interval
over seeds alone says nothing of other instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import Interval, check_confidence, weighted_metrics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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


def crossed_bootstrap(
    truth: NDArray[np.int64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    metric: str,
    *,
    resamples: int = 400,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Returns a paired difference of any metric with an interval over seeds and instances: both are
    drawn with replacement, independently (the pigeonhole bootstrap, which errs on the wide side).

    Args:
        truth: `[M]` class codes.
        first, second: `[S, M, C]` probabilities of the two methods, seed by seed.
        metric: a name that `weighted_metrics` gives.
        resamples: how often seeds and instances are drawn.
        seed: of the draws.

    References:
        Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1.
    """
    if first.shape != second.shape or first.shape[1] != len(truth):
        raise DataError(
            f"comparison: expected probabilities of {len(truth)} instances of both methods,"
            f" received shapes {first.shape} and {second.shape}"
        )
    seeds, instances = first.shape[:2]
    rng = np.random.default_rng([seed, seeds, instances])
    weights = np.stack(
        [
            np.bincount(rng.integers(instances, size=instances), minlength=instances)
            for _ in range(resamples)
        ]
    ).astype(np.float64)
    weights = np.concatenate([np.ones((1, instances)), weights])
    differences = np.stack(
        [
            weighted_metrics(truth, ours, weights)[metric]
            - weighted_metrics(truth, theirs, weights)[metric]
            for ours, theirs in zip(first, second, strict=True)
        ]
    )
    drawn = np.stack([rng.integers(seeds, size=seeds) for _ in range(resamples)])
    means = differences[drawn, np.arange(1, resamples + 1)[:, None]].mean(axis=1)
    tail = (1.0 - check_confidence(confidence)) / 2
    low, high = np.nanquantile(means, [tail, 1.0 - tail])
    return Interval(float(differences[:, 0].mean()), float(low), float(high))
