"""Which candidates are kept and averaged: all but the worst by two criteria and by gold labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping

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


@dataclasses.dataclass(frozen=True, eq=False)
class Selected:
    """The candidates that are averaged.

    Attributes:
        members: their names, the best first.
        corrections: by candidate, `[C]` log shares that are subtracted from its log probabilities
            for a balanced target; zeros for the target as trained, or if none is better.
    """

    members: list[str]
    corrections: dict[str, Floats]


def select(
    held_out: Mapping[str, Floats],
    evidence: Evidence,
    *,
    balanced: bool = False,
    unlike: Collection[str] = (),
) -> Selected:
    """Orders candidates by the mean of their ranks, and leaves the worst out.

    A few true labels change the members only if the average that they lead to is itself clearly
    better by them: their error is larger than most candidates' differences.

    Args:
        held_out: predictions `[N, C]` by candidate.
        evidence: the crowd's labels of these instances, and true labels.
        balanced: whether all classes count equally.
        unlike: candidates that are members unless they are clearly worse, see `pooling.weigh`.
    """
    corrections: dict[str, Floats] = {}
    adjusted: dict[str, Floats] = {}
    for name, predictions in held_out.items():
        corrections[name] = _correction(predictions, evidence, balanced)
        adjusted[name] = shifted(predictions, corrections[name])
    counts = np.ones(len(evidence.consensus))
    if balanced:
        counts = 1.0 / np.bincount(evidence.consensus)[evidence.consensus]
        counts /= counts.mean()
    ranks: list[Floats] = []
    for criterion in CRITERIA.values():
        ranks.append(rankdata([-criterion(p, evidence) for p in adjusted.values()]))
    field = _Field(
        list(adjusted),
        {name: counts * (p.argmax(axis=1) == evidence.consensus) for name, p in adjusted.items()},
        unlike,
    )
    by_crowd = field.members(np.mean(ranks, axis=0))
    labels = evidence.gold[evidence.gold >= 0]
    if balanced:
        weights = 1.0 / np.bincount(labels)[labels]
    else:
        weights = np.ones(len(labels))
    weights /= max(weights.sum(), 1e-12)
    # The number of equal weights with the same variance.
    enough = 0.0
    if len(weights):
        enough = 1.0 / max(float(np.square(weights).sum()), 1e-12)
    if enough < LEAST_GOLD - 1e-6:
        return Selected(by_crowd, corrections)
    tested = {name: p[evidence.gold >= 0] for name, p in adjusted.items()}
    right = np.array([p.argmax(axis=1) == labels for p in tested.values()])
    accuracies = [float(weights @ hits) for hits in right]
    best = right[int(np.argmax(accuracies))]
    bound = float(norm.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, len(right) - 1))))
    worse: list[str] = []
    for name, hits in zip(tested, right, strict=True):
        if _clearly(best, hits, weights, bound):
            worse.append(name)
    if enough >= MANY_GOLD - 1e-6:
        return Selected(field.members(rankdata(np.negative(accuracies)), worse), corrections)
    by_both = field.members(np.mean(ranks, axis=0), worse)
    before = mean_logits([tested[name] for name in by_crowd]).argmax(axis=1) == labels
    after = mean_logits([tested[name] for name in by_both]).argmax(axis=1) == labels
    if _clearly(after, before, weights, float(norm.ppf(CONFIDENCE))):
        return Selected(by_both, corrections)
    return Selected(by_crowd, corrections)


@dataclasses.dataclass(frozen=True, eq=False)
class _Field:
    """The candidates among which members are selected.

    Attributes:
        names: of the candidates, the cheapest first.
        agreement: by candidate, the weight of each instance where it has the consensus label, or 0.
        unlike: see `select`.
    """

    names: list[str]
    agreement: Mapping[str, Floats]
    unlike: Collection[str]

    def members(self, ranks: Floats, worse: Collection[str] = ()) -> list[str]:
        """Returns the members of the average, those with the lowest ranks first.

        Members are not among `worse`, and agree with the consensus nearly as often as the first.
        """
        order = [self.names[index] for index in np.argsort(ranks, kind="stable")]
        remaining = [name for name in order if name not in worse]
        first = self.agreement[remaining[0]]
        near: list[str] = []
        for name in remaining:
            interval = held_out_interval(self.agreement[name], first, 3)
            if not interval.high < -FAR:
                near.append(name)
        better = near[: max(LEAST_MEMBERS, math.ceil(SHARE * len(order)))]
        return [name for name in near if name in better or name in self.unlike]


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
