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
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from neucrowd_tf.aggregation.base import Codes, apply_gold
from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats as Array

FOLDS = 10  # in which gold labels are left out
# Labels by chance that are added to each annotator's on gold items, and labels of an annotator who
# errs evenly that are added to each of their classes.
CHANCE_LABELS = 2.0
EVEN_LABELS = 8.0
LEAST_CHANCE = 0.02  # of any label, so that a few gold labels never make one impossible
# Standard deviations of a weight around its value without gold labels, and of a class' log odds, if
# there are ENOUGH gold labels. With fewer they shrink with the cube of their number: five gold
# labels that contradict the crowd do not overrule it.
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
        blind: for each draw of gold items' labels, `[N, C]` the same, but those of gold items do
            not depend on their own gold labels.
        weights: of the consensus and, for each group, of even votes and of own accuracies.
    """

    probas: Array
    blind: Sequence[Array]
    weights: Array


class Evidence(NamedTuple):
    """Annotations and the consensus `[N, C]` that follows from them, calibrated."""

    crowd: Annotations
    consensus: Array


def teach(
    every: Evidence,
    gold: Codes,
    groups: Sequence[NDArray[np.bool_]] = (),
    draws: Sequence[Evidence] = (),
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
    # Weights hold for as many votes as gold items have: those of items with more count as so many.
    for place, members in enumerate(families):
        most = max(_votes_of(one.crowd, members)[rows].max() for one in draws)
        many = np.maximum(_votes_of(crowd, members) / max(most, 1), 1.0)
        features[2 * place + 1 : 2 * place + 3] /= many[:, None]
    probas = _combine(features, weights, log_odds)
    blind = [probas.copy() for _ in draws]
    order = np.random.default_rng(0).permutation(len(rows))
    folds = min(FOLDS, len(rows))
    for fold in range(folds if len(rows) > 1 else 0):
        held = order[fold::folds]
        others = np.setdiff1d(order, held)
        remaining = gold.copy()
        remaining[rows[held]] = -1
        examples = _examples(draws, remaining, families, crowd, rows)
        learned = _fit(examples[:, :, others], gold[rows[others]])
        for into, features in zip(blind, examples.swapaxes(0, 1), strict=True):
            into[rows[held]] = _combine(features[:, held], *learned)
    if len(rows) == 1:
        for into, one in zip(blind, draws, strict=True):
            into[rows] = one.consensus[rows]
    return Taught(apply_gold(probas, gold), blind, weights)


def gold_votes(crowd: Annotations, gold: Codes, records: Annotations | None = None) -> Array:
    """Returns `[N, C]` log likelihoods of each item's labels by annotators' labels of gold items.

    An annotator's confusion matrix is counted on gold items, and drawn towards that of one who errs
    evenly, whose accuracy is drawn towards chance. An item's own gold label does not count for it.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown.
        records: further labels of the same annotators, by which their matrices are counted.
    """
    records = records or crowd
    size = crowd.num_classes
    people = crowd.num_annotators
    true = gold[records.instances]
    marked = true >= 0
    counts = np.zeros((people, size, size))
    cells = records.annotators[marked], true[marked], records.labels[marked]
    np.add.at(counts, cells, 1.0)
    each = counts.sum(axis=2)
    items = crowd.instances
    annotators = crowd.annotators
    labels = crowd.labels
    true = gold[items]
    marked = true >= 0
    right = np.einsum("rcc->r", counts)[annotators] - (marked & (labels == true))
    total = each.sum(axis=1)[annotators] - marked
    accuracy = (right + CHANCE_LABELS / size) / (total + CHANCE_LABELS)
    scores = np.zeros((crowd.num_instances, size))
    for code in range(size):
        itself = marked & (true == code)  # its own count in `counts`
        even = np.where(labels == code, accuracy, (1.0 - accuracy) / max(size - 1, 1))
        likely = counts[annotators, code, labels] - itself + EVEN_LABELS * even
        likely /= each[annotators, code] - itself + EVEN_LABELS
        least = LEAST_CHANCE / max(size - 1, 1)
        logs = np.log(np.clip(likely, least, 1.0 - LEAST_CHANCE))
        scores[:, code] = np.bincount(items, logs, minlength=len(scores))
    return scores


def even_votes(crowd: Annotations, gold: Codes) -> Array:
    """Returns `[N, C]` log likelihoods of labels, less their means, if all annotators are alike.

    Their accuracy is that of the labels of other gold items.

    Args:
        crowd, gold: see `gold_votes`.
    """
    size = crowd.num_classes
    marked = gold[crowd.instances] >= 0
    hits = marked & (crowd.labels == gold[crowd.instances])
    right = hits.sum() - np.bincount(crowd.instances, hits, minlength=crowd.num_instances)
    total = marked.sum() - np.bincount(crowd.instances, marked, minlength=crowd.num_instances)
    accuracy = np.clip((right + 1.0) / (total + size), 0.05, 0.95)
    votes = crowd.vote_counts() - crowd.vote_counts().mean(axis=1, keepdims=True)
    weight = np.log(max(size - 1, 1) * accuracy / (1.0 - accuracy))
    return np.asarray(votes * weight[:, None])


def _families(crowd: Annotations, groups: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """Returns `[R]` members of groups whose votes have a weight of their own."""
    if not crowd.has_identities:
        return []
    rest = ~np.any([np.zeros(crowd.num_annotators, dtype=bool), *groups], axis=0)
    return [members for members in (rest, *groups) if members.any()]


def _votes_of(crowd: Annotations, members: NDArray[np.bool_]) -> Array:
    """Returns `[N]` numbers of labels."""
    inside = members[crowd.annotators].astype(np.float64)
    return np.asarray(np.bincount(crowd.instances, inside, crowd.num_instances), np.float64)


def _features(
    one: Evidence, gold: Codes, families: Sequence[NDArray[np.bool_]], records: Annotations
) -> Array:
    """Returns `[K, N, C]` log probabilities of the consensus and, by group, what votes add to it.

    These are the votes if all annotators are alike, and by how much annotators' own accuracies
    change them: with few gold labels the first are better known.
    """
    features = [np.log(np.maximum(one.consensus, 1e-6))]
    for members in families:
        votes = one.crowd.select(members[one.crowd.annotators])
        even = even_votes(votes, gold)
        scores = gold_votes(votes, gold, records)
        features += [even, scores - scores.mean(axis=1, keepdims=True) - even]
    return np.stack(features)


def _examples(
    draws: Sequence[Evidence],
    gold: Codes,
    families: Sequence[NDArray[np.bool_]],
    records: Annotations,
    rows: Codes,
) -> Array:
    """Returns `[K, D, n, C]` features of some items, by each draw."""
    return np.stack([_features(one, gold, families, records)[:, rows] for one in draws], axis=1)


def _fit(features: Array, true: Codes) -> tuple[Array, Array]:
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

    def loss(values: Array) -> tuple[float, Array]:
        logs = log_softmax(np.tensordot(values[:parts], features, 1) + values[parts:], axis=2)
        away = (np.exp(logs) - right) / draws
        slope = np.concatenate([(features * away).sum(axis=(1, 2, 3)), away.sum(axis=(0, 1))])
        apart = (values - usual) / spread
        value = apart @ apart / 2 - (logs * right).sum() / draws
        return float(value), slope + apart / spread

    bounds = [(0.0, MOST_WEIGHT)] * parts + [(-MOST_LOG_ODDS, MOST_LOG_ODDS)] * size
    values = minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds).x
    return values[:parts], values[parts:]


def _combine(features: Array, weights: Array, log_odds: Array) -> Array:
    return np.asarray(softmax(np.tensordot(weights, features, 1) + log_odds, axis=1))
