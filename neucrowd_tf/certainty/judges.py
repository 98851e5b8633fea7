"""Models as judges: how often they are right by people's labels, and corrected class shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.alternative_test import labels_of
from neucrowd_tf.certainty.estimate import LEVEL, NOTHING, Estimate
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share

Array = NDArray[np.float64]

RESAMPLES = 400


class Judge(NamedTuple):
    """A model beside a reference: gold labels, and the labels of people.

    Attributes:
        annotator: its code.
        items: how many it labelled that have a reference.
        others: how many it labelled that have none.
        agreement: how often the reference is the model's label.
        kappa: Cohen's kappa of the two.
        counts: `[C]` number of items by class of the reference.
        right: by class, how often the model names it where it is the reference (of two classes:
            sensitivity and specificity).
        shares: by class, its share among all items that the model labelled, corrected by the
            reference.
        model_shares: `[C]` the shares of the model's own labels.
    """

    annotator: int
    items: int
    others: int
    agreement: Estimate
    kappa: Estimate
    counts: Array
    right: Sequence[Estimate]
    shares: Sequence[Estimate]
    model_shares: Array


def judge(crowd: Annotations, annotator: int, reference: Array, *, seed: int = 0) -> Judge:
    """Returns how one model compares with a reference.

    Intervals of shares of items are Jeffreys's, so that few items without an error are no proof;
    that of kappa is of resampled items, and as wide as the agreement's.

    Args:
        crowd: with identities.
        annotator: the model's code.
        reference: `[N, C]` probabilities of each class, such as by people's labels alone; NaN
            without one. With one person an item these are that person's labels.
        seed: of the resamples.

    Example:
        >>> from neucrowd_tf.annotations import Annotations
        >>> crowd = Annotations.from_dense([[0, 0], [1, 1], [1, 0], [-1, 1]])
        >>> judge(crowd, 1, np.array([[1, 0], [0, 1], [0, 1], [np.nan] * 2])).agreement.value
        0.6666666666666666

    References:
        Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference (the
        corrected shares, whose intervals hold if people's items were drawn at random).
    """
    labels, size = labels_of(crowd, annotator), crowd.num_classes
    checked = (labels >= 0) & np.isfinite(reference[:, 0])
    rows, rest = np.flatnonzero(checked), np.flatnonzero((labels >= 0) & ~checked)
    named = (
        np.eye(size)[labels[labels >= 0]].mean(axis=0) if (labels >= 0).any() else np.zeros(size)
    )
    if len(rows) < 2:
        nothing = [NOTHING] * size
        counts = np.zeros(size)
        return Judge(
            annotator, len(rows), len(rest), NOTHING, NOTHING, counts, nothing, nothing, named
        )
    true, one_hot = reference[rows], np.eye(size)[labels[rows]]
    weights = np.random.default_rng(seed).multinomial(
        len(rows), np.full(len(rows), 1 / len(rows)), RESAMPLES
    )
    both = np.vstack([np.ones(len(rows)), weights]) / len(rows)
    agreed = both @ (true * one_hot)  # [1 + RESAMPLES, C]: the first row is of all items
    classes, answers = both @ true, both @ one_hot
    total, chance = agreed.sum(axis=1), (classes * answers).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement = jeffreys(total[0] * len(rows), len(rows))
        ends = (np.array(agreement[1:]) - chance[0]) / (1.0 - chance[0])
        kappa = np.concatenate([(total - chance) / (1.0 - chance), np.repeat(ends, RESAMPLES)])
    shares = [
        prediction_powered_share(
            true[:, code], one_hot[:, code], (labels[rest] == code).astype(float)
        )
        for code in range(size)
    ]
    counts = true.sum(axis=0)
    right = [jeffreys(agreed[0, code] * len(rows), counts[code]) for code in range(size)]
    figures = (agreement, _estimate(kappa), counts, right, shares, named)
    return Judge(annotator, len(rows), len(rest), *figures)


def jeffreys(hits: float, total: float) -> Estimate:
    """Returns a share with Jeffreys's 80% interval, which has a width even if all are hits."""
    if total <= 0:
        return NOTHING
    ends = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], hits + 0.5, total - hits + 0.5)
    return Estimate.of(float(hits / total), ends, 1.0)


def _estimate(values: Array) -> Estimate:
    """Returns the first value with the interval of the others; nothing if it is undefined."""
    return Estimate.of(float(values[0]), values[1:]) if np.isfinite(values[0]) else NOTHING


def judges(
    crowd: Annotations,
    models: Sequence[str],
    people: Array | None,
    gold: NDArray[np.int64] | None = None,
) -> list[Judge]:
    """Returns each model beside people and gold labels.

    Args:
        crowd: with identities.
        models: names of the annotators that are models.
        people: `[N, C]` probabilities inferred from people's labels alone; None for the shares of
            their votes.
        gold: `[N]` class codes, -1 if unknown: the reference where they are known.
    """
    inside = np.isin(crowd.annotator_names.astype(str), list(models))
    votes = crowd.select(~inside[crowd.annotators]).vote_counts().astype(np.float64)
    total = votes.sum(axis=1, keepdims=True)
    alone = people is None or total.max(initial=0) < 2
    shares = votes / np.maximum(total, 1)
    if people is not None and not alone:
        shares = people
    reference = np.where(total > 0, shares, np.nan)
    if gold is not None:
        reference[gold >= 0] = np.eye(crowd.num_classes)[gold[gold >= 0]]
    return [judge(crowd, code, reference) for code in np.flatnonzero(inside).tolist()]
