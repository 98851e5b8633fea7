"""Annotators who differ from the crowd's average in one number, more where their labels show it.

This model is a member of `Consensus`, which stands between one-coin and full Dawid-Skene: it is as
stable as the first for annotators with few labels, and becomes the second for those with many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from neucrowd_tf.aggregation.base import Array, Codes, apply_gold, normalise_counts, normalise_log
from neucrowd_tf.aggregation.shrunk_dawid_skene import average_confusion
from neucrowd_tf.annotations import Annotations

# Labels as good as the average by which an annotator's offset, and then each row of the matrix and
# its errors, are drawn. Results hardly depend on either.
OFFSET_LABELS, ROW_LABELS = 10.0, 16.0
# Rounds in which annotators who err together lose weight, and items as if without correlation.
ROUNDS, UNCORRELATED_ITEMS = 3, 50.0
MOST_PAIRED = 50_000_000  # cells of the tables that these rounds need
MOST_ITER, TOLERANCE = 60, 1e-4
LEAST, TINY = 1e-3, 1e-9


class OffsetFit(NamedTuple):
    """What the model says of a crowd.

    Attributes:
        probas: `[N, C]` posteriors; gold labels are certain.
        errors: `[R, C true, C observed]`.
        priors: `[C]`.
    """

    probas: Array
    errors: Array
    priors: Array


class _Crowd(NamedTuple):
    """Annotations and what the vote shares say about the average annotator.

    Attributes:
        annotations: with identities.
        accuracy: `[C]` of the average annotator, by true class.
        mistakes: `[C true, C observed]` shares of the average annotator's wrong labels.
    """

    annotations: Annotations
    accuracy: Array
    mistakes: Array


def annotator_offsets(crowd: Annotations, gold: Codes | None = None) -> OffsetFit:
    """Infers labels from annotators who each have one offset from the crowd's average.

    Class shares and the average confusion matrix follow from vote shares and stay. An annotator's
    accuracy has an offset on the logit scale, common to all classes. Each row of the annotator's
    matrix is drawn towards that accuracy, and its errors towards the average's, as far as labels do
    not say otherwise. An item's own belief does not count for its annotators. In `ROUNDS` rounds
    annotators whose errors are correlated with those of an item's other annotators lose weight.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown, or None.
    """
    shares = apply_gold(normalise_counts(crowd.vote_counts().astype(np.float64)), gold)
    used = crowd.annotated if gold is None else crowd.annotated | (gold >= 0)
    priors = normalise_counts(shares[used].sum(axis=0) + 0.5)
    average = average_confusion(crowd, shares)
    accuracy = np.clip(np.diag(average), LEAST, 1.0 - LEAST)
    mistakes = average.copy()
    np.fill_diagonal(mistakes, 0.0)
    model = _Crowd(crowd, accuracy, normalise_counts(mistakes))
    beliefs = shares
    weights = np.ones(crowd.num_annotations)
    people, items = crowd.num_annotators, crowd.num_instances
    rounds = ROUNDS if max(people * people, people * items) <= MOST_PAIRED else 0
    for step in range(rounds + 1):
        for _ in range(MOST_ITER):
            before = beliefs
            beliefs = _posteriors(model, before, priors, weights)
            apply_gold(beliefs, gold)
            if np.abs(beliefs - before).max() < TOLERANCE:
                break
        if step < rounds:
            weights = 1.0 / (1.0 + _correlations(model, beliefs))
    counts = _counts(crowd, beliefs)
    expected = _expected_accuracy(model, counts)
    right, wrong = _tables(model, counts, expected)
    size = crowd.num_classes
    errors = wrong.transpose(0, 2, 1).copy()
    errors[:, np.arange(size), np.arange(size)] = right
    return OffsetFit(beliefs, normalise_counts(errors), priors)


def _counts(crowd: Annotations, beliefs: Array) -> Array:
    """Returns `[R, C observed, C true]` expected counts."""
    size = crowd.num_classes
    return np.asarray(crowd.one_hot().T @ beliefs).reshape(-1, size, size)


def _expected_accuracy(model: _Crowd, counts: Array) -> Array:
    """Returns `[R, C]` the accuracy by true class that follows from an annotator's offset."""
    by_class = counts.sum(axis=1)
    total = by_class.sum(axis=1)
    usual = np.clip(by_class @ model.accuracy / np.maximum(total, TINY), LEAST, 1.0 - LEAST)
    right = np.einsum("rcc->r", counts)
    share = (right + OFFSET_LABELS * usual) / (total + OFFSET_LABELS)
    offset = logit(np.clip(share, LEAST, 1.0 - LEAST)) - logit(usual)
    return np.asarray(expit(logit(model.accuracy) + offset[:, None]))


