"""COIN-Net: a shift for each annotation, and outliers have the large ones."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowd_layers.coinnet import COINNet
from tests.crowds import corners

RNG = default_rng(0)


def test_a_fit_with_more_annotations_has_a_shift_for_each():
    """As the rounds of self-training, which keep a compiled network, have."""
    features = RNG.normal(size=(20, 2)).astype(np.float32)
    dense = RNG.integers(0, 2, (20, 3))
    model = COINNet(base={"hidden_units": (4,)}, epochs=1)
    with model.reused():
        for labels in (np.where(np.arange(60).reshape(20, 3) % 2, dense, -1), dense):
            model.fit(features, Annotations.from_dense(labels, num_classes=2))
            assert model.network.model.outliers.shift.shape[0] == (labels >= 0).sum()


def test_outliers_have_the_shifts():
    rng = default_rng(2)
    truth = np.repeat([0, 1], 60)
    features = corners(rng, truth, 2, 4)
    dense = np.repeat(truth[:, None], 4, axis=1)
    outliers = np.arange(0, 120, 15)
    dense[outliers] = 1 - dense[outliers]
    crowd = Annotations.from_dense(dense, num_classes=2)
    model = COINNet(
        base={"hidden_units": (8,), "dropout": 0.0}, epochs=60, batch_size=30, learning_rate=0.02
    )
    model.fit(features, crowd)
    assert model.outlier_scores_.shape == (120,)
    others = np.setdiff1d(np.arange(120), outliers)
    assert model.outlier_scores_[outliers].min() > model.outlier_scores_[others].max()
