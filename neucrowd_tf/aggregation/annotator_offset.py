"""Annotators who differ from the crowd's average in one number, more where their labels show it.

This model is a member of `Consensus`, which stands between one-coin and full Dawid-Skene: it is as
stable as the first for annotators with few labels, and becomes the second for those with many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from neucrowd_tf.aggregation.base import (
    Codes,
    apply_gold,
    expected_counts,
    labelled_rows,
    normalise_counts,
    normalise_log,
)
from neucrowd_tf.aggregation.shrunk_dawid_skene import average_confusion
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats

# Pseudo-labels of the average annotator, for each annotator's offset and for each row of the
# annotator's matrix. Results hardly depend on these numbers.
OFFSET_LABELS = 10.0
ROW_LABELS = 16.0
# Rounds in which annotators who err together lose weight. As many items without correlation are
# added to those that two annotators share, as few items show a correlation by chance.
ROUNDS = 3
UNCORRELATED_ITEMS = 50.0
MOST_PAIRED = 50_000_000  # cells of the tables that these rounds need
MOST_ITER = 60
TOLERANCE = 1e-4
LEAST = 1e-3
TINY = 1e-9
BLOCK = 4096  # annotations whose numbers fit into the processor's cache


class OffsetFit(NamedTuple):
    """What the model says of a crowd.

    Attributes:
        probas: `[N, C]` posteriors; gold labels are certain.
        errors: `[R, C true, C observed]`.
        priors: `[C]`.
    """

    probas: Floats
    errors: Floats
    priors: Floats


class _Crowd(NamedTuple):
    """Annotations and what the vote shares say about the average annotator.

    Attributes:
        annotations: with identities.
        accuracy: `[C]` of the average annotator, by true class.
        mistakes: `[C true, C observed]` shares of the average annotator's wrong labels.
        by_label: `[R * C, N]` see `neucrowd_tf.aggregation.sums.Shard.transposed`.
        places: `[N, A]` ones where an annotation is of an instance.
    """

    annotations: Annotations
    accuracy: Floats
    mistakes: Floats
    by_label: sparse.csc_matrix
    places: sparse.csr_matrix


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
    priors = normalise_counts(shares[labelled_rows(crowd, gold)].sum(axis=0) + 0.5)
    average = average_confusion(crowd, shares)
    accuracy = np.clip(np.diag(average), LEAST, 1.0 - LEAST)
    mistakes = average.copy()
    np.fill_diagonal(mistakes, 0.0)
    rows = np.arange(crowd.num_annotations)
    shape = (crowd.num_instances, len(rows))
    places = sparse.csr_matrix((np.ones(len(rows)), (crowd.instances, rows)), shape)
    model = _Crowd(crowd, accuracy, normalise_counts(mistakes), crowd.one_hot().T, places)
    beliefs = shares
    weights = np.ones(crowd.num_annotations)
    num_annotators = crowd.num_annotators
    num_instances = crowd.num_instances
    rounds = 0
    if num_annotators * max(num_annotators, num_instances) <= MOST_PAIRED:
        rounds = ROUNDS
    for step in range(rounds + 1):
        for _ in range(MOST_ITER):
            before = beliefs
            beliefs = _posteriors(model, before, priors, weights)
            apply_gold(beliefs, gold)
            if np.abs(beliefs - before).max() < TOLERANCE:
                break
        if step < rounds:
            weights = 1.0 / (1.0 + _correlations(model, beliefs))
    right, wrong = _tables(model, beliefs)
    size = crowd.num_classes
    errors = wrong.transpose(0, 2, 1).copy()
    errors[:, np.arange(size), np.arange(size)] = right
    return OffsetFit(beliefs, normalise_counts(errors), priors)


def _expected_accuracy(model: _Crowd, counts: Floats) -> Floats:
    """Returns `[R, C]` the accuracy by true class that follows from an annotator's offset."""
    by_class = counts.sum(axis=1)
    total = by_class.sum(axis=1)
    usual = np.clip(by_class @ model.accuracy / np.maximum(total, TINY), LEAST, 1.0 - LEAST)
    right = np.einsum("rcc->r", counts)
    share = (right + OFFSET_LABELS * usual) / (total + OFFSET_LABELS)
    offset = logit(np.clip(share, LEAST, 1.0 - LEAST)) - logit(usual)
    return expit(logit(model.accuracy) + offset[:, None])


