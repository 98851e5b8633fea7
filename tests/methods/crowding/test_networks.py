"""CrowdInG's networks (eqs. 1 and 2, LCA decoder, Q) against their formulas; drawing labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowding.networks import (
    Auxiliary,
    Discriminator,
    Generator,
    draw_labels,
    label_cooccurrence,
    label_correlation,
    label_probabilities,
    pair_noise,
)
from tests.crowds import array_of

RNG = default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)
Z = RNG.dirichlet(np.ones(3), size=6).astype(np.float32)
E = RNG.normal(size=(4, 2)).astype(np.float32)
NOISE = RNG.normal(size=(6, 4, 3)).astype(np.float32)


# ----------------------------------------------------------------- generator (eq. 1)


def make_generator(**arguments: bool) -> Generator:
    generator = Generator(5, 2, 3, embedding_size=4, hidden_units=7, noise_size=3, **arguments)
    for (
        variable
    ) in generator.trainable_variables:  # biases start at zero, which would hide a missing one
        variable.assign(variable + RNG.normal(scale=0.3, size=variable.shape))
    return generator


def logits(generator: Generator, features: Any, annotators: Any) -> Any:
    return generator.logits(generator.hidden(features, annotators, NOISE), Z[:, None])


def test_variants_ignore_what_they_leave_out() -> None:
    blind = make_generator(use_instances=False)
    assert_array_equal(logits(blind, X, E), logits(blind, X[::-1], E))
    alike = make_generator(use_annotators=False)
    assert_array_equal(logits(alike, X, E), logits(alike, X, E[::-1]))
    both = make_generator()
    assert not np.allclose(logits(both, X, E), logits(both, X[::-1], E))
    assert not np.allclose(logits(both, X, E), logits(both, X, E[::-1]))


def test_some_pairs_are_those_of_all_pairs() -> None:
    generator = make_generator()
    rows, codes = array_of("3 0 3"), array_of("2 1 0")
    hidden = generator.hidden_of_pairs(X[rows], E, NOISE[rows, codes], codes)
    expected = tf.nn.log_softmax(np.asarray(logits(generator, X, E))[rows, codes])
    some = generator.log_probabilities(hidden, Z[rows])
    assert_allclose(some, expected, rtol=1e-4, atol=1e-5)


def test_labels_are_drawn_from_the_distribution_and_by_the_seed() -> None:
    p = array_of("0.1 0.6 0.3")
    logits = np.tile(np.log(p), (4000, 5, 1)).astype(np.float32)
    drawn = np.asarray(draw_labels(logits, [1, 2]))
    assert_allclose(np.bincount(drawn.ravel()) / drawn.size, p, atol=0.02)
    assert_array_equal(drawn, draw_labels(logits, [1, 2]))
    assert (drawn != np.asarray(draw_labels(logits, [1, 3]))).any()
    assert_array_equal(pair_noise([3, 4], [2, 3, 2]), pair_noise([3, 4], [2, 3, 2]))


def test_the_probability_of_a_label_is_that_of_the_softmax() -> None:
    # Logits log 1, log 2, log 5: probabilities 1/8, 2/8, 5/8.
    logits = np.tile(np.log([1.0, 2.0, 5.0]).astype(np.float32), (1, 3, 1))
    probabilities = label_probabilities(logits, array_of("2 0 1;"))
    assert_allclose(probabilities, [[0.625, 0.125, 0.25]], rtol=1e-6)


def test_a_draw_is_of_the_generators_own_distribution() -> None:
    generator, seed = make_generator(), [5, 6]
    drawn = generator.draw(X, Z, E, seed)
    hidden = generator.hidden(X, E, pair_noise(seed, [6, 4, 3]))
    again = generator.probabilities(hidden, tf.constant(Z), drawn.labels)
    assert_allclose(again, drawn.probabilities, rtol=1e-5)
    p = np.asarray(tf.nn.softmax(generator.logits(hidden, Z[:, None])), np.float64)
    assert_allclose(drawn.entropies, -(p * np.log(p)).sum(axis=2), rtol=1e-4)
    answers = generator.answers(X, Z, E)
    still = generator.logits(generator.hidden(X, E, np.zeros_like(NOISE)), Z[:, None])
    assert_allclose(answers, tf.nn.softmax(still), rtol=1e-5)


# ----------------------------------------------------------------- discriminator (eq. 2)


def test_cooccurrence_and_correlation_by_hand() -> None:
    # Instance 0 has labels 0, 0, 1: two pairs {0, 1}. Instance 1 has 1, 2: one pair {1, 2}.
    # Instance 2 has one label: none. So A = [[0 2 0], [2 0 1], [0 1 0]]; its largest row sum is 3,
    # and A/3 + I has row sums 5/3, 2, 4/3.
    crowd = Annotations.from_dense(array_of("0 0 1; 1 2 -1; 2 -1 -1"), num_classes=3)
    counts = label_cooccurrence(crowd)
    assert_array_equal(counts, array_of("0 2 0; 2 0 1; 0 1 0"))
    a, b, c = 5 / 3, 2.0, 4 / 3
    expected = [
        [1 / a, (2 / 3) / np.sqrt(a * b), 0],
        [(2 / 3) / np.sqrt(a * b), 1 / b, (1 / 3) / np.sqrt(b * c)],
        [0, (1 / 3) / np.sqrt(b * c), 1 / c],
    ]
    assert_allclose(label_correlation(counts), expected, rtol=1e-6)


def test_cooccurrence_leaves_generated_annotations_out() -> None:
    crowd = Annotations.from_dense(array_of("0 1 -1;"), num_classes=3)
    assert_array_equal(
        label_cooccurrence(crowd.with_generated([0], [2], [2])), label_cooccurrence(crowd)
    )


def test_correlation_without_a_shared_instance_is_the_identity() -> None:
    assert_array_equal(label_correlation(np.zeros((3, 3))), np.eye(3))


def make_discriminator(aggregate: bool) -> Discriminator:
    discriminator = Discriminator(5, 2, 3, embedding_size=4, aggregate_labels=aggregate, seed=1)
    correlation = array_of("0.6 0.3 0.0; 0.3 0.5 0.2; 0.0 0.2 0.7", np.float32)
    discriminator.correlation.assign(correlation)
    return discriminator


def expected_scores(discriminator: Discriminator) -> np.ndarray:
    """u_r^T M_c v_n, with M_c mixed over the classes where labels are aggregated."""
    wu, bu = discriminator.annotator_encoder.get_weights()
    wv, bv = discriminator.instance_encoder.get_weights()
    m = np.asarray(discriminator.matrices)
    if discriminator.aggregate_labels:
        m = np.einsum("cd,dkl->ckl", discriminator.correlation, m) @ np.asarray(
            discriminator.mixing
        )
    return np.einsum("rk,ckl,nl->nrc", E @ wu + bu, m, X @ wv + bv)


def test_bilinear_scores_equal_their_formula() -> None:
    for aggregate in (True, False):
        discriminator = make_discriminator(aggregate)
        expected = expected_scores(discriminator)
        assert_allclose(
            discriminator.all_pairs(*discriminator.encode(X, E)), expected, rtol=1e-4, atol=1e-5
        )
        rows, codes = array_of("5 0 3"), array_of("1 3 1")
        assert_allclose(
            discriminator.some_pairs(*discriminator.encode(X[rows], E), codes),
            expected[rows, codes],
            rtol=1e-4,
            atol=1e-5,
        )


def test_without_aggregation_mixing_is_not_trained() -> None:
    assert any("mixing" in v.path for v in make_discriminator(True).trainable_variables)
    assert not any("mixing" in v.path for v in make_discriminator(False).trainable_variables)


# ----------------------------------------------------------------- auxiliary network


def make_auxiliary() -> tuple[Discriminator, Auxiliary]:
    discriminator = make_discriminator(True)
    return discriminator, Auxiliary(3, hidden_units=6, embedding_size=4)


def test_encoders_and_class_matrices_are_shared() -> None:
    discriminator, q = make_auxiliary()
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(
            q.all_pairs(*discriminator.encode(X, E), np.zeros((6, 4), np.int32))[..., 0]
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
