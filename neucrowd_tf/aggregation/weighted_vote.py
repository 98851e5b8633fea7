"""Weighted majority votes: an annotator's weight follows from how often they are right."""

from __future__ import annotations

import abc
from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    coin_errors,
    normalise_counts,
    warn_not_converged,
    with_gold,
)
from neucrowd_tf.aggregation.sums import Shard, counts_against, skills_against, skills_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare.declarations import estimator, fitted, whole
from neucrowd_tf.declare.types import Floats
from neucrowd_tf.errors import DataError

HALVE_EVERY = 20  # steps of ZBS after which their length is halved


def weighted_votes(shard: Shard, weights: Floats) -> Floats:
    """Returns `[n, C]` the sum of the weights `[R]` of those who gave each label.

    If it is below zero for a class, it is counted from the least of the row.
    """
    rows, annotators, labels = shard.cells
    size = shard.num_classes
    count = shard.one_hot.shape[0]
    weight = shard.one_hot.data * weights[annotators]
    votes = np.bincount(rows * size + labels, weight, count * size).reshape(count, size)
    if weights.min(initial=0.0) < 0.0:
        votes -= np.minimum(votes.min(axis=1, keepdims=True), 0.0)
    return np.asarray(votes)


@estimator
class WeightedVote(Aggregator):
    """Base of the weighted votes; all that they sum are agreement counts `[R, 2]`.

    Attributes: see `Aggregator`, and
        weights_: `[R]` each annotator's weight in the last vote.
    `probas_` are shares of the weighted votes, above the least of a row where weights are below
    zero.
    """

    weights_: Floats = fitted()

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        """Weighs the annotators and votes; gold labels stand in for the vote."""
        shard = Shard(crowd.one_hot(), crowd.num_classes, gold)
        self.weights_, self.skills_ = self._weigh(shard)
        votes = weighted_votes(shard, self.weights_)
        self.probas_ = normalise_counts(votes)
        cast = votes.any(axis=1, keepdims=True)
        self.priors_ = normalise_counts((self.probas_ * cast).sum(axis=0))
        self._conclude(gold)
        self.errors_ = coin_errors(self.skills_, crowd.num_classes)

    def _labels(self, shard: Shard, weights: Floats) -> Codes:
        """Returns `[n]` the labels that a weighted vote gives; -1 for an instance without any."""
        votes = weighted_votes(shard, weights)
        # Weights that cancel are a tie of all classes, not an instance without votes.
        votes[(votes.max(axis=1) == 0) & (shard.used > 0)] = 1.0
        labels = with_gold(majority_labels(votes, self.ties, self.seed), shard.gold)
        return np.where(shard.used > 0, labels, -1)

    @abc.abstractmethod
    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        """Returns weights and skills `[R]`."""


@estimator
class Wawa(WeightedVote):
    """Worker agreement with aggregate: weights are shares of agreement with the majority vote.

    Attributes: see `WeightedVote`.

    References:
        As crowd-kit's Wawa (Appen's "worker agreement with aggregate").
    """

    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        labels = self._labels(shard, np.ones(shard.num_annotators))
        skills = skills_against(shard, labels)
        return skills, skills


@estimator
class ZeroBasedSkill(WeightedVote):
    """Wawa repeated: skills move in shrinking steps towards agreement with the weighted vote.

    Attributes: see `WeightedVote`.

    References:
        As crowd-kit's ZeroBasedSkill.
    """

    max_iter: Annotated[int, whole(1), "largest number of steps."] = 100

    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        start = 1.0 / shard.num_classes
        skills = np.full(shard.num_annotators, start + 1e-5)
        rate = 1.0
        for step in range(1, self.max_iter + 1):
            if step % HALVE_EVERY == 0:
                rate /= 2.0
            labels = self._labels(shard, skills)
            moved = skills_against(shard, labels) - skills
            if not moved.any():
                break  # labels and skills stay
            skills = skills + rate * moved
        return skills, skills


@estimator
class GoldMajorityVote(Wawa):
    """Majority vote weighted by the annotators' shares of right labels on gold instances.

    An annotator who labelled none of these has the mean weight. Without any gold labels it is the
    majority vote.

    Attributes: see `WeightedVote`.

    References:
        As crowd-kit's GoldMajorityVote.
    """

    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        if shard.gold is None or not (shard.gold >= 0).any():
            return np.ones(shard.num_annotators), super()._weigh(shard)[1]
        counts = counts_against(shard, shard.gold)
        if not counts.any():
            raise DataError("gold labels: expected one that an annotator labelled, received none")
        skills = skills_of(counts, np.einsum("rcc->", counts) / counts.sum())
        return skills, skills


@estimator
class IterativeWeightedMajorityVote(WeightedVote):
    """Weights C p - 1, p the share of agreement with the last weighted vote, until labels stay.

    Attributes: see `WeightedVote`, and n_iter_ and converged_ (a ConvergenceWarning otherwise).

    References:
        Li and Yu (2014), Error rate bounds and iterative weighted majority voting for
        crowdsourcing, algorithm 1.
    """

    max_iter: Annotated[int, whole(1), "largest number of weighted votes."] = 100
    n_iter_: int = fitted()
    converged_: bool = fitted()

    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        size = shard.num_classes
        weights = np.ones(shard.num_annotators)
        labels = self._labels(shard, weights)
        self.converged_ = False
        for step in range(1, self.max_iter + 1):
            self.n_iter_ = step
            skills = skills_against(shard, labels)
            weights = size * skills - 1.0
            if size == 1 or not weights.any():
                weights = np.ones_like(weights)
            previous = labels
            labels = self._labels(shard, weights)
            if (previous == labels).all():
                self.converged_ = True
                break
        if not self.converged_:
            changed = float(np.mean(previous != labels))
            warn_not_converged(type(self).__name__, self.max_iter, changed, 0.0)
        return weights, skills
