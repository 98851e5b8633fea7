"""A value with its interval, as all estimates of certainty are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Integers

LEVEL = 0.8  # of all intervals
RESAMPLES = 400  # of an interval, where resampling is cheap


def resamples(
    rng: np.random.Generator, times: Integers, number: int = RESAMPLES
) -> Iterator[Integers]:
    """Yields `[M]`: how often a resample, with as many rows as the sample, has each row.

    Args:
        rng: draws the resamples.
        times: `[M]` how often the sample has each row; equal rows are drawn together.
        number: of resamples.
    """
    total = int(times.sum())
    shares = times / total
    for _ in range(number):
        yield rng.multinomial(total, shares)


class Estimate(NamedTuple):
    """A value with its 80% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, draws: ArrayLike, level: float = LEVEL) -> Self:
        """Returns a value with the interval of its draws, which holds the value.

        Draws that are NaN do not count; without others the interval is NaN.
        """
        values = np.asarray(draws, np.float64)
        ends = [(1 - level) / 2, (1 + level) / 2]
        if np.isnan(values).all():  # NumPy warns
            return cls(value, float("nan"), float("nan"))
        low, high = np.nanquantile(values, ends)
        return cls(value, min(float(low), value), max(float(high), value))


NOTHING = Estimate(float("nan"), float("nan"), float("nan"))
