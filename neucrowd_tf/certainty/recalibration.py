"""Recalibrated probabilities of inferred labels, and a crowd's expected accuracy.

Models of a crowd are too sure, because annotators share mistakes. How much too sure was learned
on public crowds whose true labels are known: a logistic regression says how often an inferred
label is right, from the logits of its posterior and vote share, how little the annotators agree,
and the numbers of labels per item and of classes. Each crowd differs from such a crowd by a shift
of this logit, (a, b): logit + a + b * logit. Without gold labels the shift is unknown and only
widens the intervals, more if annotators agree less. Gold labels estimate it.

The coefficients are in `recalibration.json`; `benchmarks/certainty.py` learns them.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.annotations.statistics import EQUAL, top_classes
from neucrowd_tf.certainty.estimate import LEVEL, NOTHING, Estimate
from neucrowd_tf.declare.types import Floats, Indices, Integers, Mask

DRAWS = 200  # of a crowd's shift
# Bins of equal width; the logits or shares in a bin are replaced by their mean.
LOGIT_BINS = 64
SHARE_BINS = 16
# Of a logit beyond SURE only the share LEAK of the excess counts, which keeps the order of logits.
SURE = 7.0
LEAK = 0.1
TAUGHT = (1.0, 0.25)  # variances of the shift of probabilities that gold labels taught
LITTLE = 0.2  # Krippendorff's alpha below which agreement counts


@functools.cache
def coefficients() -> dict[str, Any]:
    """Returns the coefficients that were learned on public crowds."""
    source = importlib.resources.files("neucrowd_tf.certainty") / "recalibration.json"
    values: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return values


def sizes(votes: Integers) -> dict[str, float]:
    """Returns a crowd's number of items with labels and of classes, and how it shares items.

    Args:
        votes: `[N, C]` vote counts.

    Returns:
        `items`, `classes`, the mean number of `labels`, the share of items with two labels or more
        (`shared`), and Krippendorff's alpha (`agreement`); NaN if unknown.
    """
    return sizes_of(size_sums(votes))


def size_sums(votes: Integers) -> Floats:
    """Returns `[4 + C]` sums over items, from which `sizes_of` follows; parts of a crowd add up.

    They are the numbers of items with labels, of labels and of items with two labels or more, the
    pairs of different labels per label of the latter, and their labels of each class.
    """
    counts = votes.sum(axis=1)
    several = counts > 1
    shared = votes[several].astype(np.float64)
    total = counts[several].astype(np.float64)
    pairs = (total**2 - (shared**2).sum(axis=1)) / (total - 1)
    figures = [np.count_nonzero(counts), counts.sum(), len(total), pairs.sum()]
    return np.array([*figures, *shared.sum(axis=0)])


def sizes_of(sums: Floats) -> dict[str, float]:
    """Returns `sizes` of a crowd with these sums `[4 + C]`."""
    items, labels, shared, pairs = sums[:4].tolist()
    used = sums[4:]
    total = used.sum()
    different = (total**2 - (used**2).sum()) / max(total - 1, 1.0)
    return {
        "items": items,
        "classes": len(used),
        "labels": labels / items if items else float("nan"),
        "shared": shared / items if items else float("nan"),
        "agreement": 1.0 - pairs / different if different > 0 else float("nan"),
    }


def spread_of(votes: Integers) -> float:
    """Returns the factor of the shift's variance: 1 if all annotators agree, e^2 by chance."""
    agreement = sizes(votes)["agreement"]
    return float(np.exp(2 * (1 - np.clip(np.nan_to_num(agreement), 0.0, 1.0))))


