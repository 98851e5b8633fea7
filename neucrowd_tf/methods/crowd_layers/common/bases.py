"""Base classifiers: the papers' networks by name, and any Keras classifier."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Floats, Layer, Network, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.embedding_networks import check_activation
from neucrowd_tf.nn.keras_private import maker_of
from neucrowd_tf.training.networks import Base, DenseBase, SmallCnn

_CHANNELS = (1, 3, 4)  # of usual images
# Rows whose outputs say what a user's classifier gives, the seed that draws them, and how far from
# one the sum of probabilities in bfloat16 may be.
PROBES = 8
_PROBE = 0x0B5E
# Nothing depends on Keras' global state before a fit draws weights and masks with its own seed.
_SEED = 0
ROUNDING = 0.02


def build_base(config: Base, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
    """Returns the base classifier of a configuration, whose last layer is a softmax.

    A fit draws its weights with `reinitialise`.

    Args:
        config: of `neucrowd_tf.training.networks`.
        input_shape: of an instance.
        num_classes: C.

    Raises:
        DataError: the configuration is for images, and the features are not images.
    """
    penalty = keras.regularizers.L2(config.l2) if config.l2 else None
    inputs = keras.Input(input_shape, name="features")
    if isinstance(config, DenseBase):
        x = _dense(config, inputs, penalty)
    elif isinstance(config, SmallCnn):
        _check_images("small_cnn", input_shape)
        x = _small_cnn(config, inputs, penalty)
    else:
        _check_images("resnet18", input_shape)
        x = _resnet18(inputs, penalty)
    outputs = keras.layers.Dense(
        num_classes,
        activation="softmax",
        kernel_initializer=keras.initializers.GlorotUniform(_SEED),
        kernel_regularizer=penalty,
        dtype="float32",
        name="class_probabilities",
    )(x)
    return keras.Model(inputs, outputs, name="base")


def _check_images(base: str, input_shape: tuple[int, ...]) -> None:
    """Raises DataError unless instances are images; warns if their channels seem to come first."""
    if len(input_shape) != 3:
        raise DataError(
            f"base {base!r}: expected images [height, width, channels], received features of shape"
            f" {input_shape}"
        )
    if input_shape[0] in _CHANNELS and input_shape[-1] not in _CHANNELS:
        warnings.warn(
            f"features: images of shape {input_shape} are read as [height, width, channels]. If"
            " channels come first, pass numpy.moveaxis(images, 1, -1).",
            UserWarning,
            stacklevel=2,
        )


def _dense(config: DenseBase, inputs: Tensor, penalty: Tensor) -> Tensor:
    """Returns fully connected layers: dense, batch norm, activation, dropout each.

    References:
        DASC, section 4.1: 128 ReLU units with dropout .5 (LabelMe), 128 with batch norm (Music).
    """
    check_activation(config.activation)
    x = inputs
    if len(inputs.shape) > 2:
        x = keras.layers.Flatten()(x)
    for index, width in enumerate(config.hidden_units):
        x = keras.layers.Dense(
            width,
            kernel_initializer=keras.initializers.GlorotUniform(_SEED),
            kernel_regularizer=penalty,
            name=f"dense_{index}",
        )(x)
        if config.batch_norm:
            x = _batch_norm(name=f"batch_norm_{index}")(x)
        x = keras.layers.Activation(config.activation, name=f"activation_{index}")(x)
        if config.dropout:
            x = keras.layers.Dropout(config.dropout, seed=_SEED, name=f"dropout_{index}")(x)
    return x


def _batch_norm(name: str | None = None) -> keras.layers.Layer:
    """Returns batch norm over the batch of all replicas, so that their number changes nothing."""
    return keras.layers.BatchNormalization(name=name, synchronized=tf.distribute.has_strategy())


def _convolution(
    x: Tensor, filters: int, penalty: Tensor, *, size: int = 3, strides: int = 1, relu: bool = True
) -> Tensor:
    """Returns a convolution without bias, batch norm and, if asked for, ReLU of images `x`."""
    x = keras.layers.Conv2D(
        filters,
        size,
        strides=strides,
        padding="same",
        use_bias=False,
        data_format="channels_last",
        kernel_initializer=keras.initializers.HeNormal(_SEED),
        kernel_regularizer=penalty,
    )(x)
    x = _batch_norm()(x)
    if relu:
        return keras.layers.ReLU()(x)
    return x


def _small_cnn(config: SmallCnn, inputs: Tensor, penalty: Tensor) -> Tensor:
    """Returns five convolutions of 16 to 64 filters for images such as 32 x 32 x 3."""
    x = _convolution(inputs, 16, penalty)
    for filters in (32, 64):
        x = _convolution(x, filters, penalty, strides=2)
        x = _convolution(x, filters, penalty)
    x = keras.layers.GlobalAveragePooling2D("channels_last")(x)
    if config.dropout:
        return keras.layers.Dropout(config.dropout, seed=_SEED)(x)
    return x


def _resnet18(inputs: Tensor, penalty: Tensor) -> Tensor:
    """Returns ResNet-18 in its form for 32 x 32 images.

    It has a 3 x 3 stem without pooling and four stages of two blocks.

    References:
        He et al. (2016), Deep residual learning for image recognition, sections 3.3 and 4.2; DASC,
        section 4.1.
    """
    x = _convolution(inputs, 64, penalty)
    for stage, filters in enumerate((64, 128, 256, 512)):
        for block in range(2):
            strides = 2 if stage and not block else 1
            y = _convolution(x, filters, penalty, strides=strides)
            y = _convolution(y, filters, penalty, relu=False)
            if strides > 1:
                x = _convolution(x, filters, penalty, size=1, strides=strides, relu=False)
            x = keras.layers.ReLU()(keras.layers.Add()([y, x]))
    return keras.layers.GlobalAveragePooling2D("channels_last")(x)


def with_softmax(copy: keras.Model, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
    """Returns the copy of a user's classifier with softmax outputs.

    Args:
        copy: a Keras classifier with probabilities or logits.
        input_shape: of an instance.
        num_classes: C.

    Raises:
        DataError: it takes other features, or its output is not `[None, C]`.
    """
    inputs = keras.Input(input_shape, name="features")
    try:
        outputs = copy(inputs)
    except (ValueError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"base: expected a classifier of features of shape {[None, *input_shape]}, received one"
            f" that fails: {reason}"
        ) from None
    shape = tuple(getattr(outputs, "shape", ()))
    if len(shape) != 2 or shape[-1] != num_classes:
        raise DataError(
            f"base: expected output of shape [None, {num_classes}] (one column for each class),"
            f" received {shape}"
        )
    if len(getattr(copy, "inputs", None) or ()) == 1:
        # Its layers become the base's own: Keras cannot load a model with two parts that share one.
        inputs = copy.inputs[0]
        outputs = copy.outputs[0]
    if not gives_probabilities(keras.Model(inputs, outputs), input_shape):
        check_last_layer(copy)
        outputs = keras.layers.Softmax(dtype="float32", name="class_probabilities")(outputs)
    return keras.Model(inputs, outputs, name="base")


def _last_layer(model: Network) -> Layer:
    """Returns the layer that makes a model's output, within models that it consists of."""
    last = output_layer(model)
    if isinstance(last, keras.Model) and last.layers:
        return _last_layer(last)
    return last


