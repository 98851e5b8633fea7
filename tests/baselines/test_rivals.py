"""CrowdAR, annot-mix, MaDL and COIN-Net: formulas by hand, naive loops, invariants; and that each
finds who cannot be trusted.
"""

from __future__ import annotations

import numpy as np
import pytest

from baselines.ds_mixup import DawidSkeneMixup
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.annot_mix import AnnotMix
from neucrowd_tf.methods.ccc import CCC
from neucrowd_tf.methods.coinnet import COINNet
from neucrowd_tf.methods.conal import CoNAL
from neucrowd_tf.methods.crowdar import CrowdAR
from neucrowd_tf.methods.geocrowdnet import GeoCrowdNetF
from neucrowd_tf.methods.madl import MaDL
from neucrowd_tf.methods.trace_reg import TraceRegularised
from neucrowd_tf.methods.unionnet import UnionNetA, UnionNetB

RNG = np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def randomised(layer, seed=1):
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


def test_reliability_against_loop_and_by_hand():
    from neucrowd_tf.methods.crowdar import ReliabilityHead

    p, h = softmax(RNG.normal(size=(4, 3))), RNG.normal(size=(4, 2))
    inputs = [p.astype(np.float32), h.astype(np.float32)]
    head = ReliabilityHead(2, hidden_units=5)
    head(inputs)
    randomised(head)
    rows, who = np.array([0, 3, 3]), np.array([1, 0, 1])
    result = head.reliability(inputs, rows, who)
    w1, b1 = map(np.asarray, (head.hidden.kernel, head.hidden.bias))
    w2, b2 = map(np.asarray, (head.difficulty.kernel, head.difficulty.bias))
    w3, b3 = map(np.asarray, (head.score.kernel, head.score.bias))
    for k in range(3):
        difficulty = sigmoid(sigmoid(h[rows[k]] @ w1 + b1) @ w2 + b2)
        expertise = sigmoid(np.asarray(head.expertise)[who[k], 0])
        above = (expertise - difficulty) * p[rows[k]]
        assert float(result[k]) == pytest.approx(float(sigmoid(above @ w3 + b3)[0]), rel=1e-4)
    for weight in head.weights:
        weight.assign(np.zeros(weight.shape))
    # Expertise and difficulty are both sigmoid(0): the score is 0 and the reliability 1/2.
    np.testing.assert_allclose(head.reliability(inputs, rows, who), 0.5, atol=1e-6)
    assert float(head.score.kernel.constraint(np.array([-1.0]))[0]) == 0.0


@pytest.mark.parametrize("kind", ["annot_mix", "madl"])
def test_before_training_annotators_are_right_with_the_prior(kind):
    from neucrowd_tf.methods.annot_mix import AnnotMixHead
    from neucrowd_tf.methods.madl import MaDLHead

    head = {"annot_mix": AnnotMixHead, "madl": MaDLHead}[kind](2, 3, 4, eta=0.7)
    head([np.eye(3, dtype=np.float32), np.zeros((3, 5), np.float32)])
    for weight in (head.output_layer.kernel,):
        weight.assign(np.zeros(weight.shape))
    answers = np.exp(head([np.eye(3, dtype=np.float32), np.zeros((3, 5), np.float32)]))
    # A row is (.7, .15, .15): log(.7 * 2 / .3) above the others.
    expected = np.where(np.eye(3) > 0, 0.7, 0.15)
    for annotator in range(2):
        np.testing.assert_allclose(answers[:, annotator], expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["annot_mix", "madl"])
def test_instance_confusion_against_loop(kind):
    from neucrowd_tf.methods.annot_mix import AnnotMixHead
    from neucrowd_tf.methods.madl import MaDLHead

    p = softmax(RNG.normal(size=(3, 2))).astype(np.float32)
    h = RNG.normal(size=(3, 4)).astype(np.float32)
    head = {"annot_mix": AnnotMixHead, "madl": MaDLHead}[kind](2, 2, 3)
    head([p, h])
    rng = np.random.default_rng(2)
    for weight in head.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    dense = lambda layer, x: x @ np.asarray(layer.kernel) + np.asarray(layer.bias)  # noqa: E731

    def norm(layer, x):
        # Moving mean 0 and variance 1.
        return x / np.sqrt(1 + layer.epsilon) * np.asarray(layer.gamma) + np.asarray(layer.beta)

    result = np.asarray(head([p, h], training=False))
    for b in range(3):
        for r in range(2):
            x, a = dense(head.instances, h[b]), np.asarray(head.annotator)[r, 0]
            if kind == "annot_mix":
                joined = norm(head.normalised, dense(head.hidden, np.concatenate([x, a])))
                joined = np.maximum(joined, 0)
            else:
                product = np.zeros(3)
                for q in range(3):
                    for e in range(3):
                        for m in range(3):
                            product[q] += (
                                (x + a)[e] * (x + a)[m] * np.asarray(head.product)[q, e, m]
                            )
                joined = dense(head.first, np.concatenate([a, x, product]))
                joined = dense(head.second, np.maximum(norm(head.norms[0], joined), 0))
                joined = np.maximum(norm(head.norms[1], joined) + a, 0)
            matrix = softmax(dense(head.output_layer, joined).reshape(2, 2))
            np.testing.assert_allclose(np.exp(result[b, r]), p[b] @ matrix, rtol=1e-4)
    np.testing.assert_allclose(np.exp(result).sum(axis=-1), 1.0, rtol=1e-5)
    rows, who = np.array([2, 0], np.int32), np.array([1, 1], np.int32)
    np.testing.assert_allclose(head([p, h], (rows, who)), result[rows, who], atol=1e-5)


