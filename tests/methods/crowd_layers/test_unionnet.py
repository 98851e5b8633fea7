"""UnionNet: a naive loop, and its loss by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.unionnet import UnionHead
from tests.crowds import randomised, softmax


@pytest.mark.parametrize("variant", ["A", "B"])
def test_union_against_loop(variant):
    p = softmax(default_rng(0).normal(size=(5, 3))).astype(np.float32)
    head = UnionHead(2, variant)
    head(p)
    randomised(head)
    matrix = np.asarray(head.matrix)
    union = np.zeros((5, 2, 3))
    for b in range(5):
        for r in range(2):
            for y in range(3):
                if variant == "A":
                    union[b, r, y] = np.exp(sum(p[b, c] * matrix[r, c, y] for c in range(3)))
                else:
                    union[b, r, y] = sum(
                        p[b, c] * np.exp(matrix[r, c, y]) / np.exp(matrix[:, c]).sum()
                        for c in range(3)
                    )
    union /= union.sum(axis=(1, 2), keepdims=True)
    assert_allclose(np.exp(head(p)), union, rtol=1e-4)
    assert_allclose(np.exp(head(p)).sum(axis=(1, 2)), 1.0, rtol=1e-5)
