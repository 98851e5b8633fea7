"""NeuCrowd's parts against values worked out by hand, naive loops and invariants."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.methods.neucrowd.robust_anchor import robust_anchors
from neucrowd_tf.methods.neucrowd.safety import (
    neighbourhood_size,
    safe_examples,
    sampling_probabilities,
)
from neucrowd_tf.methods.neucrowd.sampler import SamplingNetwork, keep_hardest
from neucrowd_tf.nn.embedding_networks import build_encoder
from neucrowd_tf.training.networks import DenseEncoder
from tests.crowds import array_of

# ----------------------------------------------------------------- definition 2


def test_assurance_by_hand() -> None:
    # Five annotators: (1,1,1,1,1) -> |1 - 2*5/5| = 1; (1,1,1,0,0) -> |1 - 6/5| = .2; four
    # annotators in a tie -> 0.
    votes = array_of("0 5; 2 3; 2 2; 0 0")
    assert_allclose(label_assurance(votes), [1.0, 0.2, 0.0, 0.0], atol=1e-7)


# ----------------------------------------------------------------- definition 3


def test_safe_examples_by_hand() -> None:
    # On a line at 0, 1, 2, 10, 11 with labels + + - - -; k = 2, assurance as given. e0: neighbours
    # 1 (+, .5) and 2 (-, .4): .5 > .4 safe.        e1: neighbours 0 (+, .3) and 2 (-, .4): unsafe.
    # e2: neighbours 1 (+, .5) and 0 (+, .3): 0 > .8, unsafe.       e3: neighbours 4 (-, .9) and 2
    # (-, .4): safe. e4: neighbours 3 (-, .2) and 2 (-, .4): safe, but with margin .6 it is not: .6
    # > .6 fails.
    points = array_of("0.0; 1.0; 2.0; 10.0; 11.0")
    labels = array_of("1 1 0 0 0")
    assurance = array_of("0.3 0.5 0.4 0.2 0.9")
    safe = safe_examples(points, labels, assurance, k=2)
    assert safe.tolist() == [True, False, False, True, True]
    assert not safe_examples(points, labels, assurance, k=2, margin=0.61)[4]
    # Definition 3 says "exceeds": equal sums are not safe. e1: neighbours 0 (+) and 2 (-) of .5
    # each; by a margin of 1/4: .75 - .5.
    assert not safe_examples(points, labels, np.full(5, 0.5), k=2)[1]
    more = array_of("0.75 0.5 0.5 0.5 0.5")
    assert not safe_examples(points, labels, more, k=2, margin=0.25)[1]
    assert safe_examples(points, labels, more, k=2, margin=0.125)[1]


def test_neighbourhood_is_the_root_of_the_batch() -> None:
    assert neighbourhood_size(128, 447) == 11
    assert neighbourhood_size(143, 447) == 11, "rounded down"
    assert neighbourhood_size(512, 10) == 9
    assert neighbourhood_size(512, 1) == 1
    assert sampling_probabilities(np.array([True, False]), 0.3).tolist() == [1.0, 0.3]


# ----------------------------------------------------------------- definition 4


def test_robust_anchor_by_hand() -> None:
    # Assurance .2, .6 on anchors (1, 0), (0, 2): sum = (.2, 1.2); mean = (.2, 1.2) / .8 = (.25,
    # 1.5).
    batch = map(tf.constant, ([[1.0, 0.0], [0.0, 2.0]], [0.2, 0.6], [0, 0]))
    anchors, assurance, classes = batch
    for reduction, expected in (("sum", [0.2, 1.2]), ("mean", [0.25, 1.5])):
        result = robust_anchors(anchors, assurance, classes, 1, reduction=reduction)
        assert_allclose(result, [expected], rtol=1e-5)


# ----------------------------------------------------------------- section 3.3.4


def test_scores_are_a_linear_function_of_concatenated_embeddings() -> None:
    encoder = build_encoder(DenseEncoder(hidden_units=(4, 3), dropout=0.0, l2=0.0), 5, seed=2)
    sampler = SamplingNetwork(encoder, n=4, seed=1)
    sampler.bias.assign(0.7)
    x = default_rng(0).normal(size=(10, 5)).astype(np.float32)
    tuplets = default_rng(1).integers(0, 10, (6, 4)).astype(np.int32)
    scores = sampler.scores(sampler.score_table(x, training=False), tf.constant(tuplets)).numpy()
    embedded = encoder(x).numpy()
    kernel = sampler.slots.numpy()
    for t in range(6):
        concatenated = np.concatenate([embedded[i] for i in tuplets[t]])
        weights = np.concatenate([kernel[:, slot] for slot in range(4)])
        assert scores[t] == pytest.approx(concatenated @ weights + 0.7, rel=1e-4)


def test_hardest_are_kept_once_selection_begins() -> None:
    scores = tf.constant([0.1, 3.0, -1.0, 2.0])
    assert keep_hardest(scores, 2, selecting=tf.constant(True)).numpy().tolist() == [1, 3]
    assert keep_hardest(scores, 2, selecting=tf.constant(False)).numpy().tolist() == [0, 1]
