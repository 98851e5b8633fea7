"""Precision on majority and recall on minority classes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.methods.dasc import majority_classes, selection_quality
from neucrowd_tf.methods.dasc.estimator import DASC
from tests.crowds import array_of


def test_majority_is_the_larger_half():
    assert majority_classes([5, 9, 1, 7]).tolist() == [False, True, False, True]
    assert majority_classes([5, 9, 1]).tolist() == [True, True, False]


def test_by_hand():
    truth = array_of("0 0 1 1")
    # Class 0 is the majority. Said 0 three times, twice rightly; of the two pseudo-annotations on
    # class 1 one says 1.
    chosen = array_of("0 0 0; 1 0 0; 2 0 0; 3 0 1")
    (result,) = selection_quality([chosen], truth, [10, 2])
    assert result["precision_majority"] == pytest.approx(2 / 3)
    assert result["recall_minority"] == pytest.approx(1 / 2)
    assert result["pseudo_accuracy"] == pytest.approx(3 / 4)


def test_unknown_truth_does_not_count():
    (result,) = selection_quality([array_of("0 0 1; 1 0 1")], [1, -1], [1, 2])
    assert result["precision_majority"] == 1.0 and np.isnan(result["recall_minority"])


def test_rounds_are_scored_after_the_fit():
    # Two classes, four instances, of which the second was left out of training; class 0 has 3 of 4
    # annotations: the majority, whatever was generated beside them.
    crowd = Annotations(
        [0, 0, 2, 3], [0, 1, 0, 0], [0, 0, 0, 1], num_instances=4, num_annotators=2, num_classes=2
    )
    crowd = crowd.with_generated([1, 2, 3], [0, 1, 1], [1, 1, 1])
    features, truth = np.zeros((4, 1), np.float32), array_of("0 0 1 1")
    dataset = CrowdDataset(
        "t", features, crowd, Split(features, array_of("0 0 1 -1"), np.arange(4)), truth=truth
    )
    # Selected for training rows 1 and 2, both of class 1: one said to be 0, one said to be 1.
    fitted = SimpleNamespace(
        selections_=[array_of("1 1 0; 2 1 1")],
        rows_=array_of("0 2 3"),
        history_={
            "round": [0, 1],
            "annotations": [4, 6],
            "imbalance_ratio": [3.0, 2.0],
            "concentration": [0.5, 0.0],
            "exhausted": [[1], []],
            "quota": [[1, 1], []],
        },
        round_accuracy_=[0.5, 0.6],
        best_round_=0,
        staged_predict_proba=lambda x: iter([np.eye(2)[[0, 1, 1]], np.eye(2)[[0, 0, 1]]]),
    )
    result = DASC.evaluation(fitted, dataset)
    assert result["rounds"]["test_accuracy"] == [2 / 3, 1.0]
    assert (result["start_accuracy"], result["last_round_accuracy"]) == (2 / 3, 1.0)
    # Bits 101 and 111.
    assert (result["start_right"], result["last_round_right"]) == ("a0", "e0")
    assert result["rounds"]["precision_majority"] == [None, 0.0]
    assert result["rounds"]["recall_minority"] == [None, 0.5]
    assert result["rounds"]["val_accuracy"] == [0.5, 0.6]
    assert result["rounds"]["concentration"] == [None, 0.5]
    assert result["rounds"]["exhausted"] == [None, 1] and result["exhausted"] == 1
    assert result["rounds"]["pseudo_accuracy"] == [None, 0.5] and result["best_round"] == 0
    assert result["rounds"]["annotations"] == [4, 6]
    blind = DASC.evaluation(fitted, dataset.replace(truth=None))
    assert np.isnan(blind["rounds"]["precision_majority"][1])
    assert blind["last_round_accuracy"] == 1.0
