"""Stratified folds, which are scikit-learn's.

Its own splitters warn of classes with fewer rows than folds, and only filters of the whole process
would keep them from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def stratified_folds(
    codes: NDArray[np.integer], folds: int, seed: int, groups: NDArray[np.integer] | None = None
) -> list[Rows]:
    """Returns the test rows of each fold, with about the same share of each class.

    They are those of `StratifiedKFold(folds, shuffle=True, random_state=seed)`, and with groups
    those of `StratifiedGroupKFold`.

    Args:
        codes: `[N]` class codes.
        folds: how many; at least one class has as many rows.
        seed: shuffles the rows, or the groups.
        groups: `[N]`; rows of one group are in one fold.
    """
    rng = np.random.RandomState(seed)
    if groups is None:
        assigned = _by_row(codes, folds, rng)
    else:
        assigned = _by_group(codes, folds, rng, groups)
    return [np.flatnonzero(assigned == fold) for fold in range(folds)]


def _by_row(codes: NDArray[np.integer], folds: int, rng: np.random.RandomState) -> Rows:
    """Returns each row's fold."""
    distinct, first = np.unique(codes, return_index=True)
    classes = distinct[np.argsort(first)]  # in order of appearance
    sizes = [int((codes == label).sum()) for label in classes]
    ordered = np.repeat(np.arange(len(classes)), sizes)
    assigned = np.empty(len(codes), dtype=np.intp)
    for number, label in enumerate(classes):
        shares = [int((ordered[fold::folds] == number).sum()) for fold in range(folds)]
        of_class = np.repeat(np.arange(folds), shares)
        rng.shuffle(of_class)
        assigned[codes == label] = of_class
    return assigned


def _by_group(
    codes: NDArray[np.integer], folds: int, rng: np.random.RandomState, groups: NDArray[np.integer]
) -> Rows:
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
        least = np.inf
        fewest = np.inf
        for fold in range(folds):
            proposed = in_folds.copy()
            proposed[fold] += counts[group]
            uneven = np.mean(np.std(proposed / class_sizes[None], axis=0))
            rows = in_folds[fold].sum()
            if uneven < least or (np.isclose(uneven, least) and rows < fewest):
                best = fold
                least = uneven
                fewest = rows
        in_folds[best] += counts[group]
        fold_of[order[group]] = best
    return fold_of[row_groups]
