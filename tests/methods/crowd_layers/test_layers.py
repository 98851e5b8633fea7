"""Heads and their loss in a Keras model of one's own, and what a .keras file keeps."""

from __future__ import annotations

import re
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.anno_reg import ConfusionHead
from neucrowd_tf.nn.standardise import Standardise
from neucrowd_tf.saving import keras_objects as parts
from tests.cases import raises
from tests.crowds import array_of, corners
from tests.methods.crowd_layers.heads import HEADS, model_with_head

LABELS = array_of("0 1; -1 1")
LOGITS = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]], [[0.9, 0.1], [0.2, 0.8]]], np.float32))
# One head with a penalty and one without; all of them with the slow tests.
OFTEN = ("MW", "geocrowdnet_w")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else pytest.mark.slow) for name in HEADS]
)
def test_anyones_model_trains_and_is_saved(tmp_path, name):
    keras.utils.set_random_seed(0)
    rng = default_rng(0)
    truth = rng.integers(3, size=48)
    x = corners(rng, truth, 3, 3)
    y = np.repeat(truth[:, None], 4, axis=1)
    y[rng.random((48, 4)) < 0.4] = -1
    model, head = model_with_head(name)
    loss = parts.AnnotationLoss(log_probabilities=head.log_probabilities)
    model.compile(optimizer=keras.optimizers.Adam(0.03), loss=loss)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(24)
    history = model.fit(data, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_allclose(again(x), model(x), atol=1e-6)
    assert again.evaluate(data, verbose=0) == pytest.approx(model.evaluate(data, verbose=0))


def test_loss_is_the_mean_of_what_there_is():
    loss = parts.AnnotationLoss()
    expected = [-np.log(0.5), -np.log(0.75), -np.log(0.8)]
    assert float(loss(LABELS, LOGITS)) == pytest.approx(np.mean(expected), rel=1e-5)
    weighted = (2 * (expected[0] + expected[1]) + expected[2]) / 5
    assert float(loss(LABELS, LOGITS, array_of("2.0; 1.0"))) == pytest.approx(weighted, rel=1e-5)
    assert float(loss(np.full((2, 2), -1), LOGITS)) == 0.0
    assert parts.AnnotationLoss.from_config(loss.get_config()).get_config() == loss.get_config()


@pytest.mark.parametrize("reduction", ["sum", "none", None, "mean", "mean_with_sample_weight"])
def test_reductions_of_the_loss(reduction):
    loss = parts.AnnotationLoss(reduction=reduction)
    each = np.array([[-2 * np.log(0.5), -2 * np.log(0.75)], [0.0, -np.log(0.8)]])
    expected = {"sum": each.sum(), "none": each, None: each}.get(reduction, each.sum() / 5)
    assert_allclose(loss(LABELS, LOGITS, array_of("2.0; 1.0")), expected, rtol=1e-5)


def test_loss_of_two_replicas_is_shared_between_them(monkeypatch):
    logits, labels = np.zeros((2, 3, 4), np.float32), np.ones((2, 3), np.int32)
    alone = float(parts.AnnotationLoss()(labels, logits))
    two = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: two)
    assert float(parts.AnnotationLoss()(labels, logits)) == pytest.approx(alone / 2)
    assert float(parts.AnnotationLoss(reduction="sum")(labels, logits)) == pytest.approx(6 * alone)


@pytest.mark.parametrize(
    "name", ["anno_reg", "trace_reg", "doctors", "geocrowdnet_f", "geocrowdnet_w", "conal"]
)
def test_penalties_with_mixed_precision(name):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model, _ = model_with_head(name)
        model.compile(optimizer="sgd", loss=parts.AnnotationLoss(), run_eagerly=True)
        rng = default_rng(0)
        model.fit(rng.normal(size=(8, 3)), rng.integers(-1, 3, size=(8, 4)), verbose=0)
        assert model.losses and all(loss.dtype == "float32" for loss in model.losses)
    finally:
        keras.config.set_dtype_policy("float32")


def test_every_registered_class_is_listed(repository):
    registered = re.compile(r"@keras\.saving\.register_keras_serializable\(.*\)\nclass (\w+)")
    files = (repository / "neucrowd_tf").rglob("*.py")
    names = {name for path in files for name in registered.findall(path.read_text())}
    assert names < set(parts.__all__), (
        "list each Keras class in neucrowd_tf/saving/keras_objects.py"
    )


def test_standardise():
    layer = Standardise(square_root=True)
    layer.build((None, 2))
    layer.mean.assign([1.0, 0.0])
    layer.scale.assign([2.0, 1.0])
    # (sqrt(9) - 1) / 2 = 1; -sqrt(4) = -2
    assert_allclose(layer(array_of("9.0 -4.0;", np.float32)), [[1.0, -2.0]], atol=1e-6)


def test_keras_saves_the_arguments_of_heads():
    class Scaled(ConfusionHead):
        def __init__(self, num_annotators, scale=1.0, **kwargs):
            super().__init__(num_annotators, **kwargs)
            self.scale = scale

    class Passing(ConfusionHead):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)

    head = Scaled(3, scale=2.0, trace_weight=0.25, name="mine")
    copy = Scaled.from_config(head.get_config())
    assert (copy.num_annotators, copy.scale, copy.trace_weight, copy.name) == (3, 2.0, 0.25, "mine")
    assert Passing.from_config(Passing(num_annotators=2).get_config()).num_annotators == 2
    raises(TypeError, r"num_annotators: expected an int, .*Write int", ConfusionHead, np.int64(3))


@pytest.mark.parametrize("name", HEADS)
def test_configurations_of_earlier_versions(name):
    """They have every argument, and Keras' name, dtype and trainable."""

    head = HEADS[name]()
    config = head.get_config()
    earlier = {**config, "dtype": keras.dtype_policies.serialize(head.dtype_policy)}
    assert type(head).from_config(earlier).get_config() == config
    assert {"num_annotators", "name", "trainable", "dtype"} <= set(config)


def test_a_head_takes_no_logits():
    """Probabilities from a softmax, a nested model or an operation are accepted."""

    inputs = keras.Input((3,))
    logits = keras.layers.Dense(2, name="last")(inputs)
    nested = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="inner")])
    for taken, name in ((logits, "last"), (nested(inputs), "inner")):
        message = rf"CrowdConnection: expected class probabilities, .*{name}.*is linear"
        raises(ValueError, message, parts.CrowdConnection(4), taken)
    with pytest.raises(ValueError, match="ConalHead: expected class probabilities"):
        parts.ConalHead(4)([logits, inputs])
    for taken in (keras.layers.Softmax()(logits), keras.ops.softmax(logits), np.eye(2)):
        assert parts.CrowdConnection(4)(taken).shape[1:] == (4, 2)
    assert parts.DoctorHeads(4, num_classes=2)(logits).shape == (None, 4, 2)
