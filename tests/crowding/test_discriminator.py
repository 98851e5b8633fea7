"""Eq. 2, the label-correlation decoder and the discriminator's loss, against values by hand and
naive loops.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding.discriminator import (
    Discriminator,
    discriminator_losses,
    generator_signal,
    label_cooccurrence,
    label_correlation,
    output_penalty,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)
E = RNG.normal(size=(4, 3)).astype(np.float32)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-values))


def test_cooccurrence_and_correlation_by_hand() -> None:
    # Instance 0 has labels 0, 0, 1: two pairs {0, 1}. Instance 1 has 1, 2: one pair {1, 2}.
    # Instance 2 has one label: none. So A = [[0 2 0], [2 0 1], [0 1 0]]; its largest row sum is 3,
    # and A/3 + I has row sums 5/3, 2, 4/3.
    crowd = Annotations.from_dense([[0, 0, 1], [1, 2, -1], [2, -1, -1]], num_classes=3)
    counts = label_cooccurrence(crowd)
    np.testing.assert_array_equal(counts, [[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    a, b, c = 5 / 3, 2.0, 4 / 3
    expected = [
        [1 / a, (2 / 3) / np.sqrt(a * b), 0],
        [(2 / 3) / np.sqrt(a * b), 1 / b, (1 / 3) / np.sqrt(b * c)],
        [0, (1 / 3) / np.sqrt(b * c), 1 / c],
    ]
    np.testing.assert_allclose(label_correlation(counts), expected, rtol=1e-6)


def test_cooccurrence_leaves_generated_annotations_out() -> None:
    crowd = Annotations.from_dense([[0, 1, -1]], num_classes=3)
    np.testing.assert_array_equal(
        label_cooccurrence(crowd.with_generated([0], [2], [2])), label_cooccurrence(crowd)
    )


def test_correlation_without_a_shared_instance_is_the_identity() -> None:
    np.testing.assert_array_equal(label_correlation(np.zeros((3, 3))), np.eye(3))


def made(aggregate: bool) -> Discriminator:
    discriminator = Discriminator(5, 3, 3, embedding_size=4, aggregate_labels=aggregate, seed=1)
    correlation = np.array([[0.6, 0.3, 0.0], [0.3, 0.5, 0.2], [0.0, 0.2, 0.7]], np.float32)
    discriminator.correlation.assign(correlation)
    return discriminator


def naive(discriminator: Discriminator) -> np.ndarray:
    """u_r^T M_c v_n, with M_c mixed over the classes by hand where labels are aggregated."""
    wu, bu = discriminator.annotator_encoder.get_weights()
    wv, bv = discriminator.instance_encoder.get_weights()
    matrices, mixing, correlation = (
        np.asarray(w)
        for w in (discriminator.matrices, discriminator.mixing, discriminator.correlation)
    )
    scores = np.zeros((len(X), len(E), 3))
    for c in range(3):
        m = matrices[c]
        if discriminator.aggregate_labels:
            m = sum(correlation[c, other] * matrices[other] for other in range(3)) @ mixing
        for n in range(len(X)):
            for r in range(len(E)):
                scores[n, r, c] = (E[r] @ wu + bu) @ m @ (X[n] @ wv + bv)
    return scores


def test_bilinear_scores_equal_a_naive_loop() -> None:
    for aggregate in (True, False):
        discriminator = made(aggregate)
        expected = naive(discriminator)
        np.testing.assert_allclose(
            discriminator.all_pairs(discriminator.encode(X, E)), expected, rtol=1e-4, atol=1e-5
        )
        rows, codes = np.array([5, 0, 3]), np.array([1, 3, 1])
        np.testing.assert_allclose(
            discriminator.some_pairs(discriminator.encode(X[rows], E), codes),
            expected[rows, codes],
            rtol=1e-4,
            atol=1e-5,
        )


def test_without_aggregation_mixing_is_not_trained() -> None:
    assert any("mixing" in v.path for v in made(True).trainable_variables)
    assert not any("mixing" in v.path for v in made(False).trainable_variables)


LOGITS = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5], [-0.3, 0.2, 0.1]], np.float32)
LABELS = np.array([0, 2, 1])
AUTHENTIC = np.array([True, False, True])


def test_losses_equal_a_naive_loop() -> None:
    expected, literal = [], []
    for row, label, real in zip(sigmoid(LOGITS.astype(float)), LABELS, AUTHENTIC, strict=True):
        if real:
            expected.append(
                -sum(np.log(d) if c == label else np.log(1 - d) for c, d in enumerate(row))
            )
            literal.append(-np.log(row[label]))
        else:
            expected.append(-np.log(1 - row[label]))
            literal.append(-np.log(1 - row[label]))
    np.testing.assert_allclose(discriminator_losses(LOGITS, LABELS, AUTHENTIC), expected, rtol=1e-5)
    np.testing.assert_allclose(
        discriminator_losses(LOGITS, LABELS, AUTHENTIC, literal=True), literal, rtol=1e-5
    )


def test_losses_by_hand() -> None:
    # At logits of zero D is 1/2 everywhere: an authentic annotation of 3 classes costs 3 log 2, a
    # generated one log 2.
    losses = discriminator_losses(
        np.zeros((2, 3), np.float32), np.array([1, 1]), np.array([True, False])
    )
    np.testing.assert_allclose(losses, [3 * np.log(2), np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(output_penalty(np.zeros((4, 3), np.float32)), 0.25)
    np.testing.assert_allclose(
        generator_signal(np.zeros((2, 2, 3), np.float32), np.zeros((2, 2), np.int32)),
        -np.log(2) * np.ones((2, 2)),
        rtol=1e-6,
    )


def test_losses_stay_finite_and_a_generated_annotation_moves_one_entry() -> None:
    logits = tf.Variable(np.full((2, 3), 80.0, np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(
            discriminator_losses(logits, np.array([0, 2]), np.array([False, False]))
        )
    assert np.isfinite(loss)
    np.testing.assert_array_equal(
        np.asarray(tape.gradient(loss, logits)) != 0, [[True, False, False], [False, False, True]]
    )


def test_generator_signal_picks_the_drawn_label() -> None:
    labels = np.array([2, 0, 1])
    expected = [
        np.log(1 - sigmoid(LOGITS.astype(float))[i, label]) for i, label in enumerate(labels)
    ]
    np.testing.assert_allclose(generator_signal(LOGITS, labels), expected, rtol=1e-5)
