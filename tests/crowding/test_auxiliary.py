"""The auxiliary network and the information loss (eq. 3)."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from neucrowd_tf.crowding.discriminative import Auxiliary, information_loss, latent_log_likelihood
from neucrowd_tf.crowding.discriminator import Discriminator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)
E = RNG.normal(size=(4, 3)).astype(np.float32)


def made() -> tuple[Discriminator, Auxiliary]:
    discriminator = Discriminator(5, 3, 3, embedding_size=4, seed=1)
    discriminator.correlation.assign(
        np.array([[0.6, 0.3, 0.0], [0.3, 0.5, 0.2], [0.0, 0.2, 0.7]], np.float32)
    )
    auxiliary = Auxiliary(3, hidden_units=6, label_size=5, embedding_size=4, seed=1)
    return discriminator, auxiliary


def test_scores_equal_a_naive_loop_over_concatenated_inputs() -> None:
    discriminator, q = made()
    (wu, bu), (wv, bv) = (
        discriminator.annotator_encoder.get_weights(),
        discriminator.instance_encoder.get_weights(),
    )
    (wm, bm), (wl, bl), (ws, bs) = (
        layer.get_weights() for layer in (q.label_embedding, q.from_label, q.scores)
    )
    kernel = np.concatenate(
        [q.from_instance.get_weights()[0], q.from_annotator.get_weights()[0], wl]
    )
    matrices = np.asarray(discriminator.class_matrices())
    labels = RNG.integers(0, 3, (6, 4))
    expected = np.zeros((6, 4, 3))
    for n in range(6):
        for r in range(4):
            pair = np.concatenate(
                [X[n] @ wv + bv, E[r] @ wu + bu, matrices[labels[n, r]].ravel() @ wm + bm]
            )
            logits = np.maximum(pair @ kernel + bl, 0) @ ws + bs
            expected[n, r] = logits - np.log(np.exp(logits).sum())
    np.testing.assert_allclose(
        q.all_pairs(discriminator.encode(X, E), labels), expected, rtol=1e-4, atol=1e-4
    )
    rows, codes = np.array([3, 0, 5]), np.array([2, 1, 0])
    some = q.some_pairs(discriminator.encode(X[rows], E), codes, labels[rows, codes])
    np.testing.assert_allclose(some, expected[rows, codes], rtol=1e-4, atol=1e-4)


def test_encoders_and_class_matrices_are_shared() -> None:
    discriminator, q = made()
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(
            q.all_pairs(discriminator.encode(X, E), np.zeros((6, 4), np.int32))[..., 0]
        )
    gradients = tape.gradient(
        value,
        [
            discriminator.instance_encoder.kernel,
            discriminator.annotator_encoder.kernel,
            discriminator.matrices,
        ],
    )
    assert all(np.abs(np.asarray(g)).max() > 0 for g in gradients)


def test_information_loss_by_hand() -> None:
    # z-hat is certain, half the annotations each class; Q gives the right class 3/4: log(3/4) + H =
    # log(3/4) + log 2.
    latent = np.eye(2, dtype=np.float32)
    log_q = np.log(np.array([[0.75, 0.25], [0.25, 0.75]], np.float32))
    np.testing.assert_allclose(information_loss(latent, log_q), np.log(0.75) + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(
        latent_log_likelihood(latent, log_q), np.log([0.75, 0.75]), rtol=1e-6
    )


def test_information_loss_is_a_lower_bound_that_the_posterior_reaches() -> None:
    joint = RNG.dirichlet(np.ones(9)).reshape(3, 3)  # P(z, y)
    information = (
        joint * np.log(joint / joint.sum(1, keepdims=True) / joint.sum(0, keepdims=True))
    ).sum()
    marginal = joint.sum(axis=1)

    def bound(q: np.ndarray) -> float:
        """E[log Q(z | y)] + H(z), pairs weighted by their probability."""
        return float((joint * np.log(q)).sum() - (marginal * np.log(marginal)).sum())

    assert np.isclose(bound(joint / joint.sum(0, keepdims=True)), information)
    other = RNG.dirichlet(np.ones(3), size=3).T
    assert bound(other) < information
    # The function agrees where each (z, y) is one pair with a certain z: repeat pairs by their
    # frequency.
    counts = np.array([[4, 1, 0], [1, 3, 1], [0, 2, 4]])
    z, y = np.repeat(np.indices((3, 3)).reshape(2, -1), counts.ravel(), axis=1)
    posterior = counts / counts.sum(axis=0)
    p = counts / counts.sum()
    nonzero = p > 0
    expected = (
        p[nonzero] * np.log((p / p.sum(1, keepdims=True) / p.sum(0, keepdims=True))[nonzero])
    ).sum()
    value = information_loss(
        np.eye(3, dtype=np.float32)[z],
        np.log(np.maximum(posterior[:, y].T, 1e-9)).astype(np.float32),
    )
    np.testing.assert_allclose(value, expected, rtol=1e-5)
