"""Weighted Doctor Net: heads, and the average's weights."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.crowd_layers.common.bases import feature_extractor, with_softmax
from neucrowd_tf.methods.crowd_layers.common.head import HeadsUniform
from neucrowd_tf.methods.crowd_layers.doctor_net import (
    AnnotatorAverage,
    DoctorHeads,
    DoctorWeights,
    WeightedDoctorNet,
)
from tests.crowds import SMALL_LAYER, array_of

SMALL = {**SMALL_LAYER, "weight_learning_rate": 0.1}


@pytest.fixture(scope="module")
def crowd():
    """Four annotators who are right, and one who answers at random."""
    rng = default_rng(0)
    truth = rng.integers(3, size=120)
    features = rng.normal(size=(120, 5)).astype(np.float32)
    features[np.arange(120), truth] += 4.0
    dense = np.repeat(truth[:, None], 5, axis=1)
    dense[:, 4] = rng.integers(3, size=120)
    dense[rng.random((120, 5)) > 0.6] = -1
    dense[np.arange(120), rng.integers(4, size=120)] = truth
    return features, truth, Annotations.from_dense(dense, num_classes=3)


@pytest.fixture(scope="module")
def fitted(crowd):
    features, _, annotations = crowd
    return WeightedDoctorNet(**SMALL, weight_epochs=25).fit(features, annotations)


def test_learns_in_both_phases(fitted, crowd):
    features, truth, _ = crowd
    assert (fitted.predict(features) == truth).mean() > 0.95
    assert fitted.annotator_weights_.sum() == pytest.approx(1.0, abs=1e-5)
    assert fitted.weight_history_["loss"][-1] < fitted.weight_history_["loss"][0]
    assert len(fitted.weight_history_["loss"]) == 25 == fitted.n_iter_


def test_prediction_is_the_weighted_average(fitted, crowd):
    features, _, _ = crowd
    answers = fitted.predict_annotators(features)
    expected = np.einsum("nrc,r->nc", answers, fitted.annotator_weights_)
    assert_allclose(fitted.predict_proba(features), expected, atol=1e-5)


def test_confusion_matrices_are_mean_answers(fitted, crowd):
    features, _, _ = crowd
    p, answers = fitted.predict_proba(features), fitted.predict_annotators(features)
    expected = np.einsum("it,irl->rtl", p, answers) / p.sum(axis=0)[:, None]
    assert_allclose(fitted.confusion_matrices_, expected, atol=1e-4)


def test_second_loss_by_hand():
    stack = keras.layers.Lambda(lambda x: tf.stack([x, x[:, ::-1]], 1), output_shape=(2, 2))
    answers = keras.Sequential([keras.Input((2,)), stack])
    average = AnnotatorAverage()
    average.build((None, 2, 2))
    model = DoctorWeights(answers, average, array_of("0.9 0.1;", np.float32), 2)
    model.set_targets(array_of("3 1;"))
    total, size = model.batch_loss(np.array([0]), array_of("0.9 0.1;", np.float32))
    # Equal weights average (.9, .1) and (.1, .9) to (.5, .5), which costs ln 2 against any target.
    assert float(total) == pytest.approx(np.log(2), rel=1e-5) and float(size) == 1.0
    average.weight.assign([np.log(3.0), 0.0])
    # Weights 3/4 and 1/4: (.7, .3) against (3/4, 1/4).
    total, _ = model.batch_loss(np.array([0]), array_of("0.9 0.1;", np.float32))
    assert float(total) == pytest.approx(-0.75 * np.log(0.7) - 0.25 * np.log(0.3), rel=1e-5)


def test_base_without_dense_layer(crowd):
    features, _, annotations = crowd
    layers = [
        keras.layers.Reshape((5, 1)),
        keras.layers.Conv1D(3, 1),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Softmax(),
    ]
    base = keras.Sequential([keras.Input((5,)), *layers])
    with pytest.raises(DataError, match="expected a dense last layer"):
        WeightedDoctorNet(base).fit(features, annotations)


@pytest.mark.parametrize("kind", ["sequential", "functional", "nested"])
def test_user_base_is_cut_before_its_last_layer(crowd, kind):
    features, _, _ = crowd
    inputs = keras.Input((5,))
    hidden = keras.layers.Dense(12, activation="tanh")
    layers = [hidden, keras.layers.Dense(3), keras.layers.Softmax()]
    base = keras.Sequential([inputs, *layers])
    if kind == "functional":
        x = inputs
        for layer in layers:
            x = layer(x)
        base = keras.Model(inputs, x)
    if kind == "nested":
        base = keras.Sequential([keras.Input((5,)), keras.layers.Activation("linear"), base])
    for model in (base, with_softmax(base, (5,), 3)):
        assert_allclose(feature_extractor(model)(features), hidden(features), atol=1e-6)


def test_doctor_heads_against_loop():
    rng = default_rng(3)
    x = rng.normal(size=(4, 5)).astype(np.float32)
    doctors = DoctorHeads(3, 2, l2=0.1, seed=7)
    out = np.asarray(doctors(x))
    kernel, bias = np.asarray(doctors.kernel), np.asarray(doctors.bias)
    for r in range(3):
        assert_allclose(out[:, r], x @ kernel[r] + bias[r], atol=1e-5)
    assert not np.allclose(kernel[0], kernel[1])
    other = DoctorHeads(3, 2, seed=8)
    other(x)
    assert not np.allclose(kernel, other.kernel)
    assert float(doctors.penalty(x)) == pytest.approx(0.1 * np.square(kernel).sum() / 3, rel=1e-5)


def test_doctor_heads_start_with_the_fans_of_one_annotator():
    # Glorot: uniform within sqrt(6 / (60 + 4)) = .306, however many annotators there are.
    created = np.asarray(HeadsUniform(1)((50, 60, 4)))
    limit = np.sqrt(6 / 64)
    assert np.abs(created).max() <= limit
    assert np.abs(created).max() > 0.99 * limit
    assert abs(created.mean()) < 0.01
