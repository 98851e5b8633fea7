"""How far annotators agree: Krippendorff's alpha, Fleiss' kappa and other coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations.codes import vote_matrix
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.annotations.votes import Scale as Scale
from neucrowd_tf.declare.types import Floats, Indices

COEFFICIENTS = ("percent", "fleiss", "krippendorff", "gwet")


def counts_of(annotations: Annotations | ArrayLike) -> Indices:
    """Returns vote counts `[N, C]` as int64, from annotations or from counts."""
    if isinstance(annotations, Annotations):
        return annotations.vote_counts().astype(np.int64)
    return vote_matrix(annotations).astype(np.int64)


def chance_corrected(observed: ArrayLike, chance: ArrayLike) -> Floats:
    """Returns agreement corrected for chance, `(observed - chance) / (1 - chance)`.

    Fleiss' and Cohen's kappa and Krippendorff's alpha differ only in what they call chance. NaN if
    chance alone gives full agreement.
    """
    expected = np.asarray(chance, np.float64)
    possible = np.where(expected < 1.0, 1.0 - expected, np.nan)
    return np.asarray((np.asarray(observed, np.float64) - expected) / possible)


def agreement_weights(
    size: int, scale: Scale = "nominal", values: ArrayLike | None = None
) -> Floats:
    """Returns `[C, C]` how much two labels agree: 1 for equal ones, 0 for the most distant.

    Args:
        size: number of classes, in their order.
        scale: "nominal" (0 or 1), "ordinal" (by the number of pairs of classes between two) or
            "interval" (by the squared distance of `values`).
        values: `[C]` the numbers that classes stand for; by default their places.

    References:
        Gwet (2014), Handbook of inter-rater reliability, chapter 3.
    """
    if scale == "nominal":
        return np.eye(size)
    places = np.arange(size)
    between = np.abs(places[:, None] - places) + 1.0
    distance = between * (between - 1) / 2
    if scale == "interval":
        numbers = np.asarray(places if values is None else values, dtype=np.float64)
        distance = (numbers[:, None] - numbers) ** 2
    return np.asarray(1.0 - distance / max(float(distance.max(initial=0)), 1e-12))


def _alpha(counts: Floats, times: Floats, scale: Scale, values: ArrayLike | None) -> float:
    """Returns Krippendorff's alpha of `[N, C]` counts of two labels or more, each `times` times."""
    used = times @ counts
    size = counts.sum(axis=1)
    if scale == "ordinal":  # by the labels between two classes, which Gwet's weights do not count
        middles = used.cumsum() - used / 2
        distances = (middles[:, None] - middles) ** 2
    else:
        distances = 1.0 - agreement_weights(len(used), scale, values)
    observed = (((counts @ distances) * counts).sum(axis=1) / (size - 1) * times).sum()
    expected = used @ distances @ used / (used.sum() - 1)
    if expected > 0:
        return float(1.0 - observed / expected)
    return float("nan")


