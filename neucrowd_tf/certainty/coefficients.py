"""Chance-corrected agreement coefficients with weights, and their bootstrap intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from neucrowd_tf.certainty.estimate import LEVEL, Estimate
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


def coefficients(votes: ArrayLike, weights: Array) -> dict[str, float]:
    """Returns observed agreement and three coefficients of vote counts.

    Args:
        votes: `[N, C]`; instances may have different numbers of labels.
        weights: `[C, C]` of `agreement_weights`.

    Returns:
        `observed`, `fleiss`, `krippendorff` and `gwet` (AC1 with nominal weights, otherwise AC2);
        NaN if no instance has two labels.

    References:
        Gwet (2014), Handbook of inter-rater reliability, chapters 4 to 6.
    """
    counts = np.asarray(votes, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0]
    total = counts.sum(axis=1)
    several = total >= 2
    if not several.any():
        return dict.fromkeys(("observed", "fleiss", "krippendorff", "gwet"), float("nan"))
    pairs = (counts * (counts @ weights - 1.0)).sum(axis=1)[several]
    size = total[several]
    observed = float((pairs / (size * (size - 1))).mean())
    shares = (counts / total[:, None]).mean(axis=0)
    by_chance = float(shares @ weights @ shares)
    classes = len(weights)
    gwet = weights.sum() / (classes * max(classes - 1, 1)) * float((shares * (1 - shares)).sum())
    # Krippendorff's: instances count by their labels, and a pair is drawn without replacement.
    mean, number = size.mean(), len(size)
    once = 1.0 / (number * mean)
    paired = (1 - once) * float((pairs / (mean * (size - 1))).mean()) + once
    used = counts[several].sum(axis=0) / (number * mean)
    return {
        "observed": observed,
        "fleiss": _corrected(observed, by_chance),
        "krippendorff": _corrected(paired, float(used @ weights @ used)),
        "gwet": _corrected(observed, float(gwet)),
    }


def _corrected(observed: float, chance: float) -> float:
    return (observed - chance) / (1 - chance) if chance < 1 else float("nan")


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
    estimate = coefficients(counts, weights)
    if np.isnan(estimate["observed"]):
        raise DataError("agreement: no item has two labels. Agreement needs items that share some.")
    rng = np.random.default_rng(seed)
    # Items with equal votes are drawn together: the number of different rows is small.
    rows, times = np.unique(counts, axis=0, return_counts=True)
    drawn: dict[str, list[float]] = {name: [] for name in estimate}
    for _ in range(RESAMPLES):
        again = rng.multinomial(len(counts), times / len(counts))
        for name, value in coefficients(np.repeat(rows, again, axis=0), weights).items():
            drawn[name].append(value)
    quantiles = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    return {
        name: Estimate(value, *map(float, np.nanquantile(drawn[name], quantiles)))
        for name, value in estimate.items()
    }
