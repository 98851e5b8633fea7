"""CoNAL's head: values by hand, a naive loop, single cells."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.conal import ConalHead
from tests.crowds import array_of, randomised, softmax


@pytest.fixture
def p():
    return softmax(default_rng(0).normal(size=(5, 3))).astype(np.float32)


def test_conal_against_loop(p):
    x = default_rng(3).normal(size=(5, 4)).astype(np.float32)
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
            assert_allclose(result[b, r], expected, atol=1e-4)
    # Embeddings count by their direction alone.
    head.annotator.assign(7.0 * np.asarray(head.annotator))
    assert_allclose(head([p, x]), result, atol=1e-4)


def test_cells_of_a_head_of_two_inputs(p):
    x = default_rng(5).normal(size=(5, 2)).astype(np.float32)
    head = ConalHead(4, 2)
    head([p, x])
    randomised(head)
    rows, annotators = array_of("0 0 4 2", np.int32), array_of("1 3 0 3", np.int32)
    dense = np.asarray(head([p, x]))
    assert_allclose(head([p, x], (rows, annotators)), dense[rows, annotators], atol=1e-4)
