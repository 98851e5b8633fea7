"""Which candidates are averaged: all but the worst by two criteria, and by known truth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, t

from neucrowd_tf.choice import criteria
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.criteria import Evidence

Array = NDArray[np.float64]
CRITERIA = ("determinant", "likelihood of a label")
# The share of the candidates that is averaged, and how far below the first in agreement with the
# consensus one may be, by more than noise.
KEPT = 0.7
FAR = 0.05
# How much of the classes' log shares is taken off for a balanced target.
CORRECTED = (0.0, 0.25, 0.5, 0.75, 1.0)
# Labels known to be right leave out what is clearly worse by them, from so many on, where that
# makes the average clearly better; so many tell more than the crowd's labels do.
LEAST_KNOWN, MANY_KNOWN = 30, 200
CONFIDENCE = 0.95


def paired_interval(
    first: ArrayLike, second: ArrayLike, folds: int, comparisons: int = 1
) -> tuple[float, float, float]:
    """Returns the mean difference of two methods' held-out results and the bounds of its interval.

    The variance of the mean is `s^2 / n (1 + k / (k - 1))`: s^2 that of the n single differences,
    and the second part the correction for training sets that overlap between k folds. It is the
    corrected resampled t-test with the variance of a fold's mean estimated from all n differences
    (s^2 k / n) rather than from k numbers.

    Args:
        first, second: `[n]` results by instance (1 for right, 0 for wrong).
        folds: k.
        comparisons: how many such intervals are to hold together (Bonferroni).

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    size = len(difference)
    middle = float(difference.mean())
    if size < 2:
        return middle, -np.inf, np.inf
    error = float(difference.std(ddof=1)) * np.sqrt((1 + folds / (folds - 1)) / size)
    half = float(t.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, comparisons)), size - 1)) * error
    return middle, middle - half, middle + half


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known to be true.

    Attributes:
        rows: `[N]` class codes of the scored training instances, -1 where unknown.
        labels: `[G]` all known codes, those of validation data last.
        predictions: `[G, C]` by candidate.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    predictions: Mapping[str, Array]

    @classmethod
    def of(
        cls,
        gold: NDArray[np.int64],
        held_out: Mapping[str, Array],
        validation: tuple[Any, NDArray[np.int64]] | None = None,
        on_validation: Mapping[str, Array] | None = None,
    ) -> Known:
        """Collects gold labels `[N]` (-1 where unknown) and validation data."""
        rows = np.flatnonzero(gold >= 0)
        labels, predictions = gold[rows], {name: p[rows] for name, p in held_out.items()}
        if validation is not None and on_validation:
            labels = np.concatenate([labels, validation[1]])
            predictions = {
                name: np.concatenate([p, on_validation[name]]) for name, p in predictions.items()
            }
        return cls(gold, labels, predictions)

    def weights(self, *, balanced: bool) -> Array:
        """Returns `[G]` weights that sum to one: equal, or equal for all classes together."""
        counts = np.bincount(self.labels, minlength=1)
        weights = 1.0 / counts[self.labels] if balanced else np.ones(len(self.labels))
        return np.asarray(weights / max(weights.sum(), 1e-12))


