"""What our runs say of a published value or a claimed gain: one rule, one scale of words.

Place comes first, then width. A value outside the interval is "no", however wide the interval is;
one inside is "yes", or "unclear" where the interval is too wide to say anything. A gain is "yes" if
its interval lies above 0, "no" if it lies below 0 or below the claimed gain, otherwise "unclear".
What follows the word is a remark.
"""

from __future__ import annotations

import math

from scipy import stats
from scipy.special import expit, logit

from neucrowd_tf.evaluation.intervals import Interval
from reproduction.printed import Figure

# A verdict from fewer seeds is provisional; a value's interval says nothing if it is wider than
# this to either side; the gain that a claim without a number must exclude to be "no".
SEEDS, WIDEST, LEAST_GAIN = 10, 0.03, 0.01
YES, NO, UNCLEAR, MEASURED = "yes", "no", "unclear", "measured"
FEWER = ", provisional"
# Metrics that are no shares: counts and others of no upper bound, and correlations.
COUNTS = {"warm_up_samples", "permuted", "exhausted", "group_1", "fit_seconds", "log_loss"}
COUNTS |= {"generator_entropy"}
CORRELATIONS = {"hardness_correlation"}
BOUNDS = {
    "share": (0.0, 1.0),
    "count": (0.0, math.inf),
    "correlation": (-1.0, 1.0),
    "gain": (-math.inf, math.inf),
}
# The scale on which a metric's interval is symmetric, its inverse, its inverse's slope at a mean.
_SCALES = {
    "share": (logit, expit, lambda mean: mean * (1 - mean)),
    "count": (math.log, math.exp, lambda mean: mean),
    "correlation": (math.atanh, math.tanh, lambda mean: 1 - mean**2),
    "gain": (float, float, lambda mean: 1.0),
}


def kind_of(metric: str) -> str:
    """Returns "count", "correlation" or "share": what a metric's values are bounded by."""
    if metric in COUNTS:
        return "count"
    return "correlation" if metric in CORRELATIONS else "share"


def prediction_interval(
    mean: float,
    deviation: float,
    runs: int,
    published: Figure | None = None,
    *,
    kind: str = "share",
) -> Interval:
    """Returns the 95% interval of the mean of as many further runs as a paper averaged.

    Its variance is that of our mean plus that of theirs. Seeds of simulated data draw other test
    instances too; those of a published test set are the same in the paper and here.

    Args:
        mean, deviation, runs: our values, by seed.
        published: the published value, whose runs and deviation count; one run like ours without.
        kind: of the metric by `kind_of`, or "gain"; the interval keeps within its bounds.

    Returns:
        an interval whose bounds are NaN for one run.
    """
    if runs < 2:
        return Interval(mean, math.nan, math.nan)
    ours, freedom = deviation**2 / runs, float(runs - 1)
    paper = published or Figure(mean)
    theirs = (deviation if paper.deviation is None else paper.deviation) ** 2 / paper.runs
    if paper.deviation is not None and paper.runs > 1 and ours + theirs > 0:
        terms = ours**2 / (runs - 1) + theirs**2 / (paper.runs - 1)
        freedom = (ours + theirs) ** 2 / terms
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(ours + theirs)
    low, high = BOUNDS[kind]
    if not low < mean < high:
        return Interval(mean, mean - half, mean + half)
    scale, inverse, slope = _SCALES[kind]
    centre, step = scale(mean), half / slope(mean)
    return Interval(mean, float(inverse(centre - step)), float(inverse(centre + step)))


def value_verdict(published: float | None, interval: Interval, runs: int) -> str:
    """Returns what the interval says of a published value."""
    if published is None or math.isnan(interval.estimate):
        return MEASURED
    few = "" if runs >= SEEDS else FEWER
    if math.isnan(interval.low):
        return UNCLEAR + few
    # Equal runs have no width; half of the last published digit is then the tolerance.
    low = min(interval.low, interval.estimate - 5e-4)
    high = max(interval.high, interval.estimate + 5e-4)
    if not low <= published <= high:
        return NO + (", above" if interval.estimate > published else ", below") + few
    return (UNCLEAR if (high - low) / 2 > WIDEST else YES) + few


def gain_verdict(
    interval: Interval, runs: int, published: float | None = None, margin: float = 0.0
) -> str:
    """Returns what the interval of a mean gain says of a claimed gain.

    Args:
        interval: of the gain.
        runs: pairs of runs.
        published: the claimed gain; None where the claim is an order.
        margin: the loss that the claim allows ("as accurate as").
    """
    few = "" if runs >= SEEDS else FEWER
    if math.isnan(interval.low):
        return UNCLEAR + few
    low, high = interval.low + margin, interval.high + margin
    if high < 0:
        return NO + ", reversed" + few
    if low <= 0:
        claimed = LEAST_GAIN if published is None or published <= 0 else published
        return (NO if high < claimed else UNCLEAR) + few
    if published is None or low <= published <= high:
        return YES + few
    return YES + (", smaller" if high < published else ", larger") + few