def evidence(probas: Floats, votes: Integers, size: Mapping[str, float] | None = None) -> Floats:
    """Returns `[N, 5]` values that say how often labels are right.

    These are the logits of each label's posterior and smoothed vote share and, the same in all
    rows, the crowd's lack of agreement, the logarithm of its number of labels per item, and the
    lack times the logarithm of half its number of classes: what remains by chance.

    Args:
        probas: `[N, C]` posteriors.
        votes: `[N, C]` vote counts; the share is (k + 1 / C) / (n + 1).
        size: of the crowd, if these items are a part of it.
    """
    size = size or sizes(votes)
    lack = min(np.nan_to_num(size["agreement"]) - LITTLE, 0.0)
    rows = np.arange(len(probas))
    labels = probas.argmax(axis=1)
    shares = (votes[rows, labels] + 1.0 / probas.shape[1]) / (votes.sum(axis=1) + 1.0)
    scores = logit(np.clip(probas[rows, labels], 1e-12, 1 - 1e-12))
    bounded = np.clip(scores, -SURE, SURE)
    values = np.empty((len(probas), 5))
    values[:, 0] = bounded + LEAK * (scores - bounded)
    values[:, 1] = logit(np.clip(shares, 0.02, 0.98))
    values[:, 2] = lack
    values[:, 3] = np.log(np.nan_to_num(size["labels"], nan=1.0))
    values[:, 4] = lack * np.log(probas.shape[1] / 2)
    return values


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """How often inferred labels are right, given their posterior and vote share.

    Attributes:
        weights: `[6]` of the intercept and `evidence`.
        shift: `[2]` expected shift (a, b) of this crowd; zero without gold labels.
        covariance: `[2, 2]` of the shift; before a crowd is known, if all its annotators agreed.
        ranges: of `sizes`, within which the calibration was learned.
        fits: whether shift and covariance are this crowd's, from gold labels.

    Example:
        >>> from neucrowd_tf import Consensus
        >>> from neucrowd_tf.datasets.bundled import load_cancer
        >>> crowd = load_cancer(seed=0).annotations
        >>> certainty = Calibration.learned().apply(Consensus().fit(crowd).probas_,
        ...                                         crowd.vote_counts())
        >>> certainty.accuracy().low < certainty.accuracy().value
        True
    """

    weights: Floats
    shift: Floats
    covariance: Floats
    ranges: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    fits: bool = False

    @classmethod
    def learned(cls, method: str = "consensus") -> Calibration:
        """Returns the calibration that was learned on public crowds.

        Args:
            method: the name of the aggregator; those without coefficients of their own get those
                of `consensus`.
        """
        models = coefficients()["models"]
        values = models.get(method, models["consensus"])
        weights = np.array(values["weights"])
        covariance = np.array(values["covariance"])
        return cls(weights, np.zeros(2), covariance, coefficients()["ranges"])

    def widened(self, votes: Integers) -> Calibration:
        """Returns the calibration with the spread of shifts of crowds that agree as this one does.

        It is doubled if the crowd is unlike those of the learning data.

        Args:
            votes: `[N, C]` vote counts.
        """
        if self.fits:
            return self
        factor = spread_of(votes)
        if unlike(votes, self.ranges):
            factor *= 4.0
        return dataclasses.replace(self, covariance=self.covariance * factor)

    def logits(
        self, probas: Floats, votes: Integers, size: Mapping[str, float] | None = None
    ) -> Floats:
        """Returns `[N]` logits of being right, before the crowd's shift; see `evidence`."""
        return self.weights[0] + evidence(probas, votes, size) @ self.weights[1:]

    def fitted(self, probas: Floats, votes: Integers, gold: Indices) -> Calibration:
        """Returns the calibration with this crowd's shift estimated from gold labels.

        Args:
            probas: `[N, C]` posteriors that were inferred without the gold labels.
            votes: `[N, C]` vote counts.
            gold: `[N]` class codes, -1 if unknown.
        """
        tied = top_classes(probas, votes).sum(axis=1) > 1  # how often these are right is known
        rows = np.flatnonzero((gold >= 0) & (votes.sum(axis=1) > 0) & ~tied)
        if not len(rows):
            return self
        right = (probas[rows].argmax(axis=1) == gold[rows]).astype(np.float64)
        start = self.widened(votes)
        shift, covariance = start.shift_of(self.logits(probas, votes)[rows], right)
        return dataclasses.replace(self, shift=shift, covariance=covariance, fits=True)

    def of_taught(self, draws: Floats, gold: Indices) -> Calibration:
        """Returns the calibration of probabilities that gold labels taught.

        They are calibrated but for a shift, which gold labels estimate.

        Args:
            draws: `[D, N, C]`, by draws of gold items' labels; a gold item's do not depend on its
                own gold label.
            gold: `[N]` class codes, -1 if unknown.
        """
        rows = np.flatnonzero(gold >= 0)
        probas = draws[:, rows]
        right = (probas.argmax(axis=2) == gold[rows]).astype(np.float64)
        weights = np.zeros_like(self.weights)
        weights[1] = 1.0  # of the posterior's logit
        start = dataclasses.replace(
            self, weights=weights, shift=np.zeros(2), covariance=np.diag(TAUGHT)
        )
        posterior = logit(np.clip(probas.max(axis=2), 1e-3, 1.0 - 1e-3))
        shift, covariance = start.shift_of(posterior.ravel(), right.ravel(), 1.0 / len(draws))
        return dataclasses.replace(start, shift=shift, covariance=covariance, fits=True)

    def shift_of(self, logits: Floats, right: Floats, weight: float = 1.0) -> tuple[Floats, Floats]:
        """Returns the posterior mode of a crowd's shift, and its covariance (Laplace).

        Args:
            logits: `[n]` see `logits`.
            right: `[n]` whether each label is right, 0 or 1.
            weight: of each label.
        """
        design = np.stack([np.ones(len(logits)), logits], axis=1)
        precision = np.linalg.inv(self.covariance)

        def loss(shift: Floats) -> tuple[float, Floats]:
            z = logits + design @ shift
            away = shift - self.shift
            value = weight * (np.logaddexp(0, z) - right * z).sum() + away @ precision @ away / 2
            return value, weight * design.T @ (expit(z) - right) + precision @ away

        shift = minimize(loss, self.shift, jac=True, tol=1e-9).x
        mean = expit(logits + design @ shift)
        curvature = weight * (design * (mean * (1 - mean))[:, None]).T @ design + precision
        return shift, np.linalg.inv(curvature)

    def apply(self, probas: Floats, votes: Integers, gold: Indices | None = None) -> Certainty:
        """Returns how sure inferred labels are.

        Args:
            probas: `[N, C]` posteriors.
            votes: `[N, C]` vote counts.
            gold: `[N]` class codes whose labels are certain, -1 if unknown.
        """
        if gold is None:
            gold = np.full(len(probas), -1)
        notes = tuple(unlike(votes, self.ranges))
        return Certainty(self.widened(votes), probas, votes, gold, notes)


