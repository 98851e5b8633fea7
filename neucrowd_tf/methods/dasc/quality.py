"""Scores of the selected pseudo-annotations against the truth (figures 4 and 5), after `fit`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import precision_score, recall_score

from neucrowd_tf.declare.types import Fields, Integers, Mask
from neucrowd_tf.errors import one_at_a_time

QUALITY = ("pseudo_accuracy", "precision_majority", "recall_minority")


def majority_classes(counts: ArrayLike) -> Mask:
    """Returns which classes `[C]` are the most frequent half, the larger half if C is odd.

    Args:
        counts: `[C]` observed annotations of each class.
    """
    n = np.asarray(counts)
    result = np.zeros(len(n), dtype=bool)
    result[np.argsort(-n, kind="stable")[: (len(n) + 1) // 2]] = True
    return result


@one_at_a_time()
def selection_quality(
    selections: Sequence[Integers], truth: ArrayLike, counts: ArrayLike
) -> list[dict[str, float]]:
    """Scores each round's selection against the instances' true classes.

    Args:
        selections: an array `[M, 3]` of (instance, annotator, label) codes for each round, as
            `DASC.selections_` holds them.
        truth: `[N]` class codes of the instances, -1 where unknown (such instances do not count).
        counts: `[C]` observed annotations of each class, which say what majority classes are.

    Returns:
        for each round: `pseudo_accuracy`, the share of pseudo-annotations that are right;
            `precision_majority`, the mean over majority classes of the
            share of pseudo-annotations with that label which are right; `recall_minority`, the mean
            over minority classes of the share of pseudo-annotations on such instances which say so.
            A class without such annotations is left out of its mean; a mean of none is NaN.

    References:
        DASC, section 4.2 (figure 5).
    """
    codes = np.asarray(truth)
    majority = majority_classes(counts)
    nan = float("nan")
    options: Fields = {"average": "macro", "zero_division": nan}
    scores = []
    for selected in selections:
        labelled = codes[selected[:, 0]] >= 0
        actual = codes[selected[labelled, 0]]
        labels = selected[labelled, 2]
        accuracy = precision = recall = nan
        if labelled.any():
            classes = np.flatnonzero(majority), np.flatnonzero(~majority)
            accuracy = float((actual == labels).mean())
            precision = float(precision_score(actual, labels, labels=classes[0], **options))
            recall = float(recall_score(actual, labels, labels=classes[1], **options))
        scores.append(dict(zip(QUALITY, (accuracy, precision, recall), strict=True)))
    return scores
