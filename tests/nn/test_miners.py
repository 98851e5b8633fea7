"""Miners: every pair, every triplet, the semi-hard negative."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from neucrowd_tf.nn.miners import flat_labels, pair_masks, semihard_negatives
from tests.cases import raises
from tests.crowds import array_of

LABELS = array_of("0 1 0 2 1")


def test_masks_by_hand() -> None:
    same, different = (np.asarray(mask) for mask in pair_masks(LABELS))
    assert_array_equal(np.argwhere(same), array_of("0 2; 1 4; 2 0; 4 1"))
    assert not (same & different).any() and (same | different).sum() == 20  # all but the diagonal


def test_semihard_by_hand() -> None:
    # A line 0, 4, 2, 3, 9: anchor 0 with positive 2 (2 away): negatives 4, 3, 9 away; the nearest
    # beyond 2 is the example at 3.
    points = array_of("0.0 4.0 2.0 3.0 9.0")
    distances = np.abs(points[:, None] - points[None, :]).astype(np.float32)
    chosen, counted = (np.asarray(piece) for piece in semihard_negatives(distances, LABELS))
    assert chosen[0, 2] == 3 and counted[0, 2]
    assert_array_equal(counted, np.asarray(pair_masks(LABELS)[0]))


def test_labels_of_other_shapes() -> None:
    assert flat_labels(np.zeros((4, 1))).shape == (4,)
    raises(ValueError, r"\[B\]", flat_labels, np.zeros((4, 2)))


def test_semihard_with_ties_equals_the_definition() -> None:
    rng = default_rng(0)
    labels = rng.integers(0, 3, 40)
    points = np.round(rng.normal(size=(40, 2)))  # many examples coincide, many distances are equal
    distances = np.linalg.norm(points[:, None] - points[None, :], axis=-1).astype(np.float32)
    chosen, counted = (np.asarray(piece) for piece in semihard_negatives(distances, labels))
    for a, p in zip(*np.nonzero(counted), strict=True):
        negatives = distances[a, labels != labels[a]]
        beyond = negatives[negatives > distances[a, p]]
        assert labels[chosen[a, p]] != labels[a]
        assert distances[a, chosen[a, p]] == (beyond.min() if len(beyond) else negatives.max())
