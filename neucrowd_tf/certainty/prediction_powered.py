"""Estimates of means and shares from few gold labels and many inferred ones.

Their intervals are valid for gold labels of items that were drawn at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from neucrowd_tf.certainty.estimate import LEVEL, Estimate
from neucrowd_tf.declare.types import Floats
from neucrowd_tf.errors import DataError


def prediction_powered_mean(
    values: ArrayLike,
    predicted: ArrayLike,
    others: ArrayLike,
    *,
    level: float = LEVEL,
    of_others: bool = False,
) -> Estimate:
    """Returns a mean over all instances; predictions narrow its interval but do not bias it.

    The estimate is mean(values) + t (mean(others) - mean(predicted)). The weight t of the
    predictions minimises the variance, so useless predictions get weight 0.

    Args:
        values: `[n]` what gold labels say (1 where an inferred label is right, for example), of two
            or more instances that were drawn at random.
        predicted: `[n]` what was predicted for these instances.
        others: `[m]` what was predicted for the others.
        level: of the interval.
        of_others: whether the interval is for the mean over the m other instances themselves,
            instead of over all instances that could have been drawn.

    Raises:
        DataError: fewer than two gold labels, or shapes that differ.

    Example:
        >>> round(prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0]).value, 3)
        0.633

    References:
        Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference,
        example 1 with the weight of section 6.
    """
    y, f, g = map(_as_floats, (values, predicted, others))
    if y.shape != f.shape or y.ndim != 1 or len(y) < 2 or g.ndim != 1:
        raise DataError(
            "prediction-powered mean: expected two or more gold values and a prediction of each,"
            f" received shapes {y.shape} and {f.shape}, and {g.shape} of the others"
        )
    n = len(y)
    m = max(len(g), 1)
    if not len(g):
        g = f
    spread = np.concatenate([f, g]).var(ddof=1)
    weight = 0.0
    if spread > 0:
        weight = float(np.clip(np.cov(y, f)[0, 1] / ((1 + n / m) * spread), 0.0, 1.0))
    value = float(y.mean() + weight * (g.mean() - f.mean()))
    unexplained = (y - weight * f).var(ddof=1)
    if of_others:
        of_prediction = unexplained
    else:
        of_prediction = weight**2 * spread
    half = float(ndtri(0.5 + level / 2) * np.sqrt(unexplained / n + of_prediction / m))
    return Estimate(value, value - half, value + half)


def _as_floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def prediction_powered_share(
    values: ArrayLike,
    predicted: ArrayLike,
    others: ArrayLike,
    *,
    level: float = LEVEL,
    of_others: bool = False,
) -> Estimate:
    """Returns a share, estimated as a mean, whose interval also holds for shares near 0 or 1.

    If all of a few values are equal, their variance says nothing. So the interval also covers the
    one that follows from one more value of each kind.

    Args:
        values: `[n]` 0 or 1, of instances that were drawn at random.
        predicted: `[n]` predicted probabilities of 1.
        others: `[m]` predicted probabilities for the other instances.
        level: of the interval.
        of_others: see `prediction_powered_mean`.

    Raises:
        DataError: as `prediction_powered_mean`.

    References:
        Agresti and Coull (1998), The American Statistician 52 (values that are added).
    """
    estimate = prediction_powered_mean(values, predicted, others, level=level, of_others=of_others)
    middle = _as_floats(predicted).mean()
    more = np.append(values, [0.0, 1.0]), np.append(predicted, [middle, middle])
    wider = prediction_powered_mean(*more, others, level=level, of_others=of_others)
    value = float(np.clip(estimate.value, 0.0, 1.0))
    low = min(estimate.low, wider.low, value)
    high = max(estimate.high, wider.high, value)
    return Estimate(value, max(low, 0.0), min(high, 1.0))