def last_activation(model: Network) -> Any:
    """Returns the activation of a model's last layer.

    Raises:
        DataError: the model has no layers to look at.
    """
    last = _last_layer(model)
    if isinstance(last, keras.layers.Softmax):
        return keras.activations.softmax
    if isinstance(last, keras.layers.ReLU):
        return keras.activations.relu
    return getattr(last, "activation", None) or keras.activations.linear


def check_last_layer(model: Network) -> None:
    """Raises DataError if a model's last layer has an activation other than softmax."""
    activation = last_activation(model)
    if activation not in (keras.activations.softmax, keras.activations.linear):
        name = getattr(activation, "__name__", str(activation))
        raise DataError(
            "base: expected a last layer with softmax (probabilities) or linear activation"
            f" (logits), received {name!r}"
        )


def gives_probabilities(model: Network, input_shape: tuple[int, ...]) -> bool:
    """Returns whether a built classifier's rows are distributions; else they are logits.

    Its outputs for a few rows say so, whatever layers or operations they come from. Neither its
    weights nor its random state change.

    Raises:
        DataError: they are distributions in prediction only (a dropout is behind the softmax), or
            numbers from 0 that are not (such as those of a ReLU).
    """
    rows = np.random.default_rng(_PROBE).normal(size=(PROBES, *input_shape)).astype(np.float32)

    def outputs(*, training: bool) -> Floats:
        weights = (model.trainable_variables, model.non_trainable_variables)
        for features in (rows, np.zeros_like(rows)):  # an embedding takes no negative codes
            try:
                answers, _ = model.stateless_call(*weights, features, training=training)
            except (ValueError, TypeError, tf.errors.OpError):
                continue
            values = np.asarray(keras.ops.cast(answers, "float32"), dtype=np.float64)
            return values[np.isfinite(values).all(axis=1)]
        return np.zeros((0, 0))

    def are_distributions(values: Floats) -> bool:
        sums = np.abs(values.sum(axis=1) - 1.0)
        return bool((values >= 0).all() and (sums < ROUNDING).all())

    predicted = outputs(training=False)
    if not predicted.size:  # it takes none of these rows: it may want ids, or numbers above 0
        return last_activation(model) is keras.activations.softmax
    if are_distributions(predicted):
        if not are_distributions(outputs(training=True)):
            raise DataError(
                "base: its outputs sum to one when it predicts, but not while it trains. Move the"
                " dropout or noise before the softmax."
            )
        return True
    # Behind hidden units that are all 0, a linear layer gives zeros, too.
    linear = getattr(_last_layer(model), "activation", None) is keras.activations.linear
    if (predicted >= 0).all() and 0 < (predicted == 0).mean() < 1 and not linear:
        raise DataError(
            "base: expected probabilities (a softmax) or logits of both signs, received numbers"
            " from 0 that do not sum to one. End it in a linear layer or a softmax, without a ReLU"
            " or a dropout after it."
        )
    return False


