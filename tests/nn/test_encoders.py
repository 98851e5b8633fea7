"""Encoders, initialisers and optimizers by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.nn.embedding_networks import build_encoder
from neucrowd_tf.training.networks import DenseEncoder
from tests.crowds import array_of


def test_by_hand() -> None:
    # One unit with weights (1, 2) and bias -3, sigmoid: at (1, 1) sigmoid(0) = .5; penalty .1 * (1
    # + 4) = .5.
    model = build_encoder(DenseEncoder(hidden_units=(1,), dropout=0.0, l2=0.1), 2)
    model.set_weights([array_of("1.0; 2.0"), array_of("-3.0")])
    assert float(model(np.ones((1, 2), np.float32))[0, 0]) == pytest.approx(0.5)
    assert float(model.losses[0]) == pytest.approx(0.5)


def test_layers_equal_a_naive_forward_pass() -> None:
    model = build_encoder(
        DenseEncoder(hidden_units=(4, 3), dropout=0.5, l2=0.0, activation="tanh"), 5, seed=2
    )
    x = default_rng(0).normal(size=(7, 5)).astype(np.float32)
    k0, b0, k1, b1 = (np.asarray(w) for w in model.get_weights() if w.dtype == np.float32)
    assert_allclose(
        model(x, training=False), np.tanh(np.tanh(x @ k0 + b0) @ k1 + b1), rtol=1e-4, atol=1e-6
    )


def test_each_layer_has_a_seed_of_its_own_and_the_input_is_never_dropped() -> None:
    model = build_encoder(DenseEncoder(hidden_units=(20, 20, 20), dropout=0.5, l2=0.0), 20, seed=1)
    kernels = [layer.kernel.numpy() for layer in model.layers if hasattr(layer, "kernel")]
    assert not any(np.array_equal(kernels[i], kernels[j]) for i in range(3) for j in range(i))
    assert [layer.name for layer in model.layers] == [
        "features",
        "dense_0",
        "dropout_1",
        "dense_1",
        "dropout_2",
        "dense_2",
    ]
    # The same weights under two seeds: the masks differ.
    other = build_encoder(DenseEncoder(hidden_units=(20, 20, 20), dropout=0.5, l2=0.0), 20, seed=2)
    for mine, theirs in zip(other.trainable_variables, model.trainable_variables, strict=True):
        mine.assign(theirs)
    x = np.ones((4, 20), np.float32)
    assert_array_equal(model(x, training=False), other(x, training=False))
    assert not np.array_equal(model(x, training=True), other(x, training=True))
