"""ICED's networks in one step: which rows and targets each of the three trainings takes, and which
weights it changes.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.methods.iced.networks import ICEDModel
from tests.crowds import array_of, softmax

N, D, H, C, BATCH = 10, 4, 3, 2, 4
RNG = default_rng(0)
X = RNG.normal(size=(N, D)).astype(np.float32)
SYNTHETIC = RNG.normal(size=(3, D)).astype(np.float32)
TARGETS = RNG.dirichlet(np.ones(C), size=N + 3).astype(np.float32)
NETWORKS = ("encoder", "classifier", "decoder")


def dense(inputs: int, outputs: int, seed: int, activation: str | None = None) -> keras.Model:
    x = keras.Input((inputs,))
    layer = keras.layers.Dense(
        outputs, activation, kernel_initializer=keras.initializers.GlorotUniform(seed)
    )
    return keras.Model(x, layer(x))


def make(rate: float = 0.0, encoder: keras.Model | None = None) -> ICEDModel:
    """At a rate of zero every step of an epoch sees the same weights."""
    networks = encoder or dense(D, H, 1, "tanh"), dense(H, C, 2), dense(H, D, 3)
    model = ICEDModel(
        *networks, X, C, batch_size=BATCH, make_optimizer=lambda: keras.optimizers.SGD(rate)
    )
    model.set_rows(TARGETS, SYNTHETIC)
    return model


def weights(model: ICEDModel) -> dict[str, list[np.ndarray]]:
    return {
        name: [np.array(v) for v in getattr(model, name).trainable_variables] for name in NETWORKS
    }


def changed(model: ICEDModel, before: dict[str, list[np.ndarray]]) -> set[str]:
    return {
        name
        for name, now in weights(model).items()
        if any((a != b).any() for a, b in zip(before[name], now, strict=True))
    }


def naive(model: ICEDModel) -> tuple[np.ndarray, np.ndarray]:
    """Returns each row's cross-entropy `[N + S]` and each real row's mean squared error `[N]`, from
    the weights.
    """
    (we, be), (wc, bc), (wd, bd) = weights(model).values()
    rows = np.concatenate([X, SYNTHETIC]).astype(float)
    z = np.tanh(rows @ we + be)
    entropies = -(TARGETS * np.log(softmax(z @ wc + bc))).sum(axis=1)
    return entropies, np.square(z @ wd + bd - rows).mean(axis=1)[:N]


def test_the_classifier_learns_real_and_synthetic_rows_by_their_own_targets() -> None:
    model = make()
    order = array_of("0 12 9 10 3 11 12 2")  # 10 to 12 are synthetic
    model.set_epoch(classifier=order)
    logs = model.train_epoch(0)
    assert float(logs["loss"]) == pytest.approx(naive(model)[0][order].mean(), rel=1e-5)
    assert float(logs["reconstruction"]) == 0.0


@pytest.mark.parametrize("which", ["autoencoder", "decoder"])
def test_both_ways_to_train_the_decoder_reconstruct_real_rows(which: str) -> None:
    model = make()
    order = array_of("1 9 0 4")
    model.set_epoch(**{which: order})  # type: ignore[arg-type]
    logs = model.train_epoch(0)
    assert float(logs["reconstruction"]) == pytest.approx(naive(model)[1][order].mean(), rel=1e-5)
    assert float(logs["loss"]) == 0.0


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("autoencoder", {"encoder", "decoder"}),
        ("classifier", {"encoder", "classifier"}),
        ("decoder", {"decoder"}),
    ],
)
def test_each_training_changes_its_own_networks(which: str, expected: set[str]) -> None:
    model = make(rate=0.1)
    before = weights(model)
    order: Any = np.arange(8)
    model.set_epoch(**{which: order})
    first = sum(float(value) for value in model.train_epoch(0).values())
    assert changed(model, before) == expected
    assert sum(float(value) for value in model.train_epoch(1).values()) < first
    # An epoch without any rows changes nothing, whatever the one before had.
    model.set_epoch()
    before = weights(model)
    assert [float(value) for value in model.train_epoch(2).values()] == [0.0, 0.0]
    assert changed(model, before) == set()


def test_penalties_of_the_networks_are_trained_on_and_not_logged() -> None:
    x, penalty = keras.Input((D,)), keras.regularizers.L2(1.0)
    layer = keras.layers.Dense(H, kernel_regularizer=penalty, kernel_initializer="ones")
    model = make(0.1, keras.Model(x, layer(x)))
    # Nothing to learn from the labels, nor the encoder from them.
    model.classifier.layers[-1].kernel.assign(np.zeros((H, C)))
    model.set_rows(np.full((N, C), 0.5))
    model.set_epoch(classifier=np.arange(BATCH))
    assert float(model.train_epoch(0)["loss"]) == pytest.approx(np.log(2), rel=1e-5)
    # The penalty's gradient is 2 w: .1 of it leaves .8.
    np.testing.assert_allclose(layer.kernel, np.full((D, H), 0.8), rtol=1e-5)
