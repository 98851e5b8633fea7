"""What the interval of one more run of ours says of a published single run."""

from __future__ import annotations

import math

from scipy import stats

from neucrowd_tf.evaluation.intervals import Interval

# A verdict needs this many seeds, and an interval at most this wide to either side.
SEEDS, WIDEST = 10, 0.03
FEWER = ", fewer than ten seeds"
UNTOLD, NO_FIGURE = "cannot be told", "measured"


def prediction_interval(mean: float, deviation: float, runs: int) -> Interval:
    """Returns the 95% interval of one more run: mean +- t sd sqrt(1 + 1/n); NaN for one run."""
    if runs < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.975, runs - 1)) * deviation * math.sqrt(1 + 1 / runs)
    return Interval(mean, mean - half, mean + half)


def value_verdict(printed: float | None, interval: Interval, runs: int) -> str:
    """Returns what the prediction interval of one run says of a printed single run."""
    if printed is None:
        return NO_FIGURE
    few = "" if runs >= SEEDS else FEWER
    if math.isnan(interval.low) or (interval.high - interval.low) / 2 > WIDEST:
        return UNTOLD + few
    # Equal runs have no width; half of the last printed digit is then the tolerance.
    low = min(interval.low, interval.estimate - 5e-4)
    high = max(interval.high, interval.estimate + 5e-4)
    if low <= printed <= high:
        return "within" + few
    return ("above" if interval.estimate > printed else "below") + few
