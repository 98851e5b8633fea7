"""The candidates that are averaged: all but the worst by two criteria and by true labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata

from neucrowd_tf.declare.types import Floats, Mask
from neucrowd_tf.evaluation.intervals import Interval, paired_interval
from neucrowd_tf.methods.auto.average import mean_logits
from neucrowd_tf.methods.auto.evidence import CRITERIA, Evidence, determinant

# The share of the candidates that is averaged, the least number, and how far below the first one's
# agreement with the consensus a member may significantly be.
SHARE = 0.5
LEAST_MEMBERS = 3
FAR = 0.05
# Shares of the classes' log shares that may be subtracted for a balanced target.
CORRECTED = (0.0, 0.25, 0.5, 0.75, 1.0)
# From this many true labels on, candidates that are clearly worse by them are left out if the
# average gains clearly. From the second number on they alone rank.
LEAST_GOLD = 30
MANY_GOLD = 200
CONFIDENCE = 0.95


def held_out_interval(first: ArrayLike, second: ArrayLike, folds: int) -> Interval:
    """Returns the mean difference of two methods' held-out results with its interval.

    The variance of the mean is `s^2 / n (1 + k / (k - 1))`: s^2 is that of the n single
    differences, and the second part corrects for training sets that overlap between k folds. It is
    the corrected resampled t-test with the variance of a fold's mean estimated from all n
    differences (s^2 k / n) rather than from k numbers.

    Args:
        first: `[n]` one method's results by instance (1 for right, 0 for wrong).
        second: `[n]` the other method's.
        folds: k.

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
    """
    ratio = folds / (folds - 1) / max(1, np.size(first))
    return paired_interval(first, second, CONFIDENCE, test_train_ratio=ratio)


@dataclasses.dataclass(frozen=True)
class Ranked:
    """The candidates that are averaged.

    Attributes:
        members: their names, the best first.
        corrections: by candidate, `[C]` log shares that are subtracted from its log probabilities
            for a balanced target; zeros for the target as trained, or if none is better.
    """

    members: list[str]
    corrections: dict[str, Floats]


def rank(
    held_out: Mapping[str, Floats],
    evidence: Evidence,
    *,
    balanced: bool = False,
    unlike: Collection[str] = (),
) -> Ranked:
    """Orders candidates by the mean of their ranks, and leaves the worst out.

    A few true labels change the members only if the average that they lead to is itself clearly
    better by them: their error is larger than most candidates' differences.

    Args:
        held_out: predictions `[N, C]` by candidate.
        evidence: the crowd's labels of these instances, and true labels.
        balanced: whether all classes count equally.
        unlike: candidates that are members unless they are clearly worse, see `pooling.weigh`.
    """
    corrections = {name: _correction(p, evidence, balanced) for name, p in held_out.items()}
    adjusted = {name: shifted(p, corrections[name]) for name, p in held_out.items()}
    scores = [
        {name: rule(p, evidence) for name, p in adjusted.items()} for rule in CRITERIA.values()
    ]
    counts = np.ones(len(evidence.consensus))
    if balanced:
        counts = 1.0 / np.bincount(evidence.consensus)[evidence.consensus]
        counts /= counts.mean()
    agrees = {
        name: counts * (p.argmax(axis=1) == evidence.consensus) for name, p in adjusted.items()
    }
    by_crowd = _chosen(scores, agrees, set(), unlike)
    labels = evidence.gold[evidence.gold >= 0]
    if balanced:
        weights = 1.0 / np.bincount(labels)[labels]
    else:
        weights = np.ones(len(labels))
    weights /= max(weights.sum(), 1e-12)
    # The number of equal weights with the same variance.
    if len(weights):
        enough = 1.0 / max(float(np.square(weights).sum()), 1e-12)
    else:
        enough = 0.0
    if enough < LEAST_GOLD - 1e-6:
        return Ranked(by_crowd, corrections)
    tested = {name: p[evidence.gold >= 0] for name, p in adjusted.items()}
    right = {name: p.argmax(axis=1) == labels for name, p in tested.items()}
    truth = {name: float(weights @ hits) for name, hits in right.items()}
    best = max(truth, key=lambda name: truth[name])
    bound = float(norm.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, len(truth) - 1))))
    worse = {name for name in truth if _clearly(right[best], right[name], weights, bound)}
    if enough >= MANY_GOLD - 1e-6:
        return Ranked(_chosen([truth], agrees, worse, unlike), corrections)
    by_both = _chosen(scores, agrees, worse, unlike)
    after, before = (
        mean_logits([tested[name] for name in members]).argmax(axis=1) == labels
        for members in (by_both, by_crowd)
    )
    gained = _clearly(after, before, weights, float(norm.ppf(CONFIDENCE)))
    return Ranked(by_both if gained else by_crowd, corrections)


def _chosen(
    scores: Sequence[Mapping[str, float]],
    agrees: Mapping[str, Floats],
    worse: set[str],
    unlike: Collection[str],
) -> list[str]:
    """Returns the members of the average, those with the best mean rank by `scores` first.

    Members are not among `worse`, and agree with the consensus nearly as often as the first one.
    """
    ranks = np.mean([rankdata([-score for score in each.values()]) for each in scores], axis=0)
    # Of equal ones the cheaper is first.
    order = [list(agrees)[index] for index in np.argsort(ranks, kind="stable")]
    first = next(name for name in order if name not in worse)
    far = {name for name in order if held_out_interval(agrees[name], agrees[first], 3).high < -FAR}
    members = [name for name in order if name not in worse | far]
    better = members[: max(LEAST_MEMBERS, math.ceil(SHARE * len(order)))]
    return [name for name in members if name in better or name in unlike]


def _clearly(better: Mask, worse: Mask, weights: Floats, bound: float) -> bool:
    """Returns whether the first is right so much more often that its z is above a bound."""
    difference = better.astype(np.float64) - worse
    mean = float(weights @ difference)
    error = float(np.sqrt((weights**2 * (difference - mean) ** 2).sum()))
    return mean > bound * error > 0


def shifted(probabilities: Floats, correction: Floats) -> Floats:
    """Returns probabilities without a correction's log shares, scaled to sum to one."""
    divided = probabilities * np.exp(-correction)
    return np.asarray(divided / divided.sum(axis=1, keepdims=True))


def _correction(probabilities: Floats, evidence: Evidence, balanced: bool) -> Floats:
    """Returns `[C]` what is subtracted from log probabilities for a balanced target.

    This is the part of the predictions' log class shares that maximises the determinant: nothing
    if the method balances classes itself, and little if the crowd's noise makes the probabilities
    of rare classes too even. For two classes the determinant is proportional to balanced accuracy
    less one half, even under mistakes that depend only on the true class.
    """
    shares = np.log(np.maximum(probabilities.mean(axis=0), 1e-6))
    if not balanced:
        return np.zeros_like(shares)
    tried = [determinant(shifted(probabilities, size * shares), evidence) for size in CORRECTED]
    return np.asarray(CORRECTED[int(np.argmax(tried))] * shares)