@dataclasses.dataclass(frozen=True, eq=False)
class Certainty:
    """How sure the inferred labels of one crowd are.

    Attributes:
        calibration: with this crowd's shift.
        posteriors, votes: `[N, C]`, as inferred and counted.
        gold: `[N]` class codes whose labels are certain, -1 elsewhere.
        notes: why this crowd is unlike those that the calibration was learned on; empty if it is
            not.
        ordered: whether labels are medians, which do not tie.
        size: see `sizes`, of the crowd of which these items are a part; None if they are all.
        least: the accuracy that the labels may have at worst, if groups of annotators are opposed
            or gold items are unlike the others.
    """

    calibration: Calibration
    posteriors: Floats
    votes: Integers
    gold: Indices
    notes: tuple[str, ...]
    ordered: bool = False
    size: Mapping[str, float] | None = None
    least: float = 1.0

    @functools.cached_property
    def logits(self) -> Floats:
        """`[N]` logits of being right, before the crowd's shift."""
        return self.calibration.logits(self.posteriors, self.votes, self.size)

    @functools.cached_property
    def shifts(self) -> Floats:
        """`[DRAWS, 2]` draws of the crowd's shift, always the same ones."""
        normal = np.random.default_rng(0).standard_normal((DRAWS, 2))
        normal -= normal.mean(axis=0)
        root = np.linalg.cholesky(self.calibration.covariance)
        return self.calibration.shift + normal @ root.T

    @functools.cached_property
    def tied(self) -> Mask:
        """`[N, C]` see `top_classes`; with gold labels none ties."""
        gold = self.gold[:, None]
        certain = np.arange(self.posteriors.shape[1]) == gold
        return np.where(gold >= 0, certain, top_classes(self.posteriors, self.votes))

    @functools.cached_property
    def num_tied(self) -> Indices:
        """`[N]` how many classes tie for the label; 1 without a tie."""
        return np.where(self.ordered, 1, self.tied.sum(axis=1))

    def right(self, shift: Floats | None = None) -> Floats:
        """Returns `[N]` the probability that each inferred label is right.

        It is at most 1 / k if k classes tie for the label.

        Args:
            shift: `[2]`; by default the crowd's expected one.
        """
        if shift is None:
            shift = self.calibration.shift
        a, b = shift
        most = 1.0 / self.tied.sum(axis=1)
        least = 1.0 / self.posteriors.shape[1]
        chances = np.clip(expit(self.logits + a + b * self.logits), least, most)
        return np.where(self.gold >= 0, 1.0, chances)

    @functools.cached_property
    def probas(self) -> Floats:
        """`[N, C]` recalibrated probabilities, whose most probable classes are the labels."""
        return self.spread(self.right())

    def spread(self, right: Floats) -> Floats:
        """Returns `[N, C]` probabilities in which the inferred label has `right` `[N]`.

        Classes that tie with the label get as much, but for the last digits. The others share the
        rest in proportion to their posteriors, but none gets more than the label.
        """
        if self.posteriors.shape[1] < 2:
            return np.ones_like(self.posteriors)
        probas = np.where(self.tied, 0.0, np.maximum(self.posteriors, 1e-9))
        # Medians do not tie, but another class may be as probable.
        rest = np.maximum(1.0 - self.tied.sum(axis=1) * right, 0.0)
        probas *= (rest / np.maximum(probas.sum(axis=1), 1e-12))[:, None]
        excess = probas.max(axis=1) > right  # an even spread keeps the label on top
        probas[excess] = (rest / np.maximum((~self.tied).sum(axis=1), 1))[excess, None]
        most = (right * (1 - EQUAL))[:, None]  # so that the label is the most probable class
        probas = np.where(self.tied, most, np.minimum(probas, most))
        probas[np.arange(len(right)), self.posteriors.argmax(axis=1)] = right
        certain = np.flatnonzero(self.gold >= 0)
        probas[certain] = 0.0
        probas[certain, self.gold[certain]] = 1.0
        return probas

    def accuracy(self, rows: Indices | None = None) -> Estimate:
        """Returns the expected share of right labels among instances, with its 80% interval.

        The interval holds the crowd's unknown shift and the chance of each label.

        Args:
            rows: the instances; by default all that have labels or a gold label.
        """
        if rows is None:
            rows = np.flatnonzero((self.votes.sum(axis=1) > 0) | (self.gold >= 0))
        if not len(rows):
            return NOTHING
        if self.posteriors.shape[1] < 2:  # no label could differ: this says nothing
            return Estimate(1.0, 0.0, 1.0)
        certain = self.gold[rows] >= 0
        counts = np.bincount(self.bins.of_items[rows[~certain]], minlength=len(self.bins.logits))
        chances = self.bins.right(self.shifts)
        means = (counts @ chances + certain.sum()) / len(rows)
        spreads = np.sqrt(counts @ (chances * (1 - chances))) / len(rows)
        normal = np.random.default_rng(1).standard_normal(DRAWS)
        draws = np.clip(means + spreads * normal, 0.0, 1.0)
        value, low, high = Estimate.of(float(self.right()[rows].mean()), draws)
        return Estimate(value, min(low, self.least), high)

    @functools.cached_property
    def shares(self) -> Floats:
        """`[N, C]` each class's share of what is left beside the label; 0 if it ties with it."""
        others = np.where(self.tied, 0.0, np.maximum(self.posteriors, 1e-9))
        return others / np.maximum(others.sum(axis=1), 1e-12)[:, None]

    @functools.cached_property
    def bins(self) -> Bins:
        """Groups of items whose labels are right about equally often, whatever the shift."""
        most = self.shares.max(axis=1)
        low = self.logits.min(initial=0.0)
        width = max((self.logits.max(initial=0.0) - low) / LOGIT_BINS, 1e-9)
        cell = np.minimum((self.logits - low) / width, LOGIT_BINS - 1).astype(np.int64)
        cell += LOGIT_BINS * np.minimum(most * SHARE_BINS, SHARE_BINS - 1).astype(np.int64)
        cell += LOGIT_BINS * SHARE_BINS * self.tied.sum(axis=1)
        used, of_items, counts = np.unique(cell, return_inverse=True, return_counts=True)
        return Bins(
            of_items,
            np.bincount(of_items, self.logits) / counts,
            np.bincount(of_items, most) / counts,
            used // (LOGIT_BINS * SHARE_BINS),
            self.posteriors.shape[1],
        )