@dataclasses.dataclass(frozen=True)
class Ranked:
    """The candidates' order.

    Attributes:
        order: all names, the best first.
        kept: those that are averaged, in that order.
        corrections: by name, `[C]` log shares that its log probabilities lose for a balanced
            target; zeros where it is better as it is, or the target is as trained.
        scores: by criterion, then by name.
    """

    order: list[str]
    kept: list[str]
    corrections: dict[str, Array]
    scores: dict[str, dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Scored:
    """What the crowd's labels say of candidates.

    Attributes:
        corrections: by name, as of `Ranked`.
        scores: by criterion, then by name.
        agrees: by name, `[N]` whether a prediction is the consensus, times how much the instance
            counts (1 in the mean): all classes alike for a balanced target.
        balanced: whether classes count alike.
    """

    corrections: dict[str, Array]
    scores: dict[str, dict[str, float]]
    agrees: dict[str, Array]
    balanced: bool

    @classmethod
    def of(cls, held_out: Mapping[str, Array], evidence: Evidence, *, balanced: bool) -> Scored:
        """Scores held-out predictions `[N, C]` by the annotations of these instances."""
        corrections = {name: _correction(p, evidence, balanced) for name, p in held_out.items()}
        seen = {name: shifted(p, corrections[name]) for name, p in held_out.items()}
        scores = {
            criterion: {name: criteria.SINGLE[criterion](p, evidence) for name, p in seen.items()}
            for criterion in CRITERIA
        }
        counts = np.ones(evidence.num_instances)
        if balanced:
            counts = 1.0 / np.bincount(evidence.consensus)[evidence.consensus]
            counts /= counts.mean()
        agrees = {
            name: counts * (p.argmax(axis=1) == evidence.consensus) for name, p in seen.items()
        }
        return cls(corrections, scores, agrees, balanced)


def rank(
    held_out: Mapping[str, Array], evidence: Evidence, known: Known, *, balanced: bool = False
) -> Ranked:
    """Orders candidates by the mean of their ranks, and leaves the worst out.

    Args:
        held_out: predictions `[N, C]` by candidate.
        evidence: the crowd's labels of these instances.
        known: gold labels and validation truth.
        balanced: whether classes count alike.
    """
    return with_known(Scored.of(held_out, evidence, balanced=balanced), known)


def with_known(crowd: Scored, known: Known) -> Ranked:
    """Orders candidates that the crowd's labels have scored, by what is known to be true as well.

    A few labels known to be right change what is averaged only where the average that they lead to
    is itself clearly better by them: their error is larger than most candidates' differences.
    """
    corrections, scores = crowd.corrections, crowd.scores
    by_crowd = _chosen(scores, crowd.agrees, set())
    weights = known.weights(balanced=crowd.balanced)
    # As many equal weights would tell as much.
    enough = 1.0 / max(float(np.square(weights).sum()), 1e-12) if len(weights) else 0.0
    if enough < LEAST_KNOWN - 1e-6:
        return Ranked(*by_crowd, corrections, scores)
    tested = {name: shifted(p, corrections[name]) for name, p in known.predictions.items()}
    right = {name: p.argmax(axis=1) == known.labels for name, p in tested.items()}
    truth = {name: float(weights @ hits) for name, hits in right.items()}
    best = max(truth, key=lambda name: truth[name])
    bound = float(norm.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, len(truth) - 1))))
    worse = {name for name in truth if _clearly(right[best], right[name], weights, bound)}
    if enough >= MANY_KNOWN - 1e-6:
        scores = {"known labels": truth}
        return Ranked(*_chosen(scores, crowd.agrees, worse), corrections, scores)
    by_both = _chosen(scores, crowd.agrees, worse)
    after, before = (
        mean_logits([tested[name] for name in kept]).argmax(axis=1) == known.labels
        for kept in (by_both[1], by_crowd[1])
    )
    gained = _clearly(after, before, weights, float(norm.ppf(CONFIDENCE)))
    return Ranked(*(by_both if gained else by_crowd), corrections, scores)


def _chosen(
    scores: Mapping[str, Mapping[str, float]], agrees: Mapping[str, Array], worse: set[str]
) -> tuple[list[str], list[str]]:
    """Returns all candidates' names, the best first, and those that are averaged: none that is
    known to be worse or agrees with the consensus far less than the first.
    """
    ranks = criteria.mean_rank(scores)
    order = sorted(ranks, key=lambda name: -ranks[name])  # of equals the cheaper is first
    first = next(name for name in order if name not in worse)
    far = {name for name in order if paired_interval(agrees[name], agrees[first], 3)[2] < -FAR}
    kept = [name for name in order if name not in worse | far]
    return order, kept[: math.ceil(KEPT * len(order))]


def _clearly(
    better: NDArray[np.bool_], worse: NDArray[np.bool_], weights: Array, bound: float
) -> bool:
    """Returns whether one is right so much more often that its z is above a bound."""
    difference = better.astype(np.float64) - worse
    mean = float(weights @ difference)
    error = float(np.sqrt((weights**2 * (difference - mean) ** 2).sum()))
    return mean > bound * error > 0


def shifted(probabilities: Array, correction: Array) -> Array:
    """Returns probabilities without a correction's log shares, scaled to sum to one."""
    divided = probabilities * np.exp(-correction)
    return np.asarray(divided / divided.sum(axis=1, keepdims=True))


def _correction(probabilities: Array, evidence: Evidence, balanced: bool) -> Array:
    """Returns what log probabilities lose for a balanced target: as much of the classes' log shares
    in predictions as makes predicted classes and labels tell most of each other. That is none where
    the method has balanced them itself, and little where the crowd's noise makes rare classes'
    probabilities too even.

    For two classes the determinant is proportional to balanced accuracy less one half, under
    mistakes that depend on the true class alone too.
    """
    shares = np.log(np.maximum(probabilities.mean(axis=0), 1e-6))
    if not balanced:
        return np.zeros_like(shares)
    found = [
        criteria.determinant(shifted(probabilities, much * shares), evidence) for much in CORRECTED
    ]
    return np.asarray(CORRECTED[int(np.argmax(found))] * shares)
