"""Sums per annotator under many shifts, against a pass over all annotations for each shift."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.recalibration import Calibration
from neucrowd_tf.certainty.skills import right_sums


@pytest.mark.parametrize("gold_items", [0, 40])
def test_sums_are_those_of_all_annotations(gold_items: int) -> None:
    rng = default_rng(3)
    items = np.repeat(np.arange(400), 4)
    annotators = (items + np.tile(np.arange(4), 400) * 3) % 13
    truth = rng.integers(0, 3, 400)
    labels = np.where(rng.random(1600) < 0.6, truth[items], rng.integers(0, 3, 1600))
    crowd = Annotations(items, annotators, labels, num_classes=3)
    votes = crowd.vote_counts()
    gold = np.where(np.arange(400) < gold_items, truth, -1)
    posteriors = (votes + 1e-3) ** 2 / ((votes + 1e-3) ** 2).sum(axis=1, keepdims=True)
    certainty = Calibration.learned().apply(posteriors, votes, gold)
    assert certainty.tied.sum(axis=1).max() > 1, "ties are part of the case"
    shifts = certainty.shifts[:12]
    sums, variances = right_sums(crowd, certainty, shifts)
    for shift, expected, variance in zip(shifts, sums.T, variances.T, strict=True):
        right = certainty.spread(certainty.right(shift))[crowd.instances, crowd.labels]
        exact = np.bincount(crowd.annotators, right)
        assert expected == pytest.approx(exact, abs=0.01 * exact.mean())
        exact = np.bincount(crowd.annotators, right * (1 - right))
        assert variance == pytest.approx(exact, abs=0.03 * exact.mean())
