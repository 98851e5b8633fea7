"""Scores of the selected pseudo-annotations against the truth (figures 4 and 5), after `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def majority_classes(counts: ArrayLike) -> NDArray[np.bool_]:
    """Returns which classes `[C]` are the most frequent half, the larger half if C is odd.

    Args:
        counts: `[C]` observed annotations of each class.
    """
    n = np.asarray(counts)
    result = np.zeros(len(n), dtype=bool)
    result[np.argsort(-n, kind="stable")[: (len(n) + 1) // 2]] = True
    return result


def selection_quality(
    selections: Sequence[NDArray[np.integer[Any]]], truth: ArrayLike, counts: ArrayLike
) -> list[dict[str, float]]:
    """Scores each round's selection against the instances' true classes.

    Args:
        selections: an array `[M, 3]` of (instance, annotator, label) codes for each round, as
            `DASC.selections_` holds them.
        truth: `[N]` class codes of the instances, -1 where unknown (such instances do not count).
        counts: `[C]` observed annotations of each class, which say what majority classes are.

    Returns:
        for each round: `accuracy`; `precision_majority`, the mean over majority classes of the
            share of pseudo-annotations with that label which are right; `recall_minority`, the mean
            over minority classes of the share of pseudo-annotations on such instances which say so.
            A class without any is left out of its mean; a mean of none is NaN.

    References:
        DASC, section 4.2 (figure 5).
    """
    codes, majority = np.asarray(truth), majority_classes(counts)
    scores = []
    for number, selected in enumerate(selections, 1):
        actual = codes[selected[:, 0]]
        labelled = actual >= 0
        actual, codes_of = actual[labelled], selected[labelled, 2]
        right = actual == codes_of
        precision = [
            right[codes_of == c].mean() for c in np.flatnonzero(majority) if (codes_of == c).any()
        ]
        recall = [
            right[actual == c].mean() for c in np.flatnonzero(~majority) if (actual == c).any()
        ]
        scores.append(
            {
                "round": float(number),
                "accuracy": float(right.mean()) if len(right) else float("nan"),
                "precision_majority": float(np.mean(precision)) if precision else float("nan"),
                "recall_minority": float(np.mean(recall)) if recall else float("nan"),
            }
        )
    return scores