class Bins(NamedTuple):
    """Items in groups that are about equal, for sums under many shifts.

    Attributes:
        of_items: `[N]` the group of each item.
        logits: `[B]` mean logit of being right, before the shift.
        most: `[B]` mean of the largest of `Certainty.shares`.
        ties: `[B]` how many classes tie for the label.
        classes: C.
    """

    of_items: Indices
    logits: Floats
    most: Floats
    ties: Indices
    classes: int

    def right(self, shifts: Floats) -> Floats:
        """Returns `[B, S]` the probability that labels are right under shifts `[S, 2]`."""
        logits = self.logits[:, None]
        chances = expit(logits + shifts[:, 0] + shifts[:, 1] * logits)
        return np.clip(chances, 1.0 / self.classes, 1.0 / self.ties[:, None])

    def others(self, right: Floats) -> tuple[Floats, Floats]:
        """Returns `[B, S]` the probability per share of another class, and of each if even.

        `Certainty.spread` spreads evenly what would raise a class above the label. One of the two
        is 0.

        Args:
            right: `[B, S]` see `right`.
        """
        rest = np.maximum(1.0 - self.ties[:, None] * right, 0.0)
        excess = self.most[:, None] * rest > right
        evenly = rest / np.maximum(self.classes - self.ties, 1)[:, None]
        return np.where(excess, 0.0, rest), np.where(excess, evenly, 0.0)


