"""UnionNet: its formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.unionnet import UnionHead
from tests.crowds import randomised, softmax


@pytest.mark.parametrize("variant", ["A", "B"])
def test_union_is_its_formula(variant):
    p = softmax(default_rng(0).normal(size=(5, 3))).astype(np.float32)
    head = UnionHead(2, variant)
    head(p)
    randomised(head)
    matrix = np.asarray(head.matrix)
    if variant == "A":
        union = np.exp(np.einsum("bc,rcy->bry", p, matrix))
    else:
        shares = np.exp(matrix) / np.exp(matrix).sum(axis=(0, 2), keepdims=True)
        union = np.einsum("bc,rcy->bry", p, shares)
    union /= union.sum(axis=(1, 2), keepdims=True)
    assert_allclose(np.exp(head(p)), union, rtol=1e-4)
    assert_allclose(np.exp(head(p)).sum(axis=(1, 2)), 1.0, rtol=1e-5)
