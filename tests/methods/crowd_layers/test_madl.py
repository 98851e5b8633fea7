"""MaDL's weights and prior, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neucrowd_tf.methods.crowd_layers.madl import MaDLHead


def test_madl_weights_and_prior_by_hand():
    head = MaDLHead(3, 2, 1)
    head.build([(None, 2), (None, 4)])
    # Two annotators alike and one far from both: 1/2, 1/2 and 1, times 3 / 2.
    head.annotator.assign([[[0.0]], [[0.0]], [[100.0]]])
    np.testing.assert_allclose(head.annotator_weights(), [0.75, 0.75, 1.5], rtol=1e-5)
    assert float(head.bandwidth) == pytest.approx(1.0)  # the mode, .25 / .25
    assert float(head.penalty(None)) == pytest.approx(-stats.gamma.logpdf(1.0, 1.25, scale=4.0))
