"""Counts of votes and zeros for none in tables of numbers, told; labels of annotators are not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.like_counts import check_no_counts

CLASSES = ("cat", "dog", "bird", "fish")
TABLES = 60


def crowds(rows: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Yields codes from 0 of annotators who are mostly right, and who of them labelled a row."""
    rng = np.random.default_rng(rows)
    for table in range(TABLES):
        classes, width = 2 + table % 3, 3 + table % 5
        truth = rng.integers(classes, size=(rows, 1))
        right = rng.random((rows, width)) < rng.uniform(0.7, 0.95, width)
        codes = np.where(right, truth, rng.integers(classes, size=(rows, width)))
        most = rng.integers(2, width + 1, size=(rows, 1))
        yield codes, np.argsort(rng.random((rows, width)), axis=1) < most


def is_said(codes: NDArray[np.int64], missing: NDArray[np.bool_]) -> bool:
    names = [f"x{column}" for column in range(codes.shape[1])]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            check_no_counts(codes, missing, names, "a.csv")
        except DataError:
            return True
    return bool(told)


@pytest.mark.parametrize("rows", [6, 12, 20, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_counts_of_votes_are_hardly_ever_taken_in_silence(rows: int, sparse: bool) -> None:
    silent = 0
    for codes, there in crowds(rows):
        votes = np.stack(
            [((codes == c) & there).sum(axis=1) for c in range(codes.max() + 1)], axis=1
        )
        silent += not is_said(votes, votes == 0 if sparse else np.zeros(votes.shape, dtype=bool))
    assert silent <= 0.1 * TABLES


@pytest.mark.parametrize("rows", [12, 20, 100])
def test_labels_of_annotators_are_hardly_ever_told(rows: int) -> None:
    full = sum(is_said(codes, np.zeros(codes.shape, dtype=bool)) for codes, _ in crowds(rows))
    some = sum(is_said(np.where(there, codes + 1, 0), ~there) for codes, there in crowds(rows))
    assert full <= 0.03 * TABLES and some <= 0.1 * TABLES


@pytest.mark.parametrize(("rows", "least"), [(20, 0.75), (100, 0.95)])
def test_zeros_for_none_in_a_part_of_the_cells_are_told(rows: int, least: float) -> None:
    rng = np.random.default_rng(rows)
    told = 0
    for codes, _ in crowds(rows):
        none = rng.random(codes.shape) < 0.3
        told += is_said(np.where(none, 0, codes + 1), np.zeros(codes.shape, dtype=bool))
    assert told >= least * TABLES


def test_a_number_a_row_may_be_votes_that_all_agreed() -> None:
    votes = np.array([[2, 0], [0, 3]] * 6)
    with pytest.warns(UserWarning, match="may be counts of votes"):
        check_no_counts(votes, votes == 0, ["a", "b"], "a.csv")
