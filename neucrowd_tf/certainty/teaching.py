"""Labels that follow from the crowd's probabilities and from what gold labels say about annotators.

Two kinds of evidence are combined: the consensus, which gold labels have not touched, and votes
weighted by how often each annotator is right on gold items. How much each counts, and whether a
class is named too often, is learned on the gold items, each of which is scored without its own gold
label. Few gold labels keep the consensus; some thirty can overrule it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from neucrowd_tf.aggregation.base import Codes, apply_gold
from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.declare.types import Floats as Array

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations

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


@dataclasses.dataclass(frozen=True)
class Taught:
    """Probabilities that gold labels taught.

    Attributes:
        probas: `[N, C]`; gold labels are certain.
        blind: `[N, C]` the same, but those of gold items do not depend on their own gold labels.
        weights: of the consensus and, for each group, of even votes and of own accuracies.
    """

    probas: Array
    blind: Array
    weights: Array


def teach(
    crowd: Annotations, consensus: Array, gold: Codes, groups: Sequence[NDArray[np.bool_]] = ()
) -> Taught:
    """Returns probabilities that follow from the consensus and from gold labels.

    Args:
        crowd: the annotations; vote counts alone teach only how much the consensus counts.
        consensus: `[N, C]` calibrated probabilities inferred without the gold labels.
        gold: `[N]` class codes, -1 if unknown; at least one is known.
        groups: `[R]` members of each family; the votes of each have a weight of their own.

    References:
        Wolpert (1992), Stacked generalization, Neural Networks 5.
    """
    rows = np.flatnonzero((gold >= 0) & crowd.annotated)
    features = _features(crowd, consensus, gold, groups)
    weights, log_odds = _fit(features[:, rows], gold[rows])
    probas = _combine(features, weights, log_odds)
    blind = probas.copy()
    order = np.random.default_rng(0).permutation(rows)
    folds = min(FOLDS, len(rows))
    for fold in range(folds if len(rows) > 1 else 0):
        held = order[fold::folds]
        others = np.setdiff1d(rows, held)
        known = gold.copy()
        known[held] = -1
        features = _features(crowd, consensus, known, groups)
        fitted = _fit(features[:, others], gold[others])
        blind[held] = _combine(features[:, held], *fitted)
    if len(rows) == 1:
        blind[rows] = consensus[rows]
    return Taught(apply_gold(probas, gold), blind, weights)


def gold_votes(crowd: Annotations, gold: Codes) -> Array:
    """Returns `[N, C]` log likelihoods of each item's labels by annotators' labels of gold items.

    An annotator's confusion matrix is counted on gold items, and drawn towards that of one who errs
    evenly, whose accuracy is drawn towards chance. An item's own gold label does not count for it.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown.
    """
    size = crowd.num_classes
    people = crowd.num_annotators
    items = crowd.instances
    who = crowd.annotators
    labels = crowd.labels
    true = gold[items]
    marked = true >= 0
    hits = marked & (labels == true)
    right = np.bincount(who, hits, minlength=people)[who] - hits
    total = np.bincount(who, marked, minlength=people)[who] - marked
    accuracy = (right + CHANCE_LABELS / size) / (total + CHANCE_LABELS)
    counts = np.zeros((people, size, size))
    np.add.at(counts, (who[marked], true[marked], labels[marked]), 1.0)
    each = counts.sum(axis=2)
    scores = np.zeros((crowd.num_instances, size))
    for code in range(size):
        own = marked & (true == code)
        even = np.where(labels == code, accuracy, (1.0 - accuracy) / max(size - 1, 1))
        likely = counts[who, code, labels] - own + EVEN_LABELS * even
        likely /= each[who, code] - own + EVEN_LABELS
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


def _features(
    crowd: Annotations, consensus: Array, gold: Codes, groups: Sequence[NDArray[np.bool_]]
) -> Array:
    """Returns `[K, N, C]` log probabilities of the consensus and, by group, what votes add to it.

    These are the votes if all annotators are alike, and by how much annotators' own accuracies
    change them: with few gold labels the first are better known.
    """
    features = [np.log(np.maximum(consensus, 1e-6))]
    if not crowd.has_identities:
        return np.stack(features)
    if groups:
        inside = np.any(groups, axis=0)
    else:
        inside = np.zeros(crowd.num_annotators, dtype=bool)
    for members in (~inside, *groups):
        if members.any():
            votes = crowd.select(members[crowd.annotators])
            even = even_votes(votes, gold)
            scores = gold_votes(votes, gold)
            features += [even, scores - scores.mean(axis=1, keepdims=True) - even]
    return np.stack(features)


def _fit(features: Array, true: Codes) -> tuple[Array, Array]:
    """Returns the weights `[K]` and log odds of classes `[C]` that are most probable a posteriori.

    Args:
        features: `[K, n, C]` of gold items; the first is the consensus, whose weight is near 1.
        true: `[n]` their classes.
    """
    parts, total, size = features.shape
    freedom = min(1.0, total / ENOUGH) ** 3
    freedoms = CONSENSUS_FREEDOM, VOTE_FREEDOM, CLASS_FREEDOM
    spread = np.repeat(freedoms, [1, parts - 1, size]) * freedom
    usual = np.zeros(parts + size)
    usual[0] = 1.0
    right = np.arange(total), true

    def loss(values: Array) -> tuple[float, Array]:
        logs = log_softmax(np.tensordot(values[:parts], features, 1) + values[parts:], axis=1)
        away = np.exp(logs)
        away[right] -= 1.0
        slope = np.concatenate([(features * away).sum(axis=(1, 2)), away.sum(axis=0)])
        apart = (values - usual) / spread
        return float(apart @ apart / 2 - logs[right].sum()), slope + apart / spread

    bounds = [(0.0, MOST_WEIGHT)] * parts + [(-MOST_LOG_ODDS, MOST_LOG_ODDS)] * size
    values = minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds).x
    return values[:parts], values[parts:]


def _combine(features: Array, weights: Array, log_odds: Array) -> Array:
    return np.asarray(softmax(np.tensordot(weights, features, 1) + log_odds, axis=1))