def agreement_coefficients(
    votes: ArrayLike,
    scale: Scale = "nominal",
    values: ArrayLike | None = None,
    *,
    times: ArrayLike | None = None,
) -> dict[str, float]:
    """Returns percent agreement and three coefficients of vote counts.

    With `n_ic` votes for class c on instance i and `n_i = sum_c n_ic`, the pairs of labels on i
    agree by `P_i = sum_cd w_cd n_ic (n_id - [c = d]) / (n_i (n_i - 1))` with the weights w of
    `agreement_weights`. Their mean over instances with two labels or more is the observed agreement
    P; `p_c` is the mean of `n_ic / n_i` over all instances with labels. Fleiss' kappa and Gwet's AC
    are `(P - P_e) / (1 - P_e)`, with `P_e = sum_cd w_cd p_c p_d` (Fleiss) or `P_e = sum_cd w_cd
    sum_c p_c (1 - p_c) / (C (C - 1))` (Gwet). Krippendorff's alpha has his own distances of classes
    and counts instances by their labels.

    Args:
        votes: `[N, C]`; instances may have different numbers of labels.
        scale: see `agreement_weights`.
        values: see `agreement_weights`.
        times: `[N]` how many instances have these counts; by default each row is one.

    Returns:
        `percent` (the share of equal pairs of labels, whatever the scale), `fleiss`, `krippendorff`
        and `gwet` (AC1 on the nominal scale, otherwise AC2), each at most 1. All are NaN if no
        instance has two labels. If all labels are of one class, kappa and alpha are too; AC is if
        there is no other class.

    Example:
        >>> agreement_coefficients([[2, 0], [0, 2], [1, 1]])["fleiss"] > 0.3
        True

    References:
        Fleiss (1971), Measuring nominal scale agreement among many raters; Gwet (2014), Handbook of
        inter-rater reliability, chapters 3 to 6; Krippendorff (2011), Computing Krippendorff's
        alpha-reliability.
    """
    counts = np.asarray(votes, dtype=np.float64)
    repeats = np.ones(len(counts)) if times is None else np.asarray(times, dtype=np.float64)
    present = (counts.sum(axis=1) > 0) & (repeats > 0)
    counts = counts[present]
    repeats = repeats[present]
    total = counts.sum(axis=1)
    several = counts[total >= 2]
    repeats_of_several = repeats[total >= 2]
    if not len(several):
        return dict.fromkeys(COEFFICIENTS, float("nan"))
    weights = agreement_weights(counts.shape[1], scale, values)
    classes = counts.shape[1]
    size = several.sum(axis=1)
    agreed = (several * (several @ weights - 1.0)).sum(axis=1) / (size * (size - 1))
    observed = np.average(agreed, weights=repeats_of_several)
    shares: Floats = np.average(counts / total[:, None], axis=0, weights=repeats)
    gwet = np.nan  # of a single class
    if classes > 1:
        gwet = weights.sum() / (classes * (classes - 1)) * (shares * (1 - shares)).sum()
    kappa, ac = chance_corrected(observed, [float(shares @ weights @ shares), gwet]).tolist()
    percent = float(np.average(item_agreement(several), weights=repeats_of_several))
    alpha = _alpha(several, repeats_of_several, scale, values)
    return dict(zip(COEFFICIENTS, (percent, kappa, alpha, ac), strict=True))


def fleiss_kappa(annotations: Annotations | ArrayLike) -> float:
    """Returns Fleiss' kappa of annotations or vote counts `[N, C]`.

    The definition for different numbers of labels is that of `agreement_coefficients`.

    References:
        NeuCrowd, table 1.
    """
    return agreement_coefficients(counts_of(annotations))["fleiss"]


def item_agreement(votes: ArrayLike) -> Floats:
    """Returns `[N]` the share of equal pairs among an instance's labels; NaN for fewer than two."""
    counts = np.asarray(votes, dtype=np.float64)
    size = counts.sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1)
    return np.divide(equal, size * (size - 1), out=np.full(len(size), np.nan), where=size > 1)


def class_agreement(votes: ArrayLike) -> list[dict[str, float]]:
    """Returns for each class the nominal coefficients of "this class or another one".

    Here `percent` is the specific agreement: of a label of the class, the share of the instance's
    other labels that are of the class too; NaN without such labels.

    Args:
        votes: `[N, C]` vote counts.

    References:
        Fleiss (1971), Measuring nominal scale agreement among many raters, section 4.
    """
    counts = np.asarray(votes, dtype=np.float64)
    size = counts.sum(axis=1)
    result = []
    for of_class in counts.T:
        pairs = float((of_class * (size - 1)).sum())
        if pairs:
            same = float((of_class * (of_class - 1)).sum()) / pairs
        else:
            same = float("nan")
        pair = np.stack([of_class, size - of_class], axis=1)
        result.append(agreement_coefficients(pair) | {"percent": same})
    return result
