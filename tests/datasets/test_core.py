"""CrowdDataset and its splits: sizes that fit, labels to codes."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from tests.cases import raises
from tests.crowds import array_of

CROWD = Annotations.from_dense(array_of("0 1; 1 -1; 0 0"), class_names=["no", "yes"])


def split(size: int = 2, width: int = 4, **fields) -> Split:
    return Split(
        np.zeros((size, width), np.float32), np.arange(size) % 2, np.arange(size), **fields
    )


def test_properties() -> None:
    dataset = CrowdDataset(
        "d", np.zeros((3, 4), np.float32), CROWD, test=split(), validation=split(3)
    )
    assert dataset.num_classes == 2
    assert dataset.class_names.tolist() == ["no", "yes"]
    assert len(dataset.test) == 2
    assert dataset.validation_pair()[1].tolist() == ["no", "yes", "no"]
    bare = dataset.replace(validation=None, name="e")
    assert bare.validation_pair() is None and bare.name == "e" and dataset.name == "d"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.zeros((2, 4), np.float32)}, r"d: expected 3 feature rows, received 2"),
        ({"truth": np.zeros(2, np.int64)}, r"d: expected 3 true labels, received 2"),
        ({"test": split(2, 5)}, r"d: expected test features of shape \(4,\), received \(5,\)"),
        (
            {"validation": split(2, 5)},
            r"d: expected validation features of shape \(4,\), received \(5,\)",
        ),
    ],
)
def test_sizes_that_do_not_fit(change, message) -> None:
    fields = {
        "name": "d",
        "features": np.zeros((3, 4), np.float32),
        "annotations": CROWD,
        "test": split(),
        **change,
    }
    raises(DataError, message, CrowdDataset, **fields)


def test_split_sizes() -> None:
    with pytest.raises(
        DataError,
        match=r"split: expected features, labels and names of one length, received 2, 1 and 2",
    ):
        Split(np.zeros((2, 1)), np.zeros(1, np.int64), np.arange(2))
    with pytest.raises(DataError, match=r"split: expected annotations of 2 instances, received 3"):
        split(annotations=CROWD)
    assert split(3, annotations=CROWD).annotations is CROWD


def test_encode_labels() -> None:
    names = np.array(["no", "yes"], dtype=object)
    assert encode_labels(["yes", "no"], names).tolist() == [1, 0]
    assert encode_labels(np.array([True, False]), np.array([False, True])).tolist() == [1, 0]
    with pytest.raises(
        DataError,
        match=r"truth: row 1: expected one of the classes 'no', 'yes', received 'perhaps'",
    ):
        encode_labels(["yes", "perhaps"], names, "truth")
    with pytest.raises(
        DataError,
        match=r"labels: expected a one-dimensional array of labels, received shape \(1, 1\)",
    ):
        encode_labels(np.array([["no"]]), names)