def _tables(model: _Crowd, beliefs: Floats) -> tuple[Floats, Floats]:
    """Returns `[R, C]` chances of the right label and `[R, C observed, C true]` of wrong ones."""
    counts = expected_counts(model.by_label, beliefs)
    expected = _expected_accuracy(model, counts)
    by_class = counts.sum(axis=1)
    right = np.einsum("rcc->rc", counts)
    total = by_class + ROW_LABELS
    mistakes = by_class - right
    wrong = (mistakes + ROW_LABELS * (1.0 - expected)) / total / (mistakes + ROW_LABELS)
    cells = counts + ROW_LABELS * model.mistakes.T
    return (right + ROW_LABELS * expected) / total, cells * wrong[:, None, :]


def _posteriors(model: _Crowd, beliefs: Floats, priors: Floats, weights: Floats) -> Floats:
    """Returns `[N, C]` the next beliefs; each item's own belief is taken out of the counts."""
    crowd = model.annotations
    counts = expected_counts(model.by_label, beliefs)
    by_class = counts.sum(axis=1)
    hits = np.einsum("rcc->rc", counts)
    expected = _expected_accuracy(model, counts)
    size = crowd.num_classes
    cells = counts.reshape(-1, size)
    usual = ROW_LABELS * model.mistakes.T
    usually_right = ROW_LABELS * expected
    usually_wrong = ROW_LABELS * (1.0 - expected)
    wrong = by_class - hits
    logs = np.empty((crowd.num_annotations, size))
    for start in range(0, len(logs), BLOCK):
        span = slice(start, start + BLOCK)
        annotators = crowd.annotators[span].astype(np.int64)
        labels = crowd.labels[span].astype(np.int64)
        cell = annotators * size + labels
        at = np.arange(0, len(labels) * size, size) + labels
        own = beliefs.take(crowd.instances[span], axis=0)
        mistakes = _without(wrong.take(annotators, axis=0), own)
        total = _without(by_class.take(annotators, axis=0), own) + ROW_LABELS
        named = _without(cells.take(cell, axis=0), own) + usual.take(labels, axis=0)
        chances = (mistakes + usually_wrong.take(annotators, axis=0)) / total
        chances *= named
        chances /= mistakes + ROW_LABELS
        agreed = _without(hits.take(cell), own.take(at)) + usually_right.take(cell)
        chances.reshape(-1)[at] = agreed / total.take(at)
        np.maximum(chances, TINY, out=chances)
        np.log(chances, out=chances)
        np.multiply(chances, weights[span, None], out=logs[span])
    scores = model.places @ logs
    normalise_log(scores, np.log(priors))
    return scores


def _without(counts: Floats, own: Floats) -> Floats:
    """Returns counts less the item's own belief, in place; zero at least."""
    counts -= own
    return np.maximum(counts, 0.0, out=counts)


def _correlations(model: _Crowd, beliefs: Floats) -> Floats:
    """Returns `[A]` the sum of positive correlations with the item's other annotators' errors."""
    crowd = model.annotations
    items = crowd.instances
    annotators = crowd.annotators
    right, _ = _tables(model, beliefs)
    residuals = beliefs[items, crowd.labels] - (beliefs[items] * right[annotators]).sum(axis=1)
    away, squares, ones = (
        sparse.csr_matrix((values, (items, annotators)), crowd.shape)
        for values in (residuals, residuals**2, np.ones(len(items)))
    )
    products = (away.T @ away).toarray()
    shared = (ones.T @ ones).toarray()
    lengths = (squares.T @ ones).toarray()
    correlation = products / np.sqrt(np.maximum(lengths * lengths.T, 1e-12))
    correlation *= shared / (shared + UNCORRELATED_ITEMS)
    np.fill_diagonal(correlation, 0.0)
    sums = _sums_with_others(ones, np.maximum(correlation, 0.0))
    return np.asarray(sums[items, annotators]).reshape(-1)


def _sums_with_others(cells: sparse.csr_matrix, between: Floats) -> sparse.csr_matrix:
    """Returns `cells` `[N, R]` times `between` `[R, R]`, where cells have entries, in order."""
    annotators = cells.indices
    sizes = np.diff(cells.indptr)
    first = np.repeat(cells.indptr[:-1], sizes)
    sizes = np.repeat(sizes, sizes)
    sums = np.zeros(len(annotators))
    for place in range(sizes.max(initial=0)):
        entries = np.flatnonzero(sizes > place)
        other = first[entries] + place
        sums[entries] += cells.data[other] * between[annotators[other], annotators[entries]]
    return sparse.csr_matrix((sums, annotators, cells.indptr), cells.shape)
