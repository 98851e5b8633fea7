"""CoNAL's head: values by hand, a naive loop, single cells."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.methods.conal import ConalHead
from tests.crowds import randomised, softmax


@pytest.fixture
def p():
    return softmax(np.random.default_rng(0).normal(size=(5, 3))).astype(np.float32)


def test_conal_by_hand():
    head = ConalHead(1, embedding_size=1)
    p, x = np.array([[0.25, 0.75]], np.float32), np.array([[3.0]], np.float32)
    head([p, x])
    head.common.assign([[1.0, 0.0], [0.0, 1.0]])
    head.matrix.assign([[[0.0, 1.0], [1.0, 0.0]]])
    head.instance.assign([[2.0]])
    head.annotator.assign([[[-5.0]]])
    # Unit embeddings 1 and -1: w = sigmoid(-1) = .26894. p W = (.25, .75), p W_1 = (.75, .25).
    w = 1 / (1 + np.exp(1.0))
    expected = [w * 0.25 + (1 - w) * 0.75, w * 0.75 + (1 - w) * 0.25]
    np.testing.assert_allclose(head([p, x])[0, 0], expected, rtol=1e-5)
    # The matrices differ by 1 in four cells: a distance of 2.
    assert float(head.penalty([p, x])) == pytest.approx(-1e-5 * 2.0, rel=1e-4)


def test_conal_against_loop(p):
    x = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    head = ConalHead(2, embedding_size=3)
    head([p, x])
    randomised(head)
    instance = x @ np.asarray(head.instance) + np.asarray(head.bias)
    result = np.asarray(head([p, x]))
    for b in range(5):
        for r in range(2):
            v, u = instance[b], np.asarray(head.annotator)[r, 0]
            w = 1 / (1 + np.exp(-v @ u / np.linalg.norm(v) / np.linalg.norm(u)))
            expected = w * p[b] @ np.asarray(head.common)
            expected = expected + (1 - w) * p[b] @ np.asarray(head.matrix)[r]
            np.testing.assert_allclose(result[b, r], expected, atol=1e-4)
    # Embeddings count by their direction alone.
    head.annotator.assign(7.0 * np.asarray(head.annotator))
    np.testing.assert_allclose(head([p, x]), result, atol=1e-4)


def test_cells_of_a_head_of_two_inputs(p):
    x = np.random.default_rng(5).normal(size=(5, 2)).astype(np.float32)
    head = ConalHead(4, 2)
    head([p, x])
    randomised(head)
    rows, annotators = np.array([0, 0, 4, 2], np.int32), np.array([1, 3, 0, 3], np.int32)
    dense = np.asarray(head([p, x]))
    np.testing.assert_allclose(head([p, x], (rows, annotators)), dense[rows, annotators], atol=1e-4)
