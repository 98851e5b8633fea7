"""What our runs say of a claimed order, and how they compare with a published value.

A gain is "ahead" if its interval lies above 0, "behind" if it lies below 0, otherwise "undecided".
A claim that allows a loss has the same words for its margin: "ahead" if all of the interval is
above minus the margin. How large a published gain is does not change the word.

Our value is "above" or "below" a published one if that is outside our interval, "within" if it is
inside, and "too wide" if the interval says nothing. Fewer than five runs have no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats
from scipy.special import expit, logit

from neucrowd_tf.evaluation.intervals import LEAST_RUNS, Interval
from reproduction.printed import Figure

WIDEST = 0.03  # a value's interval says nothing if it is wider than this to either side
AHEAD = "ahead"
UNDECIDED = "undecided"
BEHIND = "behind"
ABOVE = "above"
WITHIN = "within"
BELOW = "below"
TOO_WIDE = "too wide"
MEASURED = "measured"
NOT_TRAINED = "did not train"
FEW_RUNS = "too few runs"
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
    if metric in CORRELATIONS:
        return "correlation"
    return "share"


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
    ours = deviation**2 / runs
    freedom = float(runs - 1)
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
    centre = scale(mean)
    step = half / slope(mean)
    return Interval(mean, float(inverse(centre - step)), float(inverse(centre + step)))


def value_verdict(published: float | None, interval: Interval, runs: int) -> str:
    """Returns whether our value is above, within or below the interval around a published one."""
    if published is None or math.isnan(interval.estimate):
        return MEASURED
    if runs < LEAST_RUNS or math.isnan(interval.low):
        return FEW_RUNS
    # Equal runs have no width; half of the last published digit is then the tolerance.
    low = min(interval.low, interval.estimate - 5e-4)
    high = max(interval.high, interval.estimate + 5e-4)
    if not low <= published <= high:
        if interval.estimate > published:
            return ABOVE
        return BELOW
    if (high - low) / 2 > WIDEST:
        return TOO_WIDE
    return WITHIN


def gain_verdict(interval: Interval, runs: int, margin: float = 0.0) -> str:
    """Returns who is ahead by the interval of a mean gain.

    Args:
        interval: of the gain.
        runs: pairs of runs.
        margin: the loss that the claim allows ("as accurate as").
    """
    if runs < LEAST_RUNS or math.isnan(interval.low):
        return FEW_RUNS
    if interval.low > -margin:
        return AHEAD
    if interval.high < -margin:
        return BEHIND
    return UNDECIDED


def all_verdict(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim about all of several rivals or parts."""
    if BEHIND in verdicts:
        return BEHIND
    if set(verdicts) == {AHEAD}:
        return AHEAD
    return next(x for x in verdicts if x != AHEAD)


def most_verdict(verdicts: Sequence[str]) -> str:
    """Returns the verdict on a claim about most of several data sets."""
    for word in (AHEAD, BEHIND):
        if 2 * verdicts.count(word) > len(verdicts):
            return word
    return UNDECIDED
