"""annot-mix's and MaDL's heads: the prior by hand, its formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.annot_mix import AnnotMixHead
from neucrowd_tf.methods.crowd_layers.madl import MaDLHead
from tests.crowds import softmax

RNG = default_rng(0)
HEADS = {"annot_mix": AnnotMixHead, "madl": MaDLHead}


@pytest.mark.parametrize("kind", ["annot_mix", "madl"])
def test_before_training_annotators_are_right_with_the_prior(kind):
    head = HEADS[kind](2, 3, 4, eta=0.7)
    head([np.eye(3, dtype=np.float32), np.zeros((3, 5), np.float32)])
    head.output_layer.kernel.assign(np.zeros(head.output_layer.kernel.shape))
    answers = np.exp(head([np.eye(3, dtype=np.float32), np.zeros((3, 5), np.float32)]))
    # A row is (.7, .15, .15): log(.7 * 2 / .3) above the others.
    expected = np.where(np.eye(3) > 0, 0.7, 0.15)
    for annotator in range(2):
        assert_allclose(answers[:, annotator], expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["annot_mix", "madl"])
def test_instance_confusion_is_its_formula(kind):
    p = softmax(RNG.normal(size=(3, 2))).astype(np.float32)
    h = RNG.normal(size=(3, 4)).astype(np.float32)
    head = HEADS[kind](2, 2, 3)
    head([p, h])
    rng = default_rng(2)
    for weight in head.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    dense = lambda layer, x: x @ np.asarray(layer.kernel) + np.asarray(layer.bias)  # noqa: E731

    def norm(layer, x):
        # Moving mean 0 and variance 1.
        return x / np.sqrt(1 + layer.epsilon) * np.asarray(layer.gamma) + np.asarray(layer.beta)

    result = np.asarray(head([p, h], training=False))
    skills = np.asarray(head.annotator)[:, 0]
    x, a = np.broadcast_arrays(dense(head.instances, h)[:, None], skills)
    if kind == "annot_mix":
        joined = norm(head.normalised, dense(head.hidden, np.concatenate([x, a], axis=2)))
        joined = np.maximum(joined, 0)
    else:
        # Of each slice the quadratic form of the sum.
        product = np.einsum("bri,kij,brj->brk", x + a, head.product, x + a)
        joined = dense(head.first, np.concatenate([a, x, product], axis=2))
        joined = dense(head.second, np.maximum(norm(head.norms[0], joined), 0))
        joined = np.maximum(norm(head.norms[1], joined) + a, 0)
    matrices = softmax(dense(head.output_layer, joined).reshape(3, 2, 2, 2))
    assert_allclose(np.exp(result), np.einsum("bc,brcl->brl", p, matrices), rtol=1e-4)
    assert_allclose(np.exp(result).sum(axis=-1), 1.0, rtol=1e-5)
    rows, who = np.array([2, 0], np.int32), np.array([1, 1], np.int32)
    assert_allclose(head([p, h], (rows, who)), result[rows, who], atol=1e-5)
