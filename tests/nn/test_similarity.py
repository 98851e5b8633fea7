"""Similarities and the softmax over a tuplet."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from neucrowd_tf.nn.similarity import cosine_similarity, euclidean_similarity, similarity
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from tests.crowds import array_of


def test_by_hand() -> None:
    # cos((1, 0), (1, 1)) = 1 / sqrt 2; 1 - ||(1, 0) - (4, 4)|| = 1 - 5 = -4.
    assert float(cosine_similarity(np.array([1.0, 0.0]), np.array([1.0, 1.0]))) == pytest.approx(
        2**-0.5
    )
    assert float(euclidean_similarity(np.array([1.0, 0.0]), np.array([4.0, 4.0]))) == pytest.approx(
        -4.0
    )
    # eta 2, similarities (1, .5, 0), weights (1, .5, 1): logits (2, .5, 0) inside; outside (2, 1 +
    # log .5, 0).
    scores, weights = array_of("1.0 0.5 0.0"), array_of("1.0 0.5 1.0")
    inside = tuplet_log_likelihood(scores, weights, eta=2.0, weight_inside=True)
    assert float(inside) == pytest.approx(2 - np.log(np.exp(2) + np.exp(0.5) + 1), rel=1e-5)
    outside = tuplet_log_likelihood(scores, weights, eta=2.0, weight_inside=False)
    assert float(outside) == pytest.approx(2 - np.log(np.exp(2) + 0.5 * np.exp(1) + 1), rel=1e-5)
    # A weight of 0 counts as 1e-6 outside the exponent: log of 1e-6 against 1e-6 + 1.
    tied = tuplet_log_likelihood(np.zeros(2), np.array([0.0, 1.0]), eta=2.0, weight_inside=False)
    assert float(tied) == pytest.approx(np.log(1e-6 / (1 + 1e-6)), rel=1e-5)


def test_both_formulas() -> None:
    rng = default_rng(0)
    scores, weights = rng.normal(size=(6, 4)), rng.random((6, 4))
    for inside in (True, False):
        result = np.asarray(tuplet_log_likelihood(scores, weights, eta=3.0, weight_inside=inside))
        e = np.exp(3 * weights * scores) if inside else weights * np.exp(3 * scores)
        assert result == pytest.approx(np.log(e[:, 0] / e.sum(axis=1)), rel=1e-4)


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_gradient_is_finite_at_zero(name: str) -> None:
    a = tf.Variable(np.zeros((2, 3), np.float32))
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(similarity(name, a, tf.zeros((2, 3))))
    assert np.isfinite(float(value)) and np.isfinite(tape.gradient(value, a).numpy()).all()
