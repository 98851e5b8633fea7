"""Anno-Reg as an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg, ConfusionHead
from tests.crowds import SMALL_LAYER as SMALL
from tests.crowds import array_of, softmax


def test_trace_weight_is_in_the_loss(crowd):
    features, _, annotations = crowd
    strong, free = (
        AnnoReg(**{**SMALL, "epochs": 8}, trace_weight=weight).fit(features, annotations)
        for weight in (5.0, 0.0)
    )
    traces = [np.trace(model.confusion_matrices_.mean(axis=0)) for model in (strong, free)]
    assert traces[0] < traces[1] - 0.1
    with pytest.raises(ValueError, match="trace_weight: expected a number from 0"):
        AnnoReg(trace_weight=-1.0).fit(features, annotations)


def test_anno_reg_rows_are_distributions():
    rng = default_rng(2)
    p = softmax(rng.normal(size=(6, 3))).astype(np.float32)
    head = ConfusionHead(2, trace_weight=0.5)
    head(p)
    head.matrix.assign(rng.normal(size=(2, 3, 3)))
    matrices = softmax(np.asarray(head.matrix))
    expected = np.stack([p @ matrices[r] for r in range(2)], axis=1)
    assert_allclose(softmax(np.asarray(head(p))), expected, atol=1e-5)
    assert_allclose(expected.sum(-1), 1.0, atol=1e-6)
    trace = np.mean([np.trace(m) for m in matrices])
    assert float(head.penalty(p)) == pytest.approx(0.5 * trace, abs=1e-5)


def test_anno_reg_column_is_eq_10():
    head = ConfusionHead(1, "column", trace_weight=0.0, initial=0.0)
    # W = 0: each column is uniform over the 2 true classes, so p W = (.5, .5) whatever p is.
    assert_allclose(head(array_of("0.9 0.1;", np.float32)), [[[0.5, 0.5]]], atol=1e-6)
