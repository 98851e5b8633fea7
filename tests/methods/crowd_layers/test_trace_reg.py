"""Trace regularisation as its source prints it, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.trace_reg import SoftplusConfusionHead
from tests.crowds import randomised


def test_source_of_trace_regularisation():
    head = SoftplusConfusionHead(2, trace_weight=0.5)
    head(np.eye(2, dtype=np.float32))
    # softplus(1) = 1.3133, softplus(-5) = .0067: rows (.9949, .0051); the trace is 1.9898.
    one, other = np.log1p(np.exp(1.0)), np.log1p(np.exp(-5.0))
    expected = one / (one + other)
    assert_allclose(
        head.matrices()[0], [[expected, 1 - expected]] * 1 + [[1 - expected, expected]], atol=1e-6
    )
    assert float(head.penalty(None)) == pytest.approx(0.5 * 2 * expected, rel=1e-5)
    randomised(head)
    assert_allclose(np.asarray(head.matrices()).sum(axis=-1), 1.0, atol=1e-6)
    for row in np.asarray(head.matrix).reshape(-1, 2):
        softplus = np.log1p(np.exp(row))
        assert_allclose(head._normalised(row), softplus / softplus.sum(), atol=1e-5)