def _tables(model: _Crowd, counts: Array, expected: Array) -> tuple[Array, Array]:
    """Returns `[R, C]` chances of the right label and `[R, C observed, C true]` of wrong ones."""
    by_class, right = counts.sum(axis=1), np.einsum("rcc->rc", counts)
    total = by_class + ROW_LABELS
    mistakes = by_class - right
    wrong = (mistakes + ROW_LABELS * (1.0 - expected)) / total / (mistakes + ROW_LABELS)
    cells = counts + ROW_LABELS * model.mistakes.T
    return (right + ROW_LABELS * expected) / total, cells * wrong[:, None, :]


def _posteriors(model: _Crowd, beliefs: Array, priors: Array, weights: Array) -> Array:
    """Returns `[N, C]` the next beliefs; each item's own belief is taken out of the counts."""
    crowd = model.annotations
    items, who, labels = crowd.instances, crowd.annotators, crowd.labels
    counts = _counts(crowd, beliefs)
    expected = _expected_accuracy(model, counts)[who]
    by_class, right = counts.sum(axis=1)[who], np.einsum("rcc->rc", counts)[who]
    own = beliefs[items]
    total = np.maximum(by_class - own, 0.0) + ROW_LABELS
    mistakes = np.maximum(by_class - right - own, 0.0)
    cells = np.maximum(counts[who, labels] - own, 0.0) + ROW_LABELS * model.mistakes[:, labels].T
    chances = (mistakes + ROW_LABELS * (1.0 - expected)) / total * cells / (mistakes + ROW_LABELS)
    rows = np.arange(len(labels))
    hits = np.maximum(right[rows, labels] - own[rows, labels], 0.0)
    chances[rows, labels] = (hits + ROW_LABELS * expected[rows, labels]) / total[rows, labels]
    logs = np.log(np.maximum(chances, TINY)) * weights[:, None]
    places = sparse.csr_matrix((np.ones(len(rows)), (items, rows)), (len(beliefs), len(rows)))
    scores = np.asarray(places @ logs)
    normalise_log(scores, np.log(priors))
    return scores


def _correlations(model: _Crowd, beliefs: Array) -> Array:
    """Returns `[A]` the sum of positive correlations with the item's other annotators' errors."""
    crowd = model.annotations
    items, who, labels = crowd.instances, crowd.annotators, crowd.labels
    counts = _counts(crowd, beliefs)
    right, _ = _tables(model, counts, _expected_accuracy(model, counts))
    residuals = beliefs[items, labels] - (beliefs[items] * right[who]).sum(axis=1)
    shape = (crowd.num_instances, crowd.num_annotators)
    away = sparse.csr_matrix((residuals, (items, who)), shape)
    squares = sparse.csr_matrix((residuals**2, (items, who)), shape)
    labelled = sparse.csr_matrix((np.ones(len(labels)), (items, who)), shape)
    products = (away.T @ away).toarray()
    shared = (labelled.T @ labelled).toarray()
    lengths = (squares.T @ labelled).toarray()
    correlation = products / np.sqrt(np.maximum(lengths * lengths.T, 1e-12))
    correlation *= shared / (shared + UNCORRELATED_ITEMS)
    np.fill_diagonal(correlation, 0.0)
    sums = np.asarray(labelled @ np.maximum(correlation, 0.0))
    return sums[items, who]