def test_madl_weights_and_prior_by_hand():
    from scipy import stats

    from neucrowd_tf.methods.madl import MaDLHead

    head = MaDLHead(3, 2, 1)
    head.build([(None, 2), (None, 4)])
    # Two annotators alike and one far from both: 1/2, 1/2 and 1, times 3 / 2.
    head.annotator.assign([[[0.0]], [[0.0]], [[100.0]]])
    np.testing.assert_allclose(head.annotator_weights(), [0.75, 0.75, 1.5], rtol=1e-5)
    assert float(head.bandwidth) == pytest.approx(1.0)  # the mode, .25 / .25
    assert float(head.penalty(None)) == pytest.approx(-stats.gamma.logpdf(1.0, 1.25, scale=4.0))


def test_mixing():
    import tensorflow as tf

    from neucrowd_tf.crowd.mixing import mixed, mixing_draws

    shares, partners = mixing_draws(tf.constant([3, 4]), 1000, 2.0)
    assert sorted(np.asarray(partners).tolist()) == list(range(1000))
    # Beta(2, 2): mean 1/2, variance 1/20.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.03)
    assert np.var(shares) == pytest.approx(0.05, abs=0.01)
    again = mixing_draws(tf.constant([3, 4]), 1000, 2.0)
    np.testing.assert_array_equal(shares, again[0])
    assert not np.array_equal(shares, mixing_draws(tf.constant([3, 5]), 1000, 2.0)[0])
    values = np.array([[0.0, 4.0], [8.0, 0.0]], np.float32)
    # .25 * (0, 4) + .75 * (8, 0), and the second with itself.
    result = mixed(values, tf.constant([0.25, 0.5]), tf.constant([1, 1]))
    np.testing.assert_allclose(result, [[6.0, 1.0], [8.0, 0.0]])


METHODS = (
    GeoCrowdNetF,
    UnionNetA,
    UnionNetB,
    TraceRegularised,
    CoNAL,
    CrowdAR,
    AnnotMix,
    MaDL,
    COINNet,
    CCC,
    DawidSkeneMixup,
)


@pytest.fixture(scope="module")
def spammed():
    """Three fair annotators and one who answers at random."""
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=240)
    features = (rng.normal(size=(240, 4)) + 3.0 * np.eye(3, 4)[truth]).astype(np.float32)
    fair = np.where(rng.random((240, 3)) < 0.85, truth[:, None], rng.integers(3, size=(240, 3)))
    dense = np.concatenate([fair, rng.integers(3, size=(240, 1))], axis=1)
    dense[rng.random((240, 4)) < 0.2] = -1
    return features, Annotations.from_dense(dense, num_classes=3), truth


@pytest.mark.ci
@pytest.mark.parametrize(
    "kind", [METHODS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in METHODS[1:])]
)
def test_who_answers_at_random_is_found(kind, spammed):
    features, crowd, truth = spammed
    model = kind(
        base={"hidden_units": (16,), "dropout": 0.0}, epochs=25, batch_size=48, learning_rate=0.01
    )
    model.fit(features, crowd)
    assert model.score(features, truth) > 0.85
    if kind in (AnnotMix, MaDL):  # who is at random is in what they say of instances, later
        return
    skills = np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)
    assert skills[:3].min() > skills[3] + 0.05
    np.testing.assert_allclose(model.confusion_matrices_.sum(axis=2), 1.0, atol=1e-4)


@pytest.mark.ci
def test_a_fit_with_more_annotations_has_a_shift_for_each():
    """As the rounds of self-training, which keep a compiled network, have."""
    features = RNG.normal(size=(20, 2)).astype(np.float32)
    dense = RNG.integers(0, 2, (20, 3))
    model = COINNet(base={"hidden_units": (4,)}, epochs=1)
    with model.reused():
        for labels in (np.where(np.arange(60).reshape(20, 3) % 2, dense, -1), dense):
            model.fit(features, Annotations.from_dense(labels, num_classes=2))
            assert model.network.model.outliers.shift.shape[0] == (labels >= 0).sum()


@pytest.mark.slow
def test_outliers_have_the_shifts():
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1], 60)
    features = (rng.normal(size=(120, 2)) + 4.0 * np.eye(2)[truth]).astype(np.float32)
    dense = np.repeat(truth[:, None], 4, axis=1)
    outliers = np.arange(0, 120, 15)
    dense[outliers] = 1 - dense[outliers]
    crowd = Annotations.from_dense(dense, num_classes=2)
    model = COINNet(
        base={"hidden_units": (8,), "dropout": 0.0}, epochs=60, batch_size=30, learning_rate=0.02
    )
    model.fit(features, crowd)
    assert model.outlier_scores_.shape == (120,)
    others = np.setdiff1d(np.arange(120), outliers)
    assert model.outlier_scores_[outliers].min() > model.outlier_scores_[others].max()