@dataclasses.dataclass(frozen=True)
class CalibrationByParts:
    """The learned calibration of a crowd that is read by parts.

    Attributes:
        method: the name of the aggregator.
    """

    method: str

    def sums(self, votes: Integers) -> Floats:
        """Returns what has to be known of each part, `[N, C]` vote counts; parts add up."""
        return size_sums(votes)

    def apply(self, probas: Floats, votes: Integers, sums: Floats) -> tuple[Floats, Indices]:
        """Returns `[N, C]` calibrated probabilities of a part, and `[N]` how many classes tie.

        Args:
            probas: `[N, C]` posteriors.
            votes: `[N, C]` vote counts.
            sums: of all parts.
        """
        calibration = Calibration.learned(self.method)
        gold = np.full(len(probas), -1)
        certainty = Certainty(calibration, probas, votes, gold, (), size=sizes_of(sums))
        return certainty.probas, certainty.num_tied


def draws_for(size: int) -> int:
    """Returns how many draws of the shift are affordable for so many numbers per draw."""
    return int(np.clip(2e6 / max(size, 1), 40, DRAWS))


def unlike(votes: Integers, ranges: Mapping[str, Sequence[float]] | None = None) -> list[str]:
    """Returns how a crowd is unlike those that the calibration was learned on.

    Args:
        votes: `[N, C]` vote counts.
        ranges: of `sizes`; by default those of the learned crowds.
    """
    if ranges is None:
        ranges = coefficients()["ranges"]
    measured = sizes(votes)
    if not measured["items"]:
        return ["no item has a label"]
    words = {
        "items": "{:,.0f} items with labels",
        "classes": "{:,.0f} classes",
        "labels": "{:.1f} labels per item",
        "shared": "{:.0%} of items with two labels or more",
        "agreement": "a Krippendorff's alpha of {:.2f}",
    }
    notes = []
    for name, (low, high) in ranges.items():
        if measured[name] < low or measured[name] > high:
            notes.append(words[name].format(measured[name]))
    return notes


def gold_agreement(probas: Floats, votes: Integers, gold: Indices) -> tuple[int, int, Estimate]:
    """Returns how many gold labels inferred labels agree with, of how many, and the share.

    Args:
        probas: `[N, C]` posteriors that were inferred without the gold labels.
        votes: `[N, C]` vote counts; instances without labels are left out.
        gold: `[N]` class codes, -1 if unknown.

    References:
        Wilson (1927), Journal of the American Statistical Association 22 (the interval, 80%).
    """
    from scipy.stats import binomtest

    rows = np.flatnonzero((gold >= 0) & (votes.sum(axis=1) > 0))
    if not len(rows):
        return 0, 0, Estimate(float("nan"), 0.0, 1.0)
    agreed = int((probas[rows].argmax(axis=1) == gold[rows]).sum())
    interval = binomtest(agreed, len(rows)).proportion_ci(LEVEL, "wilson")
    return agreed, len(rows), Estimate(agreed / len(rows), interval.low, interval.high)
