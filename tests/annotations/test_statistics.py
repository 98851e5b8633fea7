"""Crowd statistics against values worked out by hand, naive loops and invariants."""

from __future__ import annotations

import json

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, agreement, statistics
from neucrowd_tf.errors import DataError, IdentitiesError
from neucrowd_tf.io.files.json_text import jsonable
from tests.cases import cases
from tests.crowds import array_of, krippendorff_labels


def alpha_of(counts: np.ndarray) -> float:
    return agreement.agreement_coefficients(counts)["krippendorff"]


def test_perfect_and_undefined_agreement() -> None:
    assert agreement.fleiss_kappa(array_of("3 0; 0 3")) == 1
    assert alpha_of(array_of("3 0; 0 3")) == 1
    for counts in cases("""
[[3, 0], [2, 0]],
[[1, 0], [0, 1]],
[[0, 0]],
[[2], [3]]
"""):
        assert np.isnan(agreement.fleiss_kappa(np.array(counts)))
        assert np.isnan(alpha_of(np.array(counts)))


def test_sparsity_and_shares() -> None:
    """Five labels in six cells; majority: class 0, tie, class 1; the tie counts half for either."""
    crowd = Annotations.from_dense(array_of("0 0; 0 1; -1 1"))
    assert statistics.sparsity(crowd) == pytest.approx(1 / 6)
    assert statistics.majority_shares(crowd).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert statistics.class_ratio(crowd) == pytest.approx(0.5)
    assert statistics.class_ratio(crowd, truth=array_of("0 1 -1")) == pytest.approx(0.5)
    assert statistics.class_ratio(crowd, truth=array_of("1 1 1"), positive=0) == 0
    bare = Annotations.from_dense(array_of("-1 -1; 1 1"))
    assert statistics.class_shares(bare).tolist() == [0, 1]
    assert statistics.majority_shares(bare)[0].tolist() == [0, 0]


def test_imbalance_ratio() -> None:
    assert statistics.imbalance_ratio([30, 10, 20]) == 3
    assert statistics.imbalance_ratio([30, 0]) == 30  # max / max(1, min)


def test_item_agreement_by_hand() -> None:
    """Pairs of labels that agree: 6 of 12 ordered pairs, 4 of 12, none to compare."""
    shares = agreement.item_agreement([[3, 1], [2, 2], [1, 0]])
    np.testing.assert_allclose(shares, array_of("1/2 1/3 nan"))


def test_annotator_accuracy_by_hand() -> None:
    """Truth 0, 1, unknown: annotator a is right on one of two, b on one of one, c has only the
    unknown one.
    """
    crowd = Annotations.from_dense(array_of("0 -1 -1; 0 1 -1; 1 0 1"))
    accuracy, labels = statistics.annotator_accuracy(crowd, array_of("0 1 -1"))
    assert accuracy[:2].tolist() == [0.5, 1.0]
    assert np.isnan(accuracy[2])
    assert labels.tolist() == [2, 1, 0]
    confusion = statistics.annotator_confusion(crowd, array_of("0 1 -1"))
    assert confusion.tolist() == [[[1, 0], [1, 0]], [[0, 0], [0, 1]], [[0, 0], [0, 0]]]
    many = Annotations([0], [0], [0], num_annotators=10**6, num_classes=1000)  # not [R, C, C]
    assert statistics.annotator_accuracy(many, [0])[1].sum() == 1


def test_describe() -> None:
    crowd = Annotations.from_dense(krippendorff_labels(), num_classes=5)
    truth = array_of("0 1 2 2 1 -1 3 0 1 4 0 -1")
    result = statistics.describe(crowd, truth)
    sizes = [
        result[f"num_{name}"] for name in ("instances", "annotators", "classes", "annotations")
    ]
    assert sizes == [12, 4, 5, 41]
    assert result["annotations_per_instance"] == pytest.approx(41 / 12)
    assert result["annotations_per_annotator"] == pytest.approx(41 / 4)
    assert result["unannotated"] == 0
    assert result["alpha"] == pytest.approx(0.743, abs=5e-4)
    assert "class_ratio" not in result
    assert result["majority_accuracy"] == 1 and 0.8 < result["mean_annotator_accuracy"] < 1
    assert (
        json.loads(json.dumps(jsonable(result)))["truth_imbalance_ratio"] == 3
    )  # three of class 0 and 1, one of class 3 and 4


def test_describe_leaves_out_what_cannot_be_scored() -> None:
    """Truth 0, 1, 0, unknown; the third instance has no label, and annotator c labelled only the
    one of unknown truth.

    a is right on two of two, b on one of two: mean .75, standard deviation .25. Majority: right, a
    tie (half), nothing to score.
    """
    crowd = Annotations.from_dense(array_of("0 0 -1; 1 0 -1; -1 -1 -1; -1 -1 1"))
    result = statistics.describe(crowd, array_of("0 1 0 -1"))
    assert (result["mean_annotator_accuracy"], result["std_annotator_accuracy"]) == (0.75, 0.25)
    assert result["majority_accuracy"] == 0.75 and result["unannotated"] == 1
    # The truth's own shares count every instance whose truth is known, labelled or not.
    assert result["truth_imbalance_ratio"] == 2
    assert result["truth_class_shares"] == pytest.approx([2 / 3, 1 / 3])


def test_describe_votes_only() -> None:
    result = statistics.describe(Annotations.from_votes(array_of("5 2; 1 6")), np.array([0, 0]))
    assert result["class_ratio"] == 0.5
    assert result["majority_accuracy"] == 0.5
    assert "mean_annotator_accuracy" not in result
    assert result["sparsity"] == 0 and result["truth_class_ratio"] == 0


def test_refuses() -> None:
    crowd = Annotations.from_dense(array_of("0 1; 1 1"))
    with pytest.raises(
        DataError,
        match=r"truth: row 1: expected a class code from 0 to 1 or -1 for unknown, received 2",
    ):
        statistics.annotator_accuracy(crowd, array_of("-1 2"))  # -1 is no fault
    with pytest.raises(
        DataError, match=r"truth: expected 2 class codes, received int64 of shape \(1,\)"
    ):
        statistics.describe(crowd, np.array([0]))
    with pytest.raises(DataError, match=r"row 0, class 0: expected a count from 0, received 0.5"):
        agreement.fleiss_kappa(array_of("0.5 1.0;"))
    with pytest.raises(IdentitiesError):
        statistics.annotator_accuracy(Annotations.from_votes([[1, 0]]), np.array([0]))
