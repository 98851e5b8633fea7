"""Eq. 1: factored sums against the network on concatenated inputs; drawing; the entropy of the
classifier.
"""

from __future__ import annotations

import numpy as np

from neucrowd_tf.crowding.crowd import (
    draw_labels,
    entropy,
    label_probabilities,
    pair_noise,
    split_by_entropy,
)
from neucrowd_tf.crowding.generator import Generator, of_pairs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)
Z = RNG.dirichlet(np.ones(3), size=6).astype(np.float32)
E = RNG.normal(size=(4, 2)).astype(np.float32)
NOISE = RNG.normal(size=(6, 4, 3)).astype(np.float32)


def made(**arguments: bool) -> Generator:
    generator = Generator(
        5, 2, 3, embedding_size=4, hidden_units=7, noise_size=3, seed=2, **arguments
    )
    for (
        variable
    ) in generator.trainable_variables:  # biases start at zero, which would hide a missing one
        variable.assign(variable + RNG.normal(scale=0.3, size=variable.shape))
    return generator


def naive(g: Generator) -> np.ndarray:
    """One hidden layer over the concatenation of instance, annotator, z-hat and noise, pair by
    pair.
    """
    parts = [
        g.from_instance.get_weights()[0],
        g.from_annotator.get_weights()[0],
        g.from_classifier.get_weights()[0],
        g.from_noise.get_weights()[0],
    ]
    kernel, bias = np.concatenate(parts), g.from_classifier.get_weights()[1]
    (wi, bi), (wa, ba), (ws, bs) = (
        layer.get_weights() for layer in (g.instance_embedding, g.annotator_embedding, g.scores)
    )
    logits = np.zeros((6, 4, 3))
    for n in range(6):
        for r in range(4):
            pair = np.concatenate([X[n] @ wi + bi, E[r] @ wa + ba, Z[n], NOISE[n, r]])
            logits[n, r] = np.maximum(pair @ kernel + bias, 0) @ ws + bs
    return logits


def test_all_and_some_pairs_equal_a_naive_loop() -> None:
    generator = made()
    expected = naive(generator)
    np.testing.assert_allclose(generator.all_pairs(X, Z, E, NOISE), expected, rtol=1e-4, atol=1e-5)
    rows, codes = np.array([3, 0, 3]), np.array([2, 1, 0])
    some = generator.some_pairs(X[rows], Z[rows], E, NOISE[rows, codes], codes)
    np.testing.assert_allclose(some, expected[rows, codes], rtol=1e-4, atol=1e-5)


def test_variants_ignore_what_they_leave_out() -> None:
    blind = made(use_instances=False)
    np.testing.assert_array_equal(
        blind.all_pairs(X, Z, E, NOISE), blind.all_pairs(X[::-1], Z, E, NOISE)
    )
    alike = made(use_annotators=False)
    np.testing.assert_array_equal(
        alike.all_pairs(X, Z, E, NOISE), alike.all_pairs(X, Z, E[::-1], NOISE)
    )
    both = made()
    assert not np.allclose(both.all_pairs(X, Z, E, NOISE), both.all_pairs(X[::-1], Z, E, NOISE))
    assert not np.allclose(both.all_pairs(X, Z, E, NOISE), both.all_pairs(X, Z, E[::-1], NOISE))


def test_labels_are_drawn_from_the_distribution_and_by_the_seed() -> None:
    p = np.array([0.1, 0.6, 0.3])
    logits = np.tile(np.log(p), (4000, 5, 1)).astype(np.float32)
    drawn = np.asarray(draw_labels(logits, [1, 2]))
    np.testing.assert_allclose(np.bincount(drawn.ravel()) / drawn.size, p, atol=0.02)
    np.testing.assert_array_equal(drawn, draw_labels(logits, [1, 2]))
    assert (drawn != np.asarray(draw_labels(logits, [1, 3]))).any()
    np.testing.assert_array_equal(pair_noise([3, 4], [2, 3, 2]), pair_noise([3, 4], [2, 3, 2]))


def test_the_probability_of_a_label_is_that_of_the_softmax() -> None:
    # Logits log 1, log 2, log 5: probabilities 1/8, 2/8, 5/8.
    logits = np.tile(np.log([1.0, 2.0, 5.0]).astype(np.float32), (1, 3, 1))
    found = label_probabilities(logits, np.array([[2, 0, 1]]))
    np.testing.assert_allclose(found, [[0.625, 0.125, 0.25]], rtol=1e-6)


def test_a_layer_of_pairs_is_that_of_each_pair() -> None:
    layer = made().from_noise
    expected = [[NOISE[n, r] @ layer.get_weights()[0] for r in range(len(E))] for n in range(6)]
    np.testing.assert_allclose(of_pairs(layer, NOISE), expected, rtol=1e-5, atol=1e-6)


def test_entropy_by_hand() -> None:
    # One half, one quarter, one quarter: 1/2 log 2 + 2 x 1/4 log 4 = 3/2 log 2.
    values = entropy(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
    np.testing.assert_allclose(values, [1.5 * np.log(2), 0.0, np.log(3)], atol=1e-12)


def test_split_by_entropy_gives_the_surest_to_the_generator() -> None:
    sure, unsure = split_by_entropy(np.array([0.3, 0.1, 0.9, 0.2, 0.5], np.float32), 0.4)
    np.testing.assert_array_equal(sure, [1, 3])
    np.testing.assert_array_equal(unsure, [0, 4, 2])


def test_of_a_few_instances_each_player_gets_one() -> None:
    # round(.05 x 5) = 0 and round(.95 x 5) = 5 would leave one of them nothing to learn from.
    entropies = np.array([0.3, 0.1, 0.9, 0.2, 0.5], np.float32)
    for threshold, sizes in ((0.05, (1, 4)), (0.95, (4, 1))):
        parts = split_by_entropy(entropies, threshold)
        assert tuple(len(part) for part in parts) == sizes
        np.testing.assert_array_equal(np.concatenate(parts), [1, 3, 0, 4, 2])
