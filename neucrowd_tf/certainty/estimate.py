"""A value with its interval, as all estimates of certainty are given."""

from __future__ import annotations

from typing import NamedTuple

LEVEL = 0.8  # of all intervals


class Estimate(NamedTuple):
    """A value with its 80% interval."""

    value: float
    low: float
    high: float
