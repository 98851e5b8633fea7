"""What in the features tells the labels, and test items among the training items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets.leaks import check_apart, check_no_leak
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features import FeatureTable

PATH = Path("f.csv")


def crowd() -> Annotations:
    """Twelve items, three annotators; "yes" has 0, 1, 2, 3, 0, ... of three votes."""
    yes = np.arange(12)[:, None] % 4 > np.arange(3)[None]
    rows, columns = np.indices(yes.shape).reshape(2, -1)
    names = {"annotator_names": np.array(["ann", "bob", "7"], dtype=object)}
    return Annotations(rows, columns, yes.ravel().astype(int), class_names=["no", "yes"], **names)


def table(*columns: np.ndarray, names: tuple[str, ...] = ("x", "z")) -> FeatureTable:
    rows = np.stack(columns, axis=1).astype(np.float32)
    ids = np.array([str(row) for row in range(len(rows))], dtype=object)
    return FeatureTable(ids, rows, list(names))


NOISE = default_rng(0).normal(size=12)
VOTES = np.arange(12) % 4


@pytest.mark.parametrize(
    ("column", "meaning"),
    [
        (VOTES, "how many"),
        (VOTES / 3, "how many"),
        (100 - 40 * VOTES, "how many"),
        (VOTES > 1, "whether most"),
        (VOTES <= 1, "whether most"),
    ],
)
def test_a_column_that_is_the_votes_is_rejected(column: np.ndarray, meaning: str) -> None:
    with pytest.raises(DataError, match=rf"column 'z' is {meaning}.*--ignore_columns=z.*\[leak\]"):
        check_no_leak(table(NOISE, column), crowd(), PATH)
    with pytest.raises(DataError, match=rf"column '1' is {meaning}.*Remove it"):
        check_no_leak(table(NOISE, column), crowd(), Path("f.npy"))


def test_a_column_that_is_nearly_the_votes_is_read() -> None:
    near = VOTES.astype(float)
    near[3] += 0.5
    check_no_leak(table(NOISE, near), crowd(), PATH)
    check_no_leak(table(np.ones(12), NOISE), crowd(), PATH)


def test_a_column_named_as_an_annotator_is_rejected() -> None:
    with pytest.raises(DataError, match="column 'bob' is named as an annotator"):
        check_no_leak(table(NOISE, NOISE**2, names=("x", "bob")), crowd(), PATH)
    check_no_leak(table(NOISE, NOISE**2, names=("x", "7")), crowd(), PATH)


def test_test_items_among_training_items() -> None:
    training = table(NOISE, NOISE**2)
    with pytest.raises(DataError, match=r"12 test items are training items .*'0'.*\[leak\]"):
        check_apart(training, training, PATH)
    check_apart(training, table(NOISE + 1, NOISE), PATH)
    check_apart(training, training, Path("f.npy"))
    other = table(NOISE, NOISE**2)
    ids = np.array([f"t{row}" for row in range(12)], dtype=object)
    check_apart(training, FeatureTable(ids, other.rows, other.names), PATH)
