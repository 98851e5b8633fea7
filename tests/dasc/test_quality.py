"""Precision on majority and recall on minority classes."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.dasc import majority_classes, selection_quality
from neucrowd_tf.errors import DataError


def test_majority_is_the_larger_half():
    assert majority_classes([5, 9, 1, 7]).tolist() == [False, True, False, True]
    assert majority_classes([5, 9, 1]).tolist() == [True, True, False]


def test_by_hand():
    truth = np.array([0, 0, 1, 1])
    # Class 0 is the majority. Said 0 three times, twice rightly; of the two pseudo-annotations on class 1 one says 1.
    chosen = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1]])
    (found,) = selection_quality([chosen], truth, [10, 2])
    assert found["precision_majority"] == pytest.approx(2 / 3)
    assert found["recall_minority"] == pytest.approx(1 / 2)
    assert found["accuracy"] == pytest.approx(3 / 4)


def test_unknown_truth_does_not_count():
    (found,) = selection_quality([np.array([[0, 0, 1], [1, 0, 1]])], [1, -1], [1, 2])
    assert found["accuracy"] == 1.0 and np.isnan(found["recall_minority"])
    with pytest.raises(DataError, match="truth: expected a class for instance 7 of round 1"):
        selection_quality([np.array([[7, 0, 0]])], [0, 1], [1, 1])
