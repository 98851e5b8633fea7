"""Which candidates are kept and averaged: all but the worst by two criteria and by gold labels."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata

from neucrowd_tf.declare.types import Floats, Indices, Mask
from neucrowd_tf.evaluation.intervals import Interval, paired_interval
from neucrowd_tf.methods.auto.average import mean_logits
from neucrowd_tf.methods.auto.evidence import CRITERIA, Evidence, determinant

# The share of the candidates that is averaged, the smallest number of members, and by how much a
# member may agree significantly less often with the consensus than the first one.
SHARE = 0.5
LEAST_MEMBERS = 3
FAR = 0.05
# Shares of the classes' log shares that may be subtracted for a balanced target.
CORRECTED = (0.0, 0.25, 0.5, 0.75, 1.0)
# From the first number of true labels on, candidates that are clearly worse by them are left out if
# the average gains clearly. From the second number on only the true labels rank.
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
    ratio = folds / (folds - 1) / np.size(first)
    return paired_interval(first, second, CONFIDENCE, test_train_ratio=ratio)


@dataclasses.dataclass(frozen=True, eq=False)
class Selected:
    """The candidates that are averaged.

    Attributes:
        members: their names, the best first.
        corrections: by candidate, `[C]` log shares that are subtracted from its log probabilities
            for a balanced target; zeros for the target as trained, or if no other value is better.
        balanced: whether all classes count equally.
        unlike: candidates that make other mistakes than the rest.
    """

    members: list[str]
    corrections: dict[str, Floats]
    balanced: bool = False
    unlike: Collection[str] = ()


def select(
    held_out: Mapping[str, Floats],
    evidence: Evidence,
    *,
    folds: int = 3,
    balanced: bool = False,
    unlike: Collection[str] = (),
) -> Selected:
    """Orders candidates by the mean of their ranks, and leaves the worst out.

    A few true labels change the members only if the average that they lead to is itself clearly
    better by them: their error is larger than most candidates' differences.

    Args:
        held_out: predictions `[N, C]` by candidate, the cheapest first.
        evidence: the crowd's labels of these instances, and true labels.
        folds: number of folds of the cross-validation.
        balanced: whether all classes count equally.
        unlike: candidates that are members unless they are clearly worse, see `pooling.weigh`.
    """
    corrections: dict[str, Floats] = {}
    adjusted = []
    for name, predictions in held_out.items():
        corrections[name] = _correction(predictions, evidence, balanced=balanced)
        adjusted.append(shifted(predictions, corrections[name]))
    ranks = []
    for criterion in CRITERIA:
        ranks.append(rankdata([-criterion(probabilities, evidence) for probabilities in adjusted]))
    ranking = np.mean(ranks, axis=0)
    guesses = np.argmax(adjusted, axis=2)
    counts = _weights(evidence.consensus, balanced=balanced)
    agreement = counts / counts.mean() * (guesses == evidence.consensus)
    is_unlike = np.isin(list(held_out), list(unlike))
    nobody = np.zeros(len(adjusted), dtype=bool)

    def selected(members: Indices) -> Selected:
        names = np.array(list(held_out))[members].tolist()
        return Selected(names, corrections, balanced, unlike)

    members_by = functools.partial(_members, agreement, is_unlike, folds)
    by_crowd = members_by(ranking, nobody)
    known = evidence.gold >= 0
    labels = evidence.gold[known]
    weights = _weights(labels, balanced=balanced)
    weights /= max(weights.sum(), 1e-12)
    # The number of labels with equal weights whose mean has the same variance.
    enough = weights.sum() / max(np.square(weights).sum(), 1e-12)
    if enough < LEAST_GOLD - 1e-6:
        return selected(by_crowd)
    right = guesses[:, known] == labels
    accuracies = [float(weights @ hits) for hits in right]
    best = right[int(np.argmax(accuracies))]
    bound = float(norm.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, len(right) - 1))))
    worse = np.array([_clearly(best, hits, weights, bound) for hits in right])
    if enough >= MANY_GOLD - 1e-6:
        return selected(members_by(rankdata(np.negative(accuracies)), worse))
    by_both = members_by(ranking, worse)
    tested = np.stack(adjusted)[:, known]
    before = mean_logits(tested[by_crowd]).argmax(axis=1) == labels
    after = mean_logits(tested[by_both]).argmax(axis=1) == labels
    if _clearly(after, before, weights, float(norm.ppf(CONFIDENCE))):
        return selected(by_both)
    return selected(by_crowd)


def _weights(labels: Indices, *, balanced: bool) -> Floats:
    """Returns the weight of each of `[N]` labels: 1, or the inverse frequency of its class."""
    if balanced:
        return 1.0 / np.bincount(labels)[labels]
    return np.ones(len(labels))


def _members(agreement: Floats, unlike: Mask, folds: int, ranks: Floats, worse: Mask) -> Indices:
    """Returns which of M candidates are averaged, those with the lowest ranks first.

    Members are not worse, and agree with the consensus nearly as often as the first one does.

    Args:
        agreement: `[M, N]` an instance's weight if a candidate has its consensus label, or 0.
        unlike: `[M]` see `select`.
        folds: see `select`.
        ranks: `[M]`.
        worse: `[M]` candidates that cannot be members.
    """
    order = np.argsort(ranks, kind="stable")
    remaining = order[~worse[order]]
    near = []
    for index in remaining:
        interval = held_out_interval(agreement[index], agreement[remaining[0]], folds)
        if not interval.high < -FAR:
            near.append(index)
    most = max(LEAST_MEMBERS, math.ceil(SHARE * len(order)))
    chosen = (np.arange(len(near)) < most) | unlike[near]
    return np.array(near)[chosen]


def _clearly(better: Mask, worse: Mask, weights: Floats, bound: float) -> bool:
    """Returns whether the first is right so much more often that its z exceeds a bound.

    Args:
        better, worse: `[N]` whether the first and the second are right.
        weights: `[N]` of the instances, which sum to one.
        bound: of the difference over its standard error.
    """
    difference = better.astype(np.float64) - worse
    mean = float(weights @ difference)
    error = float(np.sqrt((weights**2 * (difference - mean) ** 2).sum()))
    return mean > bound * error > 0


def shifted(probabilities: Floats, correction: Floats) -> Floats:
    """Returns probabilities `[N, C]` without a correction's log shares `[C]`; rows sum to 1."""
    divided = probabilities * np.exp(-correction)
    return divided / divided.sum(axis=1, keepdims=True)


def _correction(probabilities: Floats, evidence: Evidence, *, balanced: bool) -> Floats:
    """Returns `[C]` log shares to subtract from log probabilities for a balanced target.

    They are the fraction of the predictions' log class shares that maximises the determinant: zero
    if the method balances classes itself, and little if the crowd's noise makes the probabilities
    of rare classes too even. For two classes the determinant is proportional to balanced accuracy
    less one half, even under mistakes that depend only on the true class.
    """
    shares = np.log(np.maximum(probabilities.mean(axis=0), 1e-6))
    if not balanced:
        return np.zeros_like(shares)
    tried = [determinant(shifted(probabilities, size * shares), evidence) for size in CORRECTED]
    return CORRECTED[int(np.argmax(tried))] * shares
