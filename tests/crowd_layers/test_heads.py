"""Annotator heads: values worked out by hand, naive loops, and what a saved layer keeps."""

from __future__ import annotations

import types

import numpy as np
import pytest


@pytest.fixture(scope="module")
def heads():
    from neucrowd_tf.crowd_layers.heads.confusion import ConfusionHead
    from neucrowd_tf.crowd_layers.heads.crowd_connection import CrowdConnection
    from neucrowd_tf.crowd_layers.heads.doctors import DoctorHeads, HeadsUniform

    return types.SimpleNamespace(
        ConfusionHead=ConfusionHead,
        CrowdConnection=CrowdConnection,
        DoctorHeads=DoctorHeads,
        HeadsUniform=HeadsUniform,
    )


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_matrix_by_hand(heads):
    head = heads.CrowdConnection(1)
    head.build((None, 2))
    head.matrix.assign([[[1.0, 2.0], [3.0, 4.0]]])
    # p W = (.25 * 1 + .75 * 3, .25 * 2 + .75 * 4) = (2.5, 3.5)
    np.testing.assert_allclose(
        head(np.array([[0.25, 0.75]], np.float32)), [[[2.5, 3.5]]], atol=1e-6
    )


def test_identity_at_first(heads):
    p = softmax(np.random.default_rng(0).normal(size=(5, 3))).astype(np.float32)
    np.testing.assert_allclose(
        heads.CrowdConnection(4)(p), np.repeat(p[:, None], 4, axis=1), atol=1e-6
    )


def test_anno_reg_rows_are_distributions(heads):
    rng = np.random.default_rng(2)
    p = softmax(rng.normal(size=(6, 3))).astype(np.float32)
    head = heads.ConfusionHead(2, trace_weight=0.5)
    head(p)
    head.matrix.assign(rng.normal(size=(2, 3, 3)))
    matrices = softmax(np.asarray(head.matrix))
    expected = np.stack([p @ matrices[r] for r in range(2)], axis=1)
    np.testing.assert_allclose(softmax(np.asarray(head(p))), expected, atol=1e-5)
    np.testing.assert_allclose(expected.sum(-1), 1.0, atol=1e-6)
    assert float(head.penalty(p)) == pytest.approx(
        0.5 * np.mean([np.trace(m) for m in matrices]), abs=1e-5
    )


def test_anno_reg_column_is_eq_10(heads):
    head = heads.ConfusionHead(1, "column", trace_weight=0.0, initial=0.0)
    # W = 0: each column is uniform over the 2 true classes, so p W = (.5, .5) whatever p is.
    np.testing.assert_allclose(head(np.array([[0.9, 0.1]], np.float32)), [[[0.5, 0.5]]], atol=1e-6)


def test_doctor_heads_against_loop(heads):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 5)).astype(np.float32)
    doctors = heads.DoctorHeads(3, 2, l2=0.1, seed=7)
    out = np.asarray(doctors(x))
    kernel, bias = np.asarray(doctors.kernel), np.asarray(doctors.bias)
    for r in range(3):
        np.testing.assert_allclose(out[:, r], x @ kernel[r] + bias[r], atol=1e-5)
    assert not np.allclose(kernel[0], kernel[1])
    other = heads.DoctorHeads(3, 2, seed=8)
    other(x)
    assert not np.allclose(kernel, other.kernel)
    assert float(doctors.penalty(x)) == pytest.approx(0.1 * np.square(kernel).sum() / 3, rel=1e-5)


def test_doctor_heads_start_with_the_fans_of_one_annotator(heads):
    # Glorot: uniform within sqrt(6 / (60 + 4)) = .306, however many annotators there are.
    created = np.asarray(heads.HeadsUniform(1)((50, 60, 4)))
    limit = np.sqrt(6 / 64)
    assert np.abs(created).max() <= limit
    assert np.abs(created).max() > 0.99 * limit
    assert abs(created.mean()) < 0.01


def test_standardise():
    from neucrowd_tf.nn.layers import Standardise

    layer = Standardise(square_root=True)
    layer.build((None, 2))
    layer.mean.assign([1.0, 0.0])
    layer.scale.assign([2.0, 1.0])
    # (sqrt(9) - 1) / 2 = 1; -sqrt(4) = -2
    np.testing.assert_allclose(layer(np.array([[9.0, -4.0]], np.float32)), [[1.0, -2.0]], atol=1e-6)
