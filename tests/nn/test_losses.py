"""Metric-learning losses: by hand, against naive loops, invariants, and the batches that break
careless ones.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.nn.losses import (
    ClassCenters,
    contrastive_loss,
    lifted_structured_loss,
    pairwise_distances,
    semihard_triplet_loss,
    triplet_center_loss,
    triplet_loss,
)
from tests.cases import raises
from tests.crowds import array_of, corners

BATCH_LOSSES = [semihard_triplet_loss, lifted_structured_loss]

each_loss = pytest.mark.parametrize("loss", BATCH_LOSSES)


def batch(seed: int = 0, size: int = 12, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = default_rng(seed)
    return rng.integers(0, classes, size), rng.normal(size=(size, 4)).astype(np.float32)


# ----------------------------------------------------------------- by hand


def test_distances_by_hand() -> None:
    # (0, 0), (3, 4), (0, 1): 5, 1, sqrt(9 + 9).
    points = array_of("0.0 0.0; 3.0 4.0; 0.0 1.0", np.float32)
    assert_allclose(
        pairwise_distances(points), np.sqrt([[0, 25, 1], [25, 0, 18], [1, 18, 0]]), atol=2e-5
    )
    assert_allclose(
        pairwise_distances(points, points[1:], squared=True),
        array_of("25 1; 0 18; 18 0"),
        atol=2e-5,
    )


def test_contrastive_by_hand() -> None:
    # Same at distance 2: 2^2 / 2 = 2. Different at .5 with margin 1: .5^2 / 2 = .125. Different
    # beyond the margin: 0.
    assert_allclose(
        contrastive_loss([2.0, 0.5, 3.0], [True, False, False], margin=1.0), [2.0, 0.125, 0.0]
    )


def test_triplet_by_hand() -> None:
    # 2 - 1 + .5 = 1.5; 1 - 1.2 + .5 = .3; 1 - 4 + .5 < 0.
    assert_allclose(
        triplet_loss([2.0, 1.0, 1.0], [1.0, 1.2, 4.0], margin=0.5), [1.5, 0.3, 0.0], rtol=1e-6
    )


def test_semihard_by_hand() -> None:
    # On a line: class 0 at 0 and 2, class 1 at 1, 3 and 10; squared distances, margin 6.
    # 0 -> 2 (4): negatives 1, 9, 100; beyond 4 the nearest is 9: 4 - 9 + 6 = 1.
    # 2 -> 0 (4): negatives 1, 1, 64; beyond 4 only 64: 0.
    # 1 -> 3 (4): negatives 1, 1; none beyond, farthest 1: 4 - 1 + 6 = 9.
    # 1 -> 10 (81): 81 - 1 + 6 = 86.
    # 3 -> 1 (4): negatives 9, 1: 4 - 9 + 6 = 1.
    # 3 -> 10 (49): none beyond, farthest 9: 49 - 9 + 6 = 46.
    # 10 -> 1 (81): negatives 100, 64: 0. 10 -> 3 (49): beyond 49 the nearest is 64: 0.
    # The mean of the eight: 143 / 8 = 17.875.
    points = array_of("0.0; 2.0; 1.0; 3.0; 10.0", np.float32)
    result = semihard_triplet_loss(array_of("0 0 1 1 1"), points, margin=6.0)
    assert np.mean(result) == pytest.approx(17.875, rel=1e-4)


def test_lifted_by_hand() -> None:
    # Class 0 at 0 and 1, class 1 at 3; margin 1. One pair: J = log(exp(1 - 3) + exp(1 - 2)) + 1 =
    # log(e^-2 + e^-1) + 1.
    expected = 0.5 * (np.log(np.exp(-2) + np.exp(-1)) + 1) ** 2
    result = lifted_structured_loss(
        array_of("0 0 1"), array_of("0.0; 1.0; 3.0", np.float32), margin=1.0
    )
    assert np.mean(result) == pytest.approx(expected, rel=1e-4)


def test_triplet_center_by_hand() -> None:
    # Own 1, nearest other 2, margin 3: 1 + 3 - 2 = 2. Own .5, nearest other 4: 0.
    assert_allclose(
        triplet_center_loss([0, 2], [[1.0, 2.0, 9.0], [7.0, 4.0, 0.5]], margin=3.0), [2.0, 0.0]
    )


def test_centers_give_half_squared_distances() -> None:
    layer = ClassCenters(2)
    layer.build((None, 2))
    layer.set_weights([array_of("0.0 0.0; 3.0 4.0", np.float32)])
    assert_allclose(
        layer(array_of("3.0 4.0; 0.0 2.0", np.float32)), array_of("12.5 0.0; 2.0 6.5"), atol=1e-5
    )


def test_centers_start_apart_by_the_seed() -> None:
    first, again, other = (ClassCenters(60, seed=seed) for seed in (1, 1, 2))
    for layer in (first, again, other):
        layer.build((None, 60))
    assert np.asarray(first.centers).std() == pytest.approx(0.5, rel=0.05)
    assert_array_equal(first.centers, again.centers)
    assert (np.asarray(first.centers) != np.asarray(other.centers)).all()


# ----------------------------------------------------------------- naive loops


# ----------------------------------------------------------------- invariants


@each_loss
def test_columns_of_labels_and_unknown_batch_sizes(loss) -> None:
    labels, x = batch(4)
    value = np.mean(loss(labels, x))
    assert np.mean(loss(labels[:, None], x)) == pytest.approx(value, rel=1e-6)
    traced = tf.function(
        lambda y, z: loss(y, z),
        input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 4], tf.float32)],
    )
    shares = traced(labels, x)
    assert shares.shape == (12,) and np.mean(shares) == pytest.approx(value, rel=1e-5)


# ----------------------------------------------------------------- what breaks careless ones

HARD = {
    "one class": (np.zeros(4, int), default_rng(0).normal(size=(4, 3))),
    "one of each class": (np.arange(4), default_rng(0).normal(size=(4, 3))),
    "one example": (np.zeros(1, int), np.ones((1, 3))),
    "all coincide": (array_of("0 0 1 1"), np.ones((4, 3))),
    "positives coincide": (array_of("0 0 1 1"), array_of("1.0 1 1; 1 1 1; 5 5 5; 6 6 6")),
    "far apart": (array_of("0 0 1 1"), 1e6 * np.eye(4, 3)),
}


@pytest.mark.parametrize("case", HARD)
@each_loss
def test_value_and_gradient_are_finite(loss, case: str) -> None:
    labels, points = HARD[case]
    x = tf.Variable(points.astype(np.float32))
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(loss(labels, x))
    gradient = tape.gradient(value, x)
    assert np.isfinite(float(value)) and np.isfinite(gradient.numpy()).all()
    if case in {"one class", "one of each class", "one example"}:  # there is no triplet
        assert float(value) == 0.0 and not gradient.numpy().any()


def test_triplet_center_gradient_is_finite_on_a_center() -> None:
    layer, x = ClassCenters(2), tf.Variable(np.ones((2, 3), np.float32))
    layer.build((2, 3))
    layer.centers.assign(x)
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(triplet_center_loss(np.array([0, 1]), layer(x), margin=1.0))
    gradients = tape.gradient(value, [x, layer.centers])
    assert float(value) == pytest.approx(1.0)
    assert all(np.isfinite(np.asarray(g)).all() for g in gradients)


def test_labels_that_would_broadcast_are_an_error() -> None:
    raises(ValueError, "labels", semihard_triplet_loss, np.eye(3), np.ones((3, 2), np.float32))


# ----------------------------------------------------------------- alone in anyone's model


@pytest.mark.parametrize("name", ["center", "lifted"])
def test_trains_and_reloads_in_a_plain_keras_model(name: str, tmp_path) -> None:
    rng = default_rng(0)
    labels = np.arange(60) % 3
    x = corners(rng, labels, 5, 2)
    layers: list[Any] = [
        keras.layers.Dense(4, kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    ]
    loss: Any = lifted_structured_loss if name == "lifted" else triplet_center_loss
    model = keras.Sequential(
        [keras.Input((5,)), *layers, *([ClassCenters(3)] if name == "center" else [])]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss=loss)
    history = model.fit(x, labels, batch_size=30, epochs=8, verbose=0, shuffle=False).history[
        "loss"
    ]
    assert history[-1] < 0.8 * history[0]
    model.save(tmp_path / "model.keras")
    assert_allclose(
        keras.models.load_model(tmp_path / "model.keras", compile=False)(x), model(x), atol=1e-6
    )


def test_half_precision_keeps_zero_distances_and_large_ones_finite() -> None:
    # float16 rounds the guard of 1e-12 to 0 and has no squares beyond 65,504.
    for scale in (0.0, 1.0, 1e3):
        points = tf.Variable(scale * np.ones((4, 3)), dtype=tf.float16)
        points[0].assign(tf.zeros(3, tf.float16))
        labels = tf.constant([0, 0, 1, 1])
        with tf.GradientTape() as tape:
            distances = pairwise_distances(points)
            value = tf.reduce_sum(distances) + tf.reduce_sum(lifted_structured_loss(labels, points))
        assert np.isfinite(float(value))
        assert np.isfinite(tape.gradient(value, points).numpy()).all()
    assert_allclose(np.asarray(distances)[0, 1], 1e3 * np.sqrt(3), rtol=1e-3)
