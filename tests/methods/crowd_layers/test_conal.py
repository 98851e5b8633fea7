"""CoNAL's head: its formula, single cells."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.special import expit

from neucrowd_tf.methods.crowd_layers.conal import ConalHead
from tests.crowds import array_of, randomised, softmax


@pytest.fixture
def p():
    return softmax(default_rng(0).normal(size=(5, 3))).astype(np.float32)


def test_conal_is_its_formula(p):
    x = default_rng(3).normal(size=(5, 4)).astype(np.float32)
    head = ConalHead(2, embedding_size=3)
    head([p, x])
    randomised(head)
    instance = x @ np.asarray(head.instance) + np.asarray(head.bias)
    result = np.asarray(head([p, x]))
    v, u = instance[:, None], np.asarray(head.annotator)[:, 0]
    cosines = (v * u).sum(axis=2) / np.linalg.norm(v, axis=2) / np.linalg.norm(u, axis=1)
    w = expit(cosines)[..., None]
    common = (p @ np.asarray(head.common))[:, None]
    expected = w * common + (1 - w) * np.einsum("bc,rcl->brl", p, head.matrix)
    assert_allclose(result, expected, atol=1e-4)
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
