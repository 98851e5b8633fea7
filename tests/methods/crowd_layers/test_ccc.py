"""Coupled Confusion Correction: the meta set, groups and the correction by hand, the meta gradient
against finite differences.
"""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowd_layers.ccc import CoupledHead, distilled, expertise_groups
from neucrowd_tf.methods.crowd_layers.common.meta_correction import CoupledModel, correction
from tests.crowds import array_of, softmax


def test_meta_set_by_hand():
    crowd = Annotations.from_dense(array_of("0 0; 0 1; 1 -1; 1 1; 0 -1"), num_classes=3)
    p = array_of("0.9 0.1 0; 0.8 0.2 0; 0.5 0.5 0; 0.1 0.9 0; 0.6 0.4 0")
    # Somebody said 0 of instances 0, 1 and 4: 0 and 1 are the surest (once each); 1 of 1, 2 and 3:
    # 3 and 2. Nobody said 2.
    rows, labels = distilled(p, crowd, 6)
    assert rows.tolist() == [0, 1, 3, 2]
    assert labels.tolist() == [0, 0, 1, 1]
    assert distilled(p, crowd, 1)[0].tolist() == [0, 3]  # at least one each


def test_groups_are_those_of_like_matrices():
    fair, spam = np.eye(3), np.full((3, 3), 1 / 3)
    groups = expertise_groups(np.array([fair, spam, fair + 0.01, spam - 0.01]), 2, 0)
    assert groups[0] == groups[2] != groups[1] == groups[3]
    alike = expertise_groups(np.stack([fair] * 4), 30, 0)  # as few as there are matrices
    assert alike.tolist() == [0, 0, 0, 0]


def test_correction_by_hand():
    gain = np.array([[[0.0, -2.0], [1.0, 0.5]]], np.float32)
    matrices = np.array([[[3.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 1.0]]], np.float32)
    # The largest gain is 2, the largest entry 4: .5 * 4 / 2 = 1 times the gain.
    assert_allclose(correction(gain, matrices, 0.5), gain)
    assert_allclose(correction(1000 * gain, matrices, 0.5), gain)
    assert_array_equal(correction(0 * gain, matrices, 0.5), 0 * gain)


def meta_loss(weights, matrices, x, dense, meta, rate):
    """A plain step of one linear classifier on the annotators' matrices, then its loss on the meta
    set; the gradient is worked out by the chain rule.
    """
    p, seen = softmax(x @ weights), dense >= 0
    wrong = softmax(np.einsum("nc,kcl->nkl", p, matrices)) - np.eye(2)[dense]
    by_p = np.einsum("kcl,nkl,nk->nc", matrices, wrong, seen)
    by_logits = p * (by_p - (p * by_p).sum(axis=1, keepdims=True))
    chosen = softmax(x[meta[0]] @ (weights - rate * x.T @ by_logits / seen.sum()))
    return -np.log(chosen[np.arange(len(meta[0])), meta[1]]).mean()


def test_corrections_against_finite_differences():
    rng = default_rng(0)
    x = rng.normal(size=(6, 2)).astype(np.float32)
    dense = rng.integers(-1, 2, size=(6, 3))
    dense[:, 0] = rng.integers(2, size=6)
    inputs = keras.Input((2,))
    members = [
        keras.Sequential([keras.layers.Dense(2, activation="softmax", use_bias=False)])
        for _ in range(2)
    ]
    network = keras.Model(inputs, [member(inputs) for member in members])
    head = CoupledHead(3)
    head.build([(None, 2), (None, 2)])
    for weight in head.weights:
        weight.assign(rng.normal(size=(3, 2, 2)))
    model = CoupledModel(network, head, x, members=members, groups=2, rate=0.5, meta_batch=9)
    model.set_features(x, lambda block: block)
    model.compile(optimizer=keras.optimizers.SGD(0.7))
    model.set_annotations(Annotations.from_dense(dense, num_classes=2), np.ones((dense >= 0).sum()))
    meta = [(np.array([0, 3]), np.array([0, 1])), (array_of("5 1 2"), array_of("1 0 0"))]
    groups = [array_of("0 1 0"), array_of("1 1 0")]
    model.start_correcting(meta, groups)
    model._step_seed = tf.constant([0, 0])
    result = model.corrections(tf.constant(x), model.gathered(tf.range(6))[1:]).numpy()
    for index, member in enumerate(members):
        matrices = np.asarray(head.matrices[index], np.float64)
        slope = np.zeros((2, 2, 2))
        for place in np.ndindex(2, 2, 2):
            values = []
            for step in (1e-5, -1e-5):
                added = np.zeros((2, 2, 2))
                added[place] = step
                weights = np.asarray(member.get_weights()[0], np.float64)
                corrected = matrices + added[groups[index]]
                values.append(meta_loss(weights, corrected, x, dense, meta[index], 0.7))
            slope[place] = (values[0] - values[1]) / 2e-5
        # Downhill, the largest entry half of the largest of the matrices'; alike in a group.
        expected = -slope * 0.5 * matrices.max() / np.abs(slope).max()
        assert_allclose(result[index], expected[groups[index]], rtol=1e-3, atol=1e-4)


def test_head_is_the_mean_of_both():
    rng = default_rng(1)
    p, q = (softmax(rng.normal(size=(4, 3))).astype(np.float32) for _ in range(2))
    head = CoupledHead(2)
    result = np.exp(head([p, q]))
    # The identity at first: both members' softmax of what they say.
    assert_allclose(result[:, 0], (softmax(p) + softmax(q)) / 2, rtol=1e-5)
    for weight in head.weights:
        weight.assign(rng.normal(size=(2, 3, 3)))
    first, second = (np.asarray(weight) for weight in head.weights)
    result = np.exp(head([p, q]))
    both = (np.einsum("bc,rcl->brl", *pair) for pair in ((p, first), (q, second)))
    assert_allclose(result, sum(map(softmax, both)) / 2, rtol=1e-5)
    rows, who = np.array([3, 0], np.int32), np.array([1, 0], np.int32)
    assert_allclose(np.exp(head([p, q], (rows, who))), result[rows, who], rtol=1e-5)
