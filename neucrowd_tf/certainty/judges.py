"""Models as judges: how often they are right by people's labels, and corrected class shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from neucrowd_tf.aggregation.families import labels_of, named_models
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.agreement import chance_corrected
from neucrowd_tf.certainty.alternative_test import labels_by
from neucrowd_tf.certainty.estimate import LEVEL, NOTHING, RESAMPLES, Estimate, resamples
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share
from neucrowd_tf.declare.types import Floats, Indices


class Judge(NamedTuple):
    """How well a model's labels agree with a reference: gold labels, and people's labels.

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
    counts: Floats
    right: Sequence[Estimate]
    shares: Sequence[Estimate]
    model_shares: Floats


def judge(crowd: Annotations, annotator: int, reference: Floats) -> Judge:
    """Returns how one model compares with a reference.

    Intervals of the agreement and of `right` are Jeffreys's, so that few items without an error are
    no proof. For the same reason kappa's is of a mixture: one half are the kappas of resampled
    items, the other half those of the ends of the agreement's interval. With fewer than two
    references only counts and `model_shares` are given.

    Args:
        crowd: with identities.
        annotator: the model's code.
        reference: `[N, C]` probabilities of each class, such as by people's labels alone; NaN
            without one. With one person an item these are that person's labels.

    Example:
        >>> from neucrowd_tf.annotations import Annotations
        >>> crowd = Annotations.from_dense([[0, 0], [1, 1], [1, 0], [-1, 1]])
        >>> judge(crowd, 1, np.array([[1, 0], [0, 1], [0, 1], [np.nan] * 2])).agreement.value
        0.6666666666666666

    References:
        Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference (the
        corrected shares, whose intervals hold if people's items were drawn at random).
    """
    labels = labels_by(crowd, annotator)
    size = crowd.num_classes
    labelled = labels >= 0
    checked = labelled & np.isfinite(reference[:, 0])
    rest = labels[labelled & ~checked]
    true = reference[checked]
    named = np.eye(size)[labels[checked]]
    model_shares = np.zeros(size)
    if labelled.any():
        model_shares = np.eye(size)[labels[labelled]].mean(axis=0)
    total = len(true)
    counts = true.sum(axis=0)
    nothing = [NOTHING] * size
    result = Judge(
        annotator, total, len(rest), NOTHING, NOTHING, counts, nothing, nothing, model_shares
    )
    if total < 2:  # resamples of one item are all alike
        return result
    # Equal items are drawn together, as most references have few different rows.
    rows, times = np.unique(np.hstack([true, named]), axis=0, return_counts=True)
    rows = np.hstack([rows, rows[:, :size] * rows[:, size:]])
    rng = np.random.default_rng(0)
    drawn = [resampled @ rows for resampled in resamples(rng, times)]
    # Of all items, and of each resample.
    num_true, num_named, agreed = np.hsplit(np.vstack([times @ rows, *drawn]), 3)
    all_agreed = agreed.sum(axis=1)
    agreement = jeffreys(all_agreed[0], total)
    # Sums of whole numbers are divided last: chance is then exactly 1 if all say one class.
    chance = ((num_true / total) * (num_named / total)).sum(axis=1)
    right = []
    shares = []
    for code in range(size):
        right.append(jeffreys(agreed[0, code], counts[code]))
        others = (rest == code).astype(float)
        shares.append(prediction_powered_share(true[:, code], named[:, code], others))
    kappa = _kappa(all_agreed / total, chance, agreement)
    return result._replace(agreement=agreement, kappa=kappa, right=right, shares=shares)


def _kappa(agreed: Floats, chance: Floats, agreement: Estimate) -> Estimate:
    """Returns Cohen's kappa of all items, with the interval of resampled ones and of the ends.

    Args:
        agreed, chance: `[1 + S]` shares of items on which labels agree, and would by chance: of all
            items, and of resampled ones.
        agreement: the share of all items with its interval.
    """
    kappas = chance_corrected(agreed, chance)
    if np.isnan(kappas[0]):
        return NOTHING
    ends = chance_corrected([agreement.low, agreement.high], chance[0])
    ends = np.repeat(np.clip(ends, -1.0, 1.0), RESAMPLES)
    return Estimate.of(float(kappas[0]), np.concatenate([kappas[1:], ends]))


def jeffreys(hits: float, total: float) -> Estimate:
    """Returns a share with Jeffreys's 80% interval, which has a width even if all are hits."""
    if total <= 0:
        return NOTHING
    share = float(hits / total)
    ends = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], hits + 0.5, total - hits + 0.5)
    low, high = ends.tolist()
    return Estimate(share, min(low, share), max(high, share))


def judges(
    crowd: Annotations, models: Sequence[str], people: Floats | None, gold: Indices | None = None
) -> list[Judge]:
    """Returns how well each model agrees with people's labels and gold labels.

    Args:
        crowd: with identities.
        models: names of the annotators that are models, or patterns of names.
        people: `[N, C]` probabilities from people's labels. Shares of votes are used if None, or if
            no item has two of people's labels.
        gold: `[N]` class codes, -1 if unknown: the reference where they are known.

    Raises:
        UsageError: a name or pattern that no annotator has.
    """
    names = crowd.annotator_names.astype(str)
    is_model = np.isin(names, named_models(models, names))
    votes = labels_of(crowd, ~is_model).vote_counts().astype(np.float64)
    total = votes.sum(axis=1, keepdims=True)
    shares = votes / np.maximum(total, 1)
    if people is not None and total.max(initial=0) >= 2:
        shares = people
    reference = np.where(total > 0, shares, np.nan)
    if gold is not None:
        reference[gold >= 0] = np.eye(crowd.num_classes)[gold[gold >= 0]]
    return [judge(crowd, code, reference) for code in np.flatnonzero(is_model).tolist()]
