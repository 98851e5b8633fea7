"""Labels that follow from the crowd's probabilities and from what gold labels say about annotators.

Two kinds of evidence are combined: the consensus, which gold labels have not touched, and votes
weighted by how often each annotator is right on gold items. How much each counts, and whether a
class is named too often, is learned on the gold items, each of which is scored without its own gold
label. Few gold labels keep the consensus; some thirty can overrule it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from neucrowd_tf.aggregation.base import Codes, apply_gold
from neucrowd_tf.aggregation.families import in_families, labels_of
from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats, Integers, Mask

FOLDS = 10  # of gold labels, each left out once
# Pseudo-labels of each annotator on gold items: at random, and in each class by an annotator whose
# errors are spread evenly.
CHANCE_LABELS = 2.0
EVEN_LABELS = 8.0
LEAST_CHANCE = 0.02  # of any label, so that a few gold labels never make one impossible
# Standard deviations of weights around their values without gold labels, and of classes' log odds,
# if there are ENOUGH gold labels. With fewer labels they shrink with the cube of the number: five
# gold labels that contradict the crowd do not overrule it.
CONSENSUS_FREEDOM = 1.0
VOTE_FREEDOM = 0.5
CLASS_FREEDOM = 0.5
ENOUGH = 15
MOST_WEIGHT = 3.0
MOST_LOG_ODDS = 5.0


@dataclasses.dataclass(frozen=True, eq=False)
class Taught:
    """Probabilities that gold labels taught.

    Attributes:
        probas: `[N, C]`; gold labels are certain.
        blind: `[D, N, C]` the same for each draw of gold items' labels, but those of gold items do
            not depend on their own gold labels.
        weights: of the consensus and, for each group, of even votes and of own accuracies.
    """

    probas: Floats
    blind: Floats
    weights: Floats


class Evidence(NamedTuple):
    """Annotations and the consensus `[N, C]` that follows from them, calibrated."""

    crowd: Annotations
    consensus: Floats


def teach(
    every: Evidence, gold: Codes, groups: Sequence[Mask] = (), draws: Sequence[Evidence] = ()
) -> Taught:
    """Returns probabilities that follow from the consensus and from gold labels.

    Args:
        every: the consensus was inferred without the gold labels; vote counts alone teach only how
            much it counts.
        gold: `[N]` class codes, -1 if unknown; at least one is known.
        groups: `[R]` members of each family; the votes of each have a weight of their own.
        draws: where gold items have more labels than other items, draws of as many as these have:
            weights that are right for many labels are not for few.

    References:
        Wolpert (1992), Stacked generalization, Neural Networks 5.
    """
    draws = draws or [every]
    crowd = every.crowd
    rows = np.flatnonzero((gold >= 0) & crowd.annotated)
    families = _families(crowd, groups)
    examples = _examples(draws, gold, families, crowd, rows)
    weights, log_odds = _fit(examples, gold[rows])
    features = _features(every, gold, families, crowd)
    # Weights were learned from items with at most `most` votes: more votes count as `most`.
    for place, members in enumerate(families):
        most = max(_votes_of(draw.crowd, members)[rows].max() for draw in draws)
        many = np.maximum(_votes_of(crowd, members) / max(most, 1), 1.0)
        features[2 * place + 1 : 2 * place + 3] /= many[:, None]
    probas = _combine(features, weights, log_odds)
    blind = np.repeat(probas[None], len(draws), axis=0)
    if len(rows) == 1:
        blind[:, rows] = [draw.consensus[rows] for draw in draws]
    else:
        order = np.random.default_rng(0).permutation(len(rows))
        folds = min(FOLDS, len(rows))
        for fold in range(folds):
            held_out = order[fold::folds]
            others = np.setdiff1d(order, held_out)
            remaining = gold.copy()
            remaining[rows[held_out]] = -1
            examples = _examples(draws, remaining, families, crowd, rows)
            learned = _fit(examples[:, :, others], gold[rows[others]])
            for probabilities, features in zip(blind, examples.swapaxes(0, 1), strict=True):
                probabilities[rows[held_out]] = _combine(features[:, held_out], *learned)
    return Taught(apply_gold(probas, gold), blind, weights)


def gold_votes(crowd: Annotations, gold: Codes, records: Annotations | None = None) -> Floats:
    """Returns `[N, C]` log likelihoods of each item's labels by annotators' labels of gold items.

    An annotator's confusion matrix is counted on gold items, and drawn towards even mistakes at its
    accuracy, which is drawn towards chance. An item's own gold label does not count for it.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown.
        records: further labels of the same annotators, by which their matrices are counted.
    """
    records = records or crowd
    size = crowd.num_classes
    on_gold = records.select(gold[records.instances] >= 0)
    counts = np.zeros((crowd.num_annotators, size, size))
    np.add.at(counts, (on_gold.annotators, gold[on_gold.instances], on_gold.labels), 1.0)
    by_class = counts.sum(axis=2)
    annotators = crowd.annotators
    labels = crowd.labels
    true = gold[crowd.instances]
    right = np.einsum("rcc->r", counts)[annotators] - (labels == true)
    total = by_class.sum(axis=1)[annotators] - (true >= 0)
    accuracy = (right + CHANCE_LABELS / size) / (total + CHANCE_LABELS)
    others = max(size - 1, 1)
    scores = np.zeros((crowd.num_instances, size))
    for code in range(size):
        itself = true == code  # its own count in `counts`
        even = np.where(labels == code, accuracy, (1.0 - accuracy) / others)
        chances = counts[annotators, code, labels] - itself + EVEN_LABELS * even
        chances /= by_class[annotators, code] - itself + EVEN_LABELS
        logs = np.log(np.clip(chances, LEAST_CHANCE / others, 1.0 - LEAST_CHANCE))
        scores[:, code] = np.bincount(crowd.instances, logs, minlength=len(scores))
    return scores


def even_votes(crowd: Annotations, gold: Codes) -> Floats:
    """Returns `[N, C]` log likelihoods of labels, less their means, if all annotators are alike.

    Their accuracy is that of the labels of other gold items.

    Args:
        crowd, gold: see `gold_votes`.
    """
    size = crowd.num_classes
    votes = crowd.vote_counts().astype(np.float64)
    on_gold = np.where(gold >= 0, votes.sum(axis=1), 0)
    hits = np.where(gold >= 0, votes[np.arange(len(votes)), gold], 0)
    accuracy = (hits.sum() - hits + 1.0) / (on_gold.sum() - on_gold + size)
    accuracy = np.clip(accuracy, 0.05, 0.95)
    weight = np.log(max(size - 1, 1) * accuracy / (1.0 - accuracy))
    return (votes - votes.mean(axis=1, keepdims=True)) * weight[:, None]


def _families(crowd: Annotations, groups: Sequence[Mask]) -> list[Mask]:
    """Returns `[R]` members of groups whose votes have a weight of their own."""
    if not crowd.has_identities:
        return []
    rest = ~in_families(groups, crowd.num_annotators)
    return [members for members in (rest, *groups) if members.any()]


def _votes_of(crowd: Annotations, members: Mask) -> Integers:
    """Returns `[N]` numbers of labels by members `[R]`."""
    return labels_of(crowd, members).vote_counts().sum(axis=1)


def _features(
    evidence: Evidence, gold: Codes, families: Sequence[Mask], records: Annotations
) -> Floats:
    """Returns `[K, N, C]` log probabilities of the consensus and, by group, what votes add to it.

    These are the votes if all annotators are alike, and by how much annotators' own accuracies
    change them: with few gold labels the first are better known.
    """
    features = [np.log(np.maximum(evidence.consensus, 1e-6))]
    for members in families:
        labels = labels_of(evidence.crowd, members)
        even = even_votes(labels, gold)
        scores = gold_votes(labels, gold, records)
        features += [even, scores - scores.mean(axis=1, keepdims=True) - even]
    return np.stack(features)


def _examples(
    draws: Sequence[Evidence],
    gold: Codes,
    families: Sequence[Mask],
    records: Annotations,
    rows: Codes,
) -> Floats:
    """Returns `[K, D, n, C]` features of some items, by each draw."""
    return np.stack([_features(draw, gold, families, records)[:, rows] for draw in draws], axis=1)


def _fit(features: Floats, true: Codes) -> tuple[Floats, Floats]:
    """Returns the weights `[K]` and log odds of classes `[C]` that are most probable a posteriori.

    Args:
        features: `[K, D, n, C]` of gold items, by draws of their labels; the first is the
            consensus, whose weight is near 1.
        true: `[n]` their classes.
    """
    parts, draws, total, size = features.shape
    freedom = min(1.0, total / ENOUGH) ** 3
    freedoms = CONSENSUS_FREEDOM, VOTE_FREEDOM, CLASS_FREEDOM
    spread = np.repeat(freedoms, [1, parts - 1, size]) * freedom
    usual = np.zeros(parts + size)
    usual[0] = 1.0
    right = np.eye(size)[true]

    def loss(values: Floats) -> tuple[float, Floats]:
        logs = log_softmax(np.tensordot(values[:parts], features, 1) + values[parts:], axis=2)
        surplus = (np.exp(logs) - right) / draws
        slope = np.concatenate([(features * surplus).sum(axis=(1, 2, 3)), surplus.sum(axis=(0, 1))])
        away = (values - usual) / spread
        value = away @ away / 2 - (logs * right).sum() / draws
        return float(value), slope + away / spread

    bounds = [(0.0, MOST_WEIGHT)] * parts + [(-MOST_LOG_ODDS, MOST_LOG_ODDS)] * size
    values = minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds).x
    return values[:parts], values[parts:]


def _combine(features: Floats, weights: Floats, log_odds: Floats) -> Floats:
    """Returns probabilities `[n, C]` of features `[K, n, C]`."""
    return softmax(np.tensordot(weights, features, 1) + log_odds, axis=1)