def output_layer(model: Network) -> Layer:
    """Returns the layer that makes a model's output, the last layer of a user's own class."""
    if outputs := getattr(model, "outputs", None):
        return maker_of(outputs[0])[0]
    if not model.layers:
        name = type(model).__name__
        raise DataError(f"base: expected a Keras classifier with layers, received {name} with none")
    return model.layers[-1]


def feature_extractor(base: keras.Model) -> keras.Model:
    """Returns the part of a classifier before its last dense layer.

    It is `[None, ...] -> [None, h]`; softmax and activations after it are left out.

    Raises:
        DataError: the classifier does not end in a dense layer.
    """
    (layer, *_), tensor = _last_layers(base)
    if isinstance(layer, keras.Model):
        inner = feature_extractor(layer)
        if tensor is base.inputs[0]:
            return inner
        tensor = inner(tensor)
    elif not isinstance(layer, keras.layers.Dense):
        raise DataError(
            "base: expected a dense last layer, before which the shared features are taken,"
            f" received {type(layer).__name__}"
        )
    return keras.Model(base.inputs[0], tensor, name="extractor")


def _last_layers(base: keras.Model) -> tuple[list[Layer], Tensor]:
    """Returns a classifier's last layer with the activations after it, and that layer's input."""
    layer, tensor = maker_of(base.outputs[0])
    layers = [layer]
    while isinstance(layer, (keras.layers.Softmax, keras.layers.Activation)):
        layer, tensor = maker_of(tensor)
        layers.insert(0, layer)
    return layers, tensor


def shared_features(base: keras.Model, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Returns a classifier's probabilities and the features before its last dense layer.

    Both come from one pass if the base is a plain graph.
    """
    features = feature_extractor(base)(inputs)
    layers, _ = _last_layers(base)
    if not isinstance(layers[0], keras.layers.Dense):
        return base(inputs), features
    probabilities = features
    for layer in layers:
        probabilities = layer(probabilities)
    return probabilities, features
