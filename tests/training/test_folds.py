"""Stratified folds against scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from neucrowd_tf.training.folds import stratified_folds


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("sizes", [(30, 20), (7, 3, 25), (40, 1), (6, 6, 6, 6)])
@pytest.mark.parametrize("seed", [0, 3])
def test_folds_are_scikit_learns(sizes: tuple[int, ...], seed: int) -> None:
    codes = default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    groups = np.arange(len(codes)) // 2
    splitter = StratifiedKFold(5, shuffle=True, random_state=seed)
    of_groups = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    expected = [
        [test.tolist() for _, test in splitter.split(codes, codes)],
        [test.tolist() for _, test in of_groups.split(codes, codes, groups)],
    ]
    with warnings.catch_warnings(action="error"):
        ours = stratified_folds(codes, 5, seed), stratified_folds(codes, 5, seed, groups)
    assert [[test.tolist() for test in folds] for folds in ours] == expected


@pytest.mark.parametrize("codes", [[], [0, 1], [0, 0, 1, 1]])
def test_more_folds_than_any_class_has_rows_is_one_error(codes: list[int]) -> None:
    with pytest.raises(ValueError, match="folds: expected a class with 3 rows or more"):
        stratified_folds(np.array(codes, dtype=np.int64), 3, 0)
