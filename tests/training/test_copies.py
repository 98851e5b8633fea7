"""Copies of a user's networks: state and frozen weights are kept, trainable weights are drawn."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.methods.rll import RLL
from neucrowd_tf.training.state import copy_network, user_network
from tests.crowds import array_of, noisy_labels

FEATURES = default_rng(0).normal(5.0, 100.0, size=(40, 3)).astype(np.float32)
WORDS = np.array([["b"], ["a"], ["b"]])


def _adapted(layer: Any, data: Any) -> Any:
    layer.adapt(data)
    return layer


STATEFUL: dict[str, tuple[Any, Any]] = {
    "normalization": (lambda: _adapted(keras.layers.Normalization(), FEATURES), FEATURES),
    "discretization": (
        lambda: _adapted(keras.layers.Discretization(num_bins=4), FEATURES),
        FEATURES,
    ),
    "integer_lookup": (
        lambda: _adapted(keras.layers.IntegerLookup(output_mode="one_hot"), array_of("7; 9")),
        array_of("9; 7; 1"),
    ),
    "string_lookup": (lambda: _adapted(keras.layers.StringLookup(), WORDS), WORDS),
    "tf_idf": (lambda: _adapted(keras.layers.StringLookup(output_mode="tf_idf"), WORDS), WORDS),
    "text": (
        lambda: _adapted(keras.layers.TextVectorization(), ["one two", "two"]),
        np.array([["two one"], ["three"]]),
    ),
    "batch_statistics": (lambda: keras.layers.BatchNormalization(), FEATURES),
}


def _sequential(layer: Any, x: Any) -> keras.Model:
    dtype = "string" if x.dtype.kind == "U" else x.dtype.name
    model = keras.Sequential([keras.Input(x.shape[1:], dtype=dtype), layer])
    if isinstance(layer, keras.layers.BatchNormalization):
        layer.moving_mean.assign([1.0, 2.0, 3.0])
    return model


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", STATEFUL)
def test_state_of_keras_layers_is_copied(name: str, nested: bool) -> None:
    make, x = STATEFUL[name]
    if name == "tf_idf" and keras.__version__.startswith("3.8."):
        pytest.skip("StringLookup of this Keras cannot adapt to tf_idf")
    inner = _sequential(make(), x)
    model = inner
    if nested:
        model = keras.Sequential([keras.Input(x.shape[1:], dtype=inner.inputs[0].dtype), inner])
    tensor = keras.ops.convert_to_tensor(x)
    expected = np.asarray(model(tensor))
    for copy in (copy_network(model, "base"), user_network(model, 3, x.shape[1:])):
        assert_array_equal(np.asarray(copy(tensor)), expected)


def _network() -> keras.Model:
    frozen = keras.layers.Dense(4, activation="relu", trainable=False, name="frozen")
    layers = [frozen, keras.layers.BatchNormalization(), keras.layers.Dense(2, name="last")]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.layers[1].moving_variance.assign([4.0, 3.0, 2.0, 1.0])
    return model


@pytest.mark.parametrize("pretrained", [False, True])
def test_frozen_weights_are_kept_and_others_follow_pretrained(pretrained: bool) -> None:
    model = _network()
    arguments: Any = (model, 5, (3,))
    if pretrained:
        copy = user_network(*arguments, pretrained=True)
    else:
        with pytest.warns(UserWarning, match="draws the model's trainable weights") as caught:
            copy = user_network(*arguments)
        assert sum("trainable weights" in str(each.message) for each in caught) == 1
    assert [v.trainable for v in copy.variables] == [v.trainable for v in model.variables]
    for ours, theirs in zip(copy.variables, model.variables, strict=True):
        same = np.array_equal(ours.numpy(), theirs.numpy())
        assert same or (not pretrained and "last/kernel" in ours.path)
    again = user_network(*arguments, pretrained=pretrained)
    other = user_network(model, 6, (3,), pretrained=pretrained)
    last = [network.get_layer("last").kernel.numpy() for network in (copy, again, other)]
    assert_array_equal(last[0], last[1])
    assert np.array_equal(last[0], last[2]) == pretrained


def test_a_function_builds_a_network_for_each_fit() -> None:
    created = []

    def build(shape: tuple[int, ...]) -> keras.Model:
        created.append(keras.Sequential([keras.Input(shape), keras.layers.Dense(2)]))
        return created[-1]

    assert_array_equal(*[user_network(build, 1, (3,)).get_weights()[0] for _ in range(2)])
    assert len(created) == 2


def test_weights_without_an_initialiser_start_from_those_that_a_function_drew() -> None:
    class Bare(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(shape[-1], 4), initializer="glorot_uniform")

        def call(self, inputs: Any) -> Any:
            return inputs @ self.kernel

    model = keras.Sequential([keras.Input((3,)), Bare()])
    for seed in (1, 2):
        copy = user_network(model, seed, (3,))
        assert_array_equal(copy.get_weights()[0], model.get_weights()[0])


def test_a_model_without_configuration_is_an_error() -> None:
    class Bare(keras.Model):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def call(self, x: Any) -> Any:
            return self.inner(x)

    with pytest.raises(DataError, match=r"encoder: the Keras model cannot be copied"):
        user_network(Bare(keras.layers.Dense(2)), 0, (3,))


def _crowd() -> tuple[np.ndarray, np.ndarray, Annotations]:
    """Returns features that only a normalisation makes useful, truth and annotations."""
    rng = default_rng(1)
    truth = rng.integers(2, size=120)
    x = np.stack([rng.normal(size=120) * 1e4, truth * 1e-2 + rng.normal(size=120) * 1e-3], axis=1)
    answers = noisy_labels(rng, truth, 3, 0.9)
    return x.astype(np.float32), truth, Annotations.from_dense(answers, num_classes=2)


@pytest.mark.filterwarnings("ignore:base")
@pytest.mark.filterwarnings("ignore:CrowdLayer hardly predicts")
def test_state_and_frozen_weights_of_a_base_start_every_fit() -> None:
    x, _, crowd = _crowd()
    hidden = keras.layers.Dense(4, trainable=False)
    norm = keras.layers.BatchNormalization(momentum=0.5)
    base = keras.Sequential([keras.Input((2,)), hidden, norm, keras.layers.Dense(2)])
    norm.moving_mean.assign([9.0, 8.0, 7.0, 6.0])
    model = CrowdLayer(base, epochs=1, learning_rate=1e-3, restarts=0)
    with model.reused():
        seen = []
        for _ in range(2):
            model.fit(x, crowd)
            layers = model.network.base.layers
            frozen = next(x for x in layers if isinstance(x, keras.layers.Dense))
            copied = next(x for x in layers if isinstance(x, keras.layers.BatchNormalization))
            assert_array_equal(frozen.kernel.numpy(), hidden.kernel.numpy())
            seen.append(copied.moving_mean.numpy())
    assert_array_equal(*seen)
    assert (seen[0] > 0.5).all()  # two steps from 9 towards about 0
    assert_array_equal(norm.moving_mean.numpy(), [9.0, 8.0, 7.0, 6.0])


@pytest.mark.parametrize("method", [NeuCrowd, RLL])
@pytest.mark.filterwarnings("ignore:encoder")
def test_frozen_encoders_stay(method) -> None:
    x, _, crowd = _crowd()
    encoder = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(3, trainable=False), keras.layers.Dense(2)]
    )
    quick = {"epochs": 1, "steps_per_epoch": 2, "batch_size": 16}
    model = method(encoder=encoder, **quick).fit(x, crowd)
    fitted = next(piece for piece in model.model_.layers if isinstance(piece, keras.Sequential))
    assert_array_equal(fitted.get_weights()[0], encoder.get_weights()[0])
    assert not np.array_equal(fitted.get_weights()[2], encoder.get_weights()[2])
    if method is NeuCrowd:  # whose fit is RLL's
        return
    still = method(encoder=encoder, pretrained=True, learning_rate=1e-9, **quick).fit(x, crowd)
    fitted = next(piece for piece in still.model_.layers if isinstance(piece, keras.Sequential))
    assert_allclose(fitted.get_weights()[2], encoder.get_weights()[2], atol=1e-6)
