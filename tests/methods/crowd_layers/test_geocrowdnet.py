"""GeoCrowdNet: the volume by hand, its gradient, naive loops, and that it counts once."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.methods.crowd_layers.geocrowdnet import (
    GeoCrowdNet,
    GeoCrowdNetHead,
    negative_log_determinant,
)
from tests.crowds import array_of, randomised, softmax


def test_volume_without_a_direction_has_no_gradient():
    head = GeoCrowdNetHead(2, "F", weight=1.0)
    f = tf.Variable([[0.4, 0.6], [0.4, 0.6]])  # equal rows: the determinant is 0
    with tf.GradientTape() as tape:
        value = head.penalty(f)
    assert float(value) == 0.0
    assert_array_equal(tape.gradient(value, f), np.zeros((2, 2)))


def test_volume_and_its_gradient_compile_with_xla():
    gram = array_of("2.0 0.5 0.1; 0.5 1.0 0.2; 0.1 0.2 3.0", np.float32)

    @tf.function(jit_compile=True, autograph=False)
    def compiled(matrix):
        with tf.GradientTape() as tape:
            tape.watch(matrix)
            value = negative_log_determinant(matrix)
        return value, tape.gradient(value, matrix)

    value, gradient = compiled(tf.constant(gram))
    assert float(value) == pytest.approx(-np.log(np.linalg.det(gram)), rel=1e-5)
    # A symmetric matrix's gradient is given for its lower triangle.
    both = (np.asarray(gradient) + np.asarray(gradient).T) / 2
    assert_allclose(both, -np.linalg.inv(gram), atol=1e-5)


def test_volume_of_matrices_against_loop_and_order():
    p = softmax(default_rng(0).normal(size=(5, 3))).astype(np.float32)
    head = GeoCrowdNetHead(3, "W", weight=0.1)
    head(p)
    randomised(head)
    matrices = softmax(np.asarray(head.matrix))
    stacked = np.concatenate([m.T for m in matrices])  # [R C observed, C true]
    expected = -0.1 * np.log(np.linalg.det(stacked.T @ stacked))
    assert float(head.penalty(p)) == pytest.approx(expected, rel=1e-4)
    value = np.asarray(head.matrix)
    head.matrix.assign(value[[2, 0, 1]])  # whoever comes first
    assert float(head.penalty(p)) == pytest.approx(expected, rel=1e-4)


def test_penalties_count_once_in_an_estimator(crowd):
    """The same fit on a matrix and on single annotations."""
    x, _, annotations = crowd

    class Single(GeoCrowdNet):
        _few_cells = staticmethod(lambda data: True)

    arguments = {
        "volume": "F",
        "base": {"hidden_units": (4,), "dropout": 0.0},
        "epochs": 2,
        "volume_weight": 0.5,
    }
    first = GeoCrowdNet(**arguments).fit(x, annotations)
    second = Single(**arguments).fit(x, annotations)
    assert_allclose(first.predict_proba(x), second.predict_proba(x), atol=2e-3)
    without = GeoCrowdNet(**{**arguments, "volume_weight": 0.0}).fit(x, annotations)
    assert np.abs(without.predict_proba(x) - first.predict_proba(x)).max() > 5e-3
