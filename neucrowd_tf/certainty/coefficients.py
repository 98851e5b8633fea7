"""Chance-corrected agreement coefficients with weights, and their bootstrap intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from neucrowd_tf.annotations.statistics import agreement_coefficients
from neucrowd_tf.certainty.estimate import Estimate
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
RESAMPLES = 400


def agreement_weights(size: int, scale: Scale, values: ArrayLike | None = None) -> Array:
    """Returns `[C, C]` how much two labels agree: 1 for equal ones, 0 for the most distant.

    Args:
        size: number of classes, in their order.
        scale: "nominal" (0 or 1), "ordinal" (by the number of pairs of classes between two) or
            "interval" (by the squared distance of `values`).
        values: `[C]` the numbers that classes stand for; by default their places.

    References:
        Gwet (2014), Handbook of inter-rater reliability, chapter 3.
    """
    if scale == "nominal":
        return np.eye(size)
    places = np.arange(size)
    between = np.abs(places[:, None] - places) + 1.0
    distance = between * (between - 1) / 2
    if scale == "interval":
        numbers = np.asarray(places if values is None else values, dtype=np.float64)
        distance = (numbers[:, None] - numbers) ** 2
    return np.asarray(1.0 - distance / max(float(distance.max()), 1e-12))


def agreement_intervals(
    votes: ArrayLike, scale: Scale = "nominal", values: ArrayLike | None = None, *, seed: int = 0
) -> dict[str, Estimate]:
    """Returns the coefficients with 80% intervals from resampled instances.

    Args:
        votes: `[N, C]` vote counts.
        scale: see `agreement_weights`.
        values: see `agreement_weights`.
        seed: of the resamples.

    Raises:
        DataError: no instance has two labels.

    Example:
        >>> agreement_intervals([[3, 0], [0, 3], [2, 1]])["fleiss"].value > 0.5
        True
    """
    counts: NDArray[Any] = np.asarray(votes)
    counts = counts[counts.sum(axis=1) >= 1]
    weights = agreement_weights(counts.shape[1], scale, values)
    estimate = agreement_coefficients(counts, weights)
    if np.isnan(estimate["observed"]):
        raise DataError("agreement: no item has two labels. Agreement needs items that share some.")
    rng = np.random.default_rng(seed)
    # Items with equal votes are drawn together: the number of different rows is small.
    rows, times = np.unique(counts, axis=0, return_counts=True)
    drawn: dict[str, list[float]] = {name: [] for name in estimate}
    for _ in range(RESAMPLES):
        again = rng.multinomial(len(counts), times / len(counts))
        for name, value in agreement_coefficients(np.repeat(rows, again, axis=0), weights).items():
            drawn[name].append(value)
    return {name: Estimate.of(value, drawn[name]) for name, value in estimate.items()}
