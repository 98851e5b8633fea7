"""CrowdLayer as an estimator: it learns, repeats, reuses, saves and says what is wrong."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from tests.cases import cases, raises
from tests.crowds import SMALL_LAYER as SMALL


@pytest.fixture(scope="module")
def fitted(crowd):
    features, _, annotations = crowd
    return CrowdLayer(**SMALL, seed=1).fit(features, annotations)


def test_learns_classes_and_annotators(fitted, crowd):
    features, truth, _ = crowd
    assert (fitted.predict(features) == truth).mean() > 0.95
    matrices = fitted.confusion_matrices_
    assert matrices.shape == (6, 3, 3)
    assert_allclose(matrices.sum(axis=2), 1.0, atol=1e-5)
    assert matrices[0, 0].argmax() == 1 and matrices[0, 1].argmax() == 0, (
        "annotator 0 swaps the first two classes"
    )
    assert (matrices[1:].argmax(axis=2) == np.arange(3)).all()


def test_annotators_probabilities(fitted, crowd):
    features, truth, _ = crowd
    answers = fitted.predict_annotators(features)
    assert answers.shape == (120, 6, 3) and answers.dtype == np.float32
    assert_allclose(answers.sum(axis=2), 1.0, atol=1e-5)
    assert (answers[truth == 0, 0].argmax(axis=1) == 1).mean() > 0.9


def test_equal_seeds_equal_results_and_reuse_changes_nothing(fitted, crowd):
    features, _, annotations = crowd
    other = CrowdLayer(**SMALL, seed=5)
    with other.reused():
        dense = annotations.to_dense()
        other.fit(features, Annotations.from_dense(np.where(dense == 2, 0, dense), num_classes=3))
        network = other.network
        other.set_params(seed=1).fit(features, annotations)
        assert other.network is network, "compiled once"
        again = other.predict_proba(features)
        assert_array_equal(again, fitted.predict_proba(features))
        second = other.set_params(seed=2).fit(features, annotations).predict_proba(features)
    assert not np.array_equal(second, again)


@pytest.mark.parametrize("imbalance", ["focal", pytest.param("cb_focal", marks=pytest.mark.slow)])
def test_imbalance_losses_learn(crowd, imbalance):
    features, truth, annotations = crowd
    keep = np.flatnonzero(truth != 2).tolist() + np.flatnonzero(truth == 2)[:8].tolist()
    model = CrowdLayer(**{**SMALL, "epochs": 15}, imbalance=imbalance).fit(
        features[keep], annotations[np.array(keep)]
    )
    assert (model.predict(features) == truth).mean() > 0.85
    assert {f"{imbalance}_crowd_layer", "crowd_layer"} <= {m.name for m in registry.methods()}


def test_user_bases(crowd):
    features, truth, annotations = crowd
    logits = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(12, activation="tanh"), keras.layers.Dense(3)]
    )
    before = [w.copy() for w in logits.get_weights()]
    model = CrowdLayer(**{**SMALL, "epochs": 15, "base": logits}).fit(features, annotations)
    assert (model.predict(features) == truth).mean() > 0.9
    assert_allclose(model.predict_proba(features).sum(axis=1), 1.0, atol=1e-5)
    for old, new in zip(before, logits.get_weights(), strict=True):
        assert np.array_equal(old, new), "the user's model is copied, not trained itself"
    maker = CrowdLayer(
        lambda shape, classes: keras.Sequential(
            [keras.Input(shape), keras.layers.Dense(classes, activation="softmax")]
        ),
        epochs=1,
    )
    assert maker.fit(features, annotations).predict_proba(features).shape == (120, 3)


def test_pretrained_base_starts_from_its_weights(crowd):
    features, truth, annotations = crowd
    frozen = {"epochs": 1, "learning_rate": 1e-9, "standardise": False}
    base = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, activation="softmax")])
    kernel = np.zeros((5, 3), np.float32)
    kernel[[0, 1, 2], [0, 1, 2]] = 3.0
    base.set_weights([kernel, np.zeros(3)])
    model = CrowdLayer(base, pretrained=True, **frozen).fit(features, annotations)
    assert (model.predict(features) == truth).mean() > 0.9


def test_every_fit_starts_anew_whatever_layers_a_base_has(crowd):
    class Bare(keras.layers.Layer):
        """A user's layer that keeps no initialiser, so that its weights cannot be drawn anew."""

        def build(self, shape):
            self.kernel = self.add_weight(
                shape=(shape[-1], 6), initializer="glorot_uniform", name="kernel"
            )

        def call(self, x):
            return keras.ops.relu(x @ self.kernel)

        def compute_output_shape(self, shape):
            return (shape[0], 6)

    features, _, annotations = crowd
    base = keras.Sequential([keras.Input((5,)), Bare(), keras.layers.Dense(3)])
    model = CrowdLayer(base, epochs=3, learning_rate=1e-2)
    once = model.fit(features, annotations).predict_proba(features)
    with model.reused():
        for _ in range(2):
            again = model.fit(features, annotations).predict_proba(features)
            assert_allclose(again, once, atol=1e-6)


@pytest.mark.parametrize("width", [2, 4])
def test_wrong_width_is_one_error(crowd, width):
    features, _, annotations = crowd
    base = keras.Sequential([keras.Input((5,)), keras.layers.Dense(width, activation="softmax")])
    with pytest.raises(
        DataError, match=rf"base: expected output of shape \[None, 3\].*received \(None, {width}\)"
    ):
        CrowdLayer(base).fit(features, annotations)
    other = keras.Sequential([keras.Input((9,)), keras.layers.Dense(3, activation="softmax")])
    with pytest.raises(
        DataError, match=r"base: expected a classifier of features of shape \[None, 5\]"
    ):
        CrowdLayer(other).fit(features, annotations)
    with pytest.raises(DataError, match="expected a last layer with softmax"):
        base = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, activation="sigmoid")])
        CrowdLayer(base).fit(features, annotations)


def test_bad_arguments(crowd):
    features, _, annotations = crowd
    for arguments, message in cases("""
[{"base": "vgg"}, "base: expected 'dense' or 'small_cnn' or 'resnet18', a configuration"],
[{"imbalance": "smote"}, "imbalance: expected 'none', 'resampling'"],
[{"base": {"dropout": 1.0}}, "dropout: expected a number from 0 and below 1"],
[{"base": {"activation": "bump"}}, "activation: expected the name of a Keras activation"],
[{"patience": 2}, "patience: without monitor"]
"""):
        raises(UsageError, message, CrowdLayer(**arguments).fit, features, annotations)
    with pytest.raises(DataError, match=r"small_cnn.*expected images"):
        CrowdLayer("small_cnn").fit(features, annotations)
    with pytest.raises(DataError, match="augment: expected images"):
        CrowdLayer(augment=True).fit(features, annotations)
    small = np.zeros((len(features), 4, 8, 1), np.float32)  # shifts of 4 pixels reflect its edges
    with pytest.raises(DataError, match=r"more than 4 pixels a side, .* \(4, 8, 1\)"):
        CrowdLayer("small_cnn", augment=True).fit(small, annotations)
