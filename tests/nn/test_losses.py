"""Metric-learning losses: by hand, against naive loops, invariants, and the batches that break
careless ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from neucrowd_tf.nn.losses import (
    ClassCenters,
    ContrastiveLoss,
    LiftedStructuredLoss,
    SemiHardTripletLoss,
    TripletCenterLoss,
    TripletLoss,
    contrastive_loss,
    lifted_structured_loss,
    pairwise_distances,
    triplet_center_loss,
    triplet_loss,
)

BATCH_LOSSES = [ContrastiveLoss, TripletLoss, SemiHardTripletLoss, LiftedStructuredLoss]
MADE: list[keras.losses.Loss] = [
    ContrastiveLoss(1.5),
    TripletLoss(0.7),
    TripletLoss(0.7, squared=False),
    SemiHardTripletLoss(0.7),
    SemiHardTripletLoss(0.7, squared=False),
    LiftedStructuredLoss(1.2),
]

each_loss = pytest.mark.parametrize(
    "loss", MADE, ids=lambda loss: f"{loss.name}-{getattr(loss, 'squared', '')}"
)


def batch(seed: int = 0, size: int = 12, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, size), rng.normal(size=(size, 4)).astype(np.float32)


# ----------------------------------------------------------------- by hand


def test_distances_by_hand() -> None:
    # (0, 0), (3, 4), (0, 1): 5, 1, sqrt(9 + 9).
    points = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], np.float32)
    np.testing.assert_allclose(
        pairwise_distances(points), np.sqrt([[0, 25, 1], [25, 0, 18], [1, 18, 0]]), atol=2e-5
    )
    np.testing.assert_allclose(
        pairwise_distances(points, points[1:], squared=True), [[25, 1], [0, 18], [18, 0]], atol=2e-5
    )


def test_contrastive_by_hand() -> None:
    # Same at distance 2: 2^2 / 2 = 2. Different at .5 with margin 1: .5^2 / 2 = .125. Different
    # beyond the margin: 0.
    np.testing.assert_allclose(
        contrastive_loss([2.0, 0.5, 3.0], [True, False, False], margin=1.0), [2.0, 0.125, 0.0]
    )


def test_triplet_by_hand() -> None:
    # 2 - 1 + .5 = 1.5; 1 - 1.2 + .5 = .3; 1 - 4 + .5 < 0.
    np.testing.assert_allclose(
        triplet_loss([2.0, 1.0, 1.0], [1.0, 1.2, 4.0], margin=0.5), [1.5, 0.3, 0.0], rtol=1e-6
    )


def test_semihard_by_hand() -> None:
    # On a line: class 0 at 0 and 2, class 1 at 1, 3 and 10; distances not squared, margin 1.5. 0 ->
    # 2 (d 2): negatives at 1, 3, 10; beyond 2 the nearest is 3: 2 - 3 + 1.5 = .5. 2 -> 0 (d 2):
    # negatives at 1, 1, 8; beyond 2 only 8: 0. 1 -> 3 (d 2): negatives at 1, 1; none beyond,
    # farthest 1: 2 - 1 + 1.5 = 2.5. 1 -> 10 (d 9): 9 - 1 + 1.5 = 9.5. 3 -> 1 (d 2): negatives at 3,
    # 1: 2 - 3 + 1.5 = .5. 3 -> 10 (d 7): none beyond, farthest 3: 7 - 3 + 1.5 = 5.5. 10 -> 1 (d 9):
    # negatives at 10, 8: 9 - 10 + 1.5 = .5. 10 -> 3 (d 7): beyond 7 the nearest is 8: 7 - 8 + 1.5 =
    # .5. The mean of the eight: (.5 + 0 + 2.5 + 9.5 + .5 + 5.5 + .5 + .5) / 8 = 2.4375.
    points = np.array([[0.0], [2.0], [1.0], [3.0], [10.0]], np.float32)
    result = SemiHardTripletLoss(1.5, squared=False)(np.array([0, 0, 1, 1, 1]), points)
    assert float(result) == pytest.approx(2.4375, rel=1e-4)


def test_lifted_by_hand() -> None:
    # Class 0 at 0 and 1, class 1 at 3; margin 1. One pair: J = log(exp(1 - 3) + exp(1 - 2)) + 1 =
    # log(e^-2 + e^-1) + 1.
    expected = 0.5 * (np.log(np.exp(-2) + np.exp(-1)) + 1) ** 2
    result = LiftedStructuredLoss(1.0)(
        np.array([0, 0, 1]), np.array([[0.0], [1.0], [3.0]], np.float32)
    )
    assert float(result) == pytest.approx(expected, rel=1e-4)
    values, counted = lifted_structured_loss(
        pairwise_distances(np.array([[0.0], [1.0], [3.0]], np.float32)),
        np.array([0, 0, 1]),
        margin=1.0,
    )
    np.testing.assert_array_equal(
        counted, [[False, True, False], [True, False, False], [False, False, False]]
    )
    assert float(values[0, 1]) == pytest.approx(expected, rel=1e-4)


def test_triplet_center_by_hand() -> None:
    # Own 1, nearest other 2, margin 3: 1 + 3 - 2 = 2. Own .5, nearest other 4: 0.
    np.testing.assert_allclose(
        triplet_center_loss([[1.0, 2.0, 9.0], [7.0, 4.0, 0.5]], [0, 2], margin=3.0), [2.0, 0.0]
    )


def test_centers_give_half_squared_distances() -> None:
    layer = ClassCenters(2)
    layer.build((None, 2))
    layer.set_weights([np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)])
    np.testing.assert_allclose(
        layer(np.array([[3.0, 4.0], [0.0, 2.0]], np.float32)), [[12.5, 0.0], [2.0, 6.5]], atol=1e-5
    )


def test_centers_start_apart_by_the_seed() -> None:
    first, again, other = (ClassCenters(60, seed=seed) for seed in (1, 1, 2))
    for layer in (first, again, other):
        layer.build((None, 60))
    assert np.asarray(first.centers).std() == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(first.centers, again.centers)
    assert (np.asarray(first.centers) != np.asarray(other.centers)).all()


# ----------------------------------------------------------------- naive loops


def naive_contrastive(labels: np.ndarray, x: np.ndarray, margin: float, squared: bool) -> float:
    values = []
    for i, j in itertools.combinations(range(len(x)), 2):
        d = np.linalg.norm(x[i] - x[j])
        values.append(
            0.5 * d**2 if labels[i] == labels[j] else 0.5 * max(0.0, float(margin - d)) ** 2
        )
    return float(np.mean(np.array(values)))


def naive_triplet(labels: np.ndarray, x: np.ndarray, margin: float, squared: bool) -> float:
    values = []
    for a, p, n in itertools.permutations(range(len(x)), 3):
        if labels[a] == labels[p] != labels[n]:
            near, far = (np.linalg.norm(x[a] - x[b]) ** (2 if squared else 1) for b in (p, n))
            values.append(max(0.0, float(near - far + margin)))
    return float(np.mean(values))


def naive_semihard(labels: np.ndarray, x: np.ndarray, margin: float, squared: bool) -> float:
    values = []
    for a, p in itertools.permutations(range(len(x)), 2):
        if labels[a] != labels[p]:
            continue
        near = np.linalg.norm(x[a] - x[p]) ** (2 if squared else 1)
        far = [
            np.linalg.norm(x[a] - x[n]) ** (2 if squared else 1)
            for n in range(len(x))
            if labels[n] != labels[a]
        ]
        beyond = [d for d in far if d > near]
        values.append(max(0.0, float(near - (min(beyond) if beyond else max(far)) + margin)))
    return float(np.mean(values))


def naive_lifted(labels: np.ndarray, x: np.ndarray, margin: float, squared: bool) -> float:
    values = []
    for i, j in itertools.combinations(range(len(x)), 2):
        if labels[i] == labels[j]:
            terms = [
                np.exp(margin - np.linalg.norm(x[k] - x[n]))
                for k in (i, j)
                for n in range(len(x))
                if labels[n] != labels[i]
            ]
            values.append(max(0.0, float(np.log(sum(terms)) + np.linalg.norm(x[i] - x[j]))) ** 2)
    return float(np.sum(values) / (2 * len(values)))


NAIVE: dict[type, Callable[..., float]] = dict(
    zip(BATCH_LOSSES, (naive_contrastive, naive_triplet, naive_semihard, naive_lifted), strict=True)
)


@pytest.mark.parametrize("seed", [0, 1, 2])
@each_loss
def test_equals_naive_loop(loss: Any, seed: int) -> None:
    labels, x = batch(seed)
    expected = NAIVE[type(loss)](labels, x, loss.margin, getattr(loss, "squared", False))
    assert expected > 0.05
    assert float(loss(labels, x)) == pytest.approx(expected, rel=2e-4)


def test_triplet_center_equals_naive_loop() -> None:
    labels, x = batch()
    centers = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    values = []
    for row, label in zip(x, labels, strict=True):
        d = [0.5 * np.sum((row - center) ** 2) for center in centers]
        values.append(max(0.0, d[label] + 2.0 - min(d[c] for c in range(3) if c != label)))
    result = TripletCenterLoss(2.0)(labels, 0.5 * pairwise_distances(x, centers, squared=True))
    assert float(result) == pytest.approx(np.mean(values), rel=1e-4)


# ----------------------------------------------------------------- invariants


@each_loss
def test_order_place_and_names_of_classes_do_not_matter(loss: Any) -> None:
    labels, x = batch(3)
    value = float(loss(labels, x))
    order = np.random.default_rng(0).permutation(len(x))
    assert float(loss(labels[order], x[order])) == pytest.approx(value, rel=1e-4)
    assert float(loss(labels, x + 100.0)) == pytest.approx(value, rel=1e-3)
    assert float(loss(np.array([7, 0, 3])[labels], x)) == pytest.approx(value, rel=1e-6)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0].astype(np.float32)
    assert float(loss(labels, x @ turn)) == pytest.approx(value, rel=1e-3)


@each_loss
def test_columns_of_labels_and_unknown_batch_sizes(loss: Any) -> None:
    labels, x = batch(4)
    value = float(loss(labels, x))
    assert float(loss(labels[:, None], x)) == pytest.approx(value, rel=1e-6)
    traced = tf.function(
        lambda y, z: loss(y, z),
        input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 4], tf.float32)],
    )
    assert float(traced(labels, x)) == pytest.approx(value, rel=1e-5)
    shares = type(loss).from_config({**loss.get_config(), "reduction": "none"})(labels, x)
    assert shares.shape == (12,) and float(np.mean(shares)) == pytest.approx(value, rel=1e-5)


# ----------------------------------------------------------------- what breaks careless ones

HARD = {
    "one class": (np.zeros(4, int), np.random.default_rng(0).normal(size=(4, 3))),
    "one of each class": (np.arange(4), np.random.default_rng(0).normal(size=(4, 3))),
    "one example": (np.zeros(1, int), np.ones((1, 3))),
    "all coincide": (np.array([0, 0, 1, 1]), np.ones((4, 3))),
    "positives coincide": (
        np.array([0, 0, 1, 1]),
        np.array([[1.0, 1, 1], [1, 1, 1], [5, 5, 5], [6, 6, 6]]),
    ),
    "far apart": (np.array([0, 0, 1, 1]), 1e6 * np.eye(4, 3)),
}


@pytest.mark.parametrize("case", HARD)
@each_loss
def test_value_and_gradient_are_finite(loss: Any, case: str) -> None:
    labels, points = HARD[case]
    x = tf.Variable(points.astype(np.float32))
    with tf.GradientTape() as tape:
        value = loss(labels, x)
    gradient = tape.gradient(value, x)
    assert np.isfinite(float(value)) and np.isfinite(gradient.numpy()).all()
    lacking = (
        {"one example"}
        if isinstance(loss, ContrastiveLoss)
        else {"one class", "one of each class", "one example"}
    )
    if case in lacking:  # there is nothing to learn from: no pair, or no triplet
        assert float(value) == 0.0 and not gradient.numpy().any()


def test_triplet_center_gradient_is_finite_on_a_center() -> None:
    layer, x = ClassCenters(2), tf.Variable(np.ones((2, 3), np.float32))
    layer.build((2, 3))
    layer.centers.assign(x)
    with tf.GradientTape() as tape:
        value = TripletCenterLoss(1.0)(np.array([0, 1]), layer(x))
    gradients = tape.gradient(value, [x, layer.centers])
    assert float(value) == pytest.approx(1.0)
    assert all(np.isfinite(np.asarray(g)).all() for g in gradients)


def test_shapes_that_would_broadcast_are_errors() -> None:
    with pytest.raises(ValueError, match="one shape"):
        contrastive_loss(np.ones(4), np.ones((4, 1), bool))
    with pytest.raises(ValueError, match="one shape"):
        triplet_loss(np.ones((4, 1)), np.ones(4))
    with pytest.raises(ValueError, match="labels"):
        ContrastiveLoss()(np.eye(3), np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match=r"\[B, h\]"):
        SemiHardTripletLoss()(np.zeros(3), np.ones((4, 2), np.float32))
    with pytest.raises(ValueError, match=r"\[B, C\]"):
        triplet_center_loss(np.ones((3, 2), np.float32), np.zeros(4))
    with pytest.raises(ValueError, match=r"\[B, h\]"):
        pairwise_distances(np.ones((3, 2), np.float32), np.ones((3, 4), np.float32))


# ----------------------------------------------------------------- alone in anyone's model


@pytest.mark.ci
@pytest.mark.parametrize("name", ["center", "lifted"])
def test_trains_and_reloads_in_a_plain_keras_model(name: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = (np.eye(3, 5)[labels] * 2 + rng.normal(size=(60, 5))).astype(np.float32)
    layers: list[Any] = [
        keras.layers.Dense(4, kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    ]
    loss: Any = LiftedStructuredLoss() if name == "lifted" else TripletCenterLoss()
    model = keras.Sequential(
        [keras.Input((5,)), *layers, *([ClassCenters(3)] if name == "center" else [])]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss=loss)
    history = model.fit(x, labels, batch_size=30, epochs=8, verbose=0, shuffle=False).history[
        "loss"
    ]
    assert history[-1] < 0.8 * history[0]
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        keras.models.load_model(tmp_path / "model.keras")(x), model(x), atol=1e-6
    )


# ----------------------------------------------------------------- half precision


def test_half_precision_keeps_zero_distances_and_large_ones_finite() -> None:
    # float16 rounds the guard of 1e-12 to 0 and has no squares beyond 65,504.
    for scale in (0.0, 1.0, 1e3):
        points = tf.Variable(scale * np.ones((4, 3)), dtype=tf.float16)
        points[0].assign(tf.zeros(3, tf.float16))
        labels = tf.constant([0, 0, 1, 1])
        with tf.GradientTape() as tape:
            distances = pairwise_distances(points)
            value = tf.reduce_sum(distances) + tf.reduce_sum(
                lifted_structured_loss(distances, labels)[0]
            )
        assert np.isfinite(float(value))
        assert np.isfinite(tape.gradient(value, points).numpy()).all()
    np.testing.assert_allclose(np.asarray(distances)[0, 1], 1e3 * np.sqrt(3), rtol=1e-3)
