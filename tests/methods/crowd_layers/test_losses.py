"""The loss over annotations, focal and class-balanced weights, and oversampling."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.methods.crowd_layers.common import imbalance, losses
from tests.crowds import array_of, softmax


def test_focal_losses():
    rng = default_rng(0)
    logits = rng.normal(size=(4, 3, 5)).astype(np.float32)
    labels = rng.integers(-1, 5, size=(4, 3)).astype(np.int32)
    p = np.take_along_axis(softmax(logits), labels[..., None], axis=2)[..., 0]
    expected = np.where(labels >= 0, -((1 - p) ** 1.5) * np.log(p), 0)
    assert_allclose(losses.annotation_losses(labels, logits, gamma=1.5), expected, atol=1e-5)


def test_focal_gradient_is_finite_where_the_answer_is_certain():
    logits = tf.Variable([[[200.0, 0.0]]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses.annotation_losses(tf.constant([[0]]), logits, gamma=0.5))
    assert np.isfinite(tape.gradient(loss, logits).numpy()).all()


def test_weights_by_hand(monkeypatch):
    assert_allclose(imbalance.class_weights(array_of("10 5 0"), "reweighting"), [1.0, 2.0, 1.0])
    # beta .5: (1 - .5) / (1 - .5^1) = 1 and .5 / (1 - .25) = 2/3; their mean is 5/6, so 1.2 and .8.
    monkeypatch.setattr(imbalance, "BETA", 0.5)
    assert_allclose(imbalance.class_weights(np.array([1, 2]), "cb_focal"), [1.2, 0.8], atol=1e-6)
    assert_array_equal(imbalance.class_weights(np.array([1, 2]), "focal"), [1.0, 1.0])


def test_oversampling_balances_classes():
    labels = np.repeat([0, 1, 2], [17, 5, 1])
    counts = np.bincount(labels, minlength=4)
    weights = imbalance.class_weights(counts, "resampling")
    copies, other = (
        imbalance.resampled_multiplicities(labels, weights, seed=seed) for seed in (3, 4)
    )
    assert np.bincount(labels, copies).tolist() == [17, 17, 17]
    # 17 = 3 * 5 + 2: two of the five stand once more.
    assert sorted(copies[labels == 1].tolist()) == [3, 3, 3, 4, 4]
    assert not np.array_equal(copies, other)
