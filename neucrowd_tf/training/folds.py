"""Stratified folds, which are scikit-learn's.

scikit-learn's splitters warn of classes with fewer rows than folds, and a library can silence them
only by changing the filters of the whole process. So the algorithms of `StratifiedKFold` and
`StratifiedGroupKFold` (scikit-learn, sklearn/model_selection/_split.py, BSD-3-Clause) are repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.declare.types import Integers

Rows = NDArray[np.intp]


def stratified_folds(
    codes: Integers, folds: int, seed: int, groups: Integers | None = None
) -> list[Rows]:
    """Returns the test rows of each fold, with about the same share of each class.

    They are those of `StratifiedKFold(folds, shuffle=True, random_state=seed)`, and with groups
    those of `StratifiedGroupKFold`.

    Args:
        codes: `[N]` class codes.
        folds: how many; at least one class has as many rows.
        seed: shuffles the rows, or the groups.
        groups: `[N]`; rows of one group are in one fold.

    Raises:
        ValueError: every class has fewer rows than there are folds.
    """
    most = max(np.unique(codes, return_counts=True)[1], default=0)
    if most < folds:
        raise ValueError(
            f"folds: expected a class with {folds} rows or more, received at most {most} of a class"
        )
    rng = np.random.RandomState(seed)
    if groups is None:
        assigned = _by_row(codes, folds, rng)
    else:
        assigned = _by_group(codes, folds, rng, groups)
    return [np.flatnonzero(assigned == fold) for fold in range(folds)]


def _by_row(codes: Integers, folds: int, rng: np.random.RandomState) -> Rows:
    """Returns each row's fold."""
    distinct, first, sizes = np.unique(codes, return_index=True, return_counts=True)
    order = np.argsort(first)  # classes in order of appearance
    # The sorted codes dealt out in turn: folds differ by one row, of a class and in all.
    dealt = np.arange(len(codes)) % folds
    assigned = np.empty(len(codes), dtype=np.intp)
    start = 0
    for label, size in zip(distinct[order], sizes[order], strict=True):
        of_class = np.sort(dealt[start : start + size])
        start += size
        rng.shuffle(of_class)
        assigned[codes == label] = of_class
    return assigned


def _by_group(codes: Integers, folds: int, rng: np.random.RandomState, groups: Integers) -> Rows:
    """Returns each row's fold: the most uneven groups first, each where it evens classes out."""
    _, row_codes, class_sizes = np.unique(codes, return_inverse=True, return_counts=True)
    distinct, row_groups = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(distinct), len(class_sizes)))
    np.add.at(counts, (row_groups, row_codes), 1)
    order = np.arange(len(distinct))
    rng.shuffle(order)
    counts = counts[order]
    in_folds = np.zeros((folds, len(class_sizes)))
    fold_of = np.empty(len(distinct), dtype=np.intp)
    for group in np.argsort(-np.std(counts, axis=1), kind="stable"):
        best = 0
        lowest_spread = np.inf
        fewest = np.inf
        for fold in range(folds):
            proposed = in_folds.copy()
            proposed[fold] += counts[group]
            spread = np.mean(np.std(proposed / class_sizes[None], axis=0))
            rows = in_folds[fold].sum()
            tied = np.isclose(spread, lowest_spread)
            if spread < lowest_spread or (tied and rows < fewest):
                best = fold
                lowest_spread = spread
                fewest = rows
        in_folds[best] += counts[group]
        fold_of[order[group]] = best
    return fold_of[row_groups]
