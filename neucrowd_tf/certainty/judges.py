"""Models as judges: how often they are right by people's labels, and corrected class shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.certainty.alternative_test import labels_of
from neucrowd_tf.certainty.estimate import NOTHING, Estimate
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations

    Array = NDArray[np.float64]

RESAMPLES = 400


class Judge(NamedTuple):
    """A model beside the reference that people's labels give.

    Attributes:
        annotator: its code.
        items: how many it labelled that people labelled, too.
        others: how many it labelled that nobody else did.
        agreement: how often the reference is the model's label.
        kappa: Cohen's kappa of the two.
        right: by class, how often the model names it where it is the reference (of two classes:
            sensitivity and specificity).
        shares: by class, its share among all items that the model labelled, corrected by people.
        model_shares: `[C]` the shares of the model's own labels.
    """

    annotator: int
    items: int
    others: int
    agreement: Estimate
    kappa: Estimate
    right: Sequence[Estimate]
    shares: Sequence[Estimate]
    model_shares: Array


def judge(crowd: Annotations, annotator: int, reference: Array, *, seed: int = 0) -> Judge:
    """Returns how one model compares with people; intervals are of resampled items.

    Args:
        crowd: with identities.
        annotator: the model's code.
        reference: `[N, C]` probabilities of each class by people's labels alone; NaN where nobody
            labelled the item. With one person an item these are that person's labels.
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
        return Judge(annotator, len(rows), len(rest), NOTHING, NOTHING, nothing, nothing, named)
    true, one_hot = reference[rows], np.eye(size)[labels[rows]]
    weights = np.random.default_rng(seed).multinomial(
        len(rows), np.full(len(rows), 1 / len(rows)), RESAMPLES
    )
    both = np.vstack([np.ones(len(rows)), weights]) / len(rows)
    agreed = both @ (true * one_hot)  # [1 + RESAMPLES, C]: the first row is of all items
    classes, answers = both @ true, both @ one_hot
    total, chance = agreed.sum(axis=1), (classes * answers).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa, recalls = (total - chance) / (1.0 - chance), agreed / classes
    shares = [
        prediction_powered_share(
            true[:, code], one_hot[:, code], (labels[rest] == code).astype(float)
        )
        for code in range(size)
    ]
    right = [_estimate(recalls[:, code]) for code in range(size)]
    figures = (_estimate(total), _estimate(kappa), right, shares, named)
    return Judge(annotator, len(rows), len(rest), *figures)


def _estimate(values: Array) -> Estimate:
    """Returns the first value with the interval of the others; nothing if it is undefined."""
    return Estimate.of(float(values[0]), values[1:]) if np.isfinite(values[0]) else NOTHING


def judges(crowd: Annotations, models: Sequence[str], people: Array | None) -> list[Judge]:
    """Returns each model beside people.

    Args:
        crowd: with identities.
        models: names of the annotators that are models.
        people: `[N, C]` probabilities inferred from people's labels alone; None for the shares of
            their votes.
    """
    inside = np.isin(crowd.annotator_names.astype(str), list(models))
    votes = crowd.select(~inside[crowd.annotators]).vote_counts().astype(np.float64)
    total = votes.sum(axis=1, keepdims=True)
    alone = people is None or total.max(initial=0) < 2
    shares = votes / np.maximum(total, 1)
    if people is not None and not alone:
        shares = people
    reference = np.where(total > 0, shares, np.nan)
    return [judge(crowd, code, reference) for code in np.flatnonzero(inside).tolist()]
