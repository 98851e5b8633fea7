"""Embedding networks of NeuCrowd, RLL and the metric-learning baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from neucrowd_tf.declare.types import KerasOptimizer, Network, Tensor
from neucrowd_tf.errors import UsageError
from neucrowd_tf.nn.keras_private import copy_decay
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.standardise import constants

# Layer i of a network with seed s draws its kernel from 1013 s + i and its masks from 1009 s + i.
# These are primes above any number of layers, so that layers of neighbouring seeds draw
# differently, and a kernel differently from the masks beside it (except for seed 0).
KERNEL_STRIDE = 1013
DROPOUT_STRIDE = 1009


def make_optimizer(
    optimizer: KerasOptimizer, learning_rate: object, *, always: bool = False
) -> keras.optimizers.Optimizer:
    """Returns a new Keras optimizer.

    Args:
        optimizer: a name ("adam", "adadelta", "sgd", ...), an optimizer, its configuration, or a
            function that makes one.
        learning_rate: of an optimizer by name: a number, a schedule, or its configuration.
        always: whether it also replaces the learning rate of an optimizer that has its own.

    Raises:
        UsageError: a name or a configuration that Keras does not know.
    """
    try:
        rate = _schedule(learning_rate)
        if optimizer == "adam":
            return FusedAdam(rate)
        if isinstance(optimizer, str):
            config = {"learning_rate": rate}
            return keras.optimizers.get({"class_name": optimizer, "config": config})
        if isinstance(optimizer, Mapping):
            config = dict(optimizer.get("config", {}))
            if "learning_rate" in config:
                config["learning_rate"] = _schedule(config["learning_rate"])
            optimizer = keras.optimizers.get({**optimizer, "config": config})
        elif not isinstance(optimizer, keras.optimizers.Optimizer):
            optimizer = optimizer()
        config = optimizer.get_config()
        if always:  # the rate of an optimizer that scales losses is that of its inner one
            config.get("inner_optimizer", {"config": config})["config"]["learning_rate"] = rate
        copy = type(optimizer).from_config(config)
        copy_decay(optimizer, copy)
        return copy
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            "optimizer: expected the name or the configuration of a Keras optimizer, received"
            f" {optimizer!r} with learning_rate {learning_rate!r}: {str(error).splitlines()[0]}"
        ) from None


def _schedule(rate: Tensor) -> Tensor:
    """Returns a learning rate as Keras takes it: a float, or a schedule in place of its config."""
    if isinstance(rate, Mapping):
        return keras.optimizers.schedules.deserialize({"config": {}, **rate})
    if isinstance(rate, int):
        return float(rate)
    return rate


def check_activation(name: str) -> None:
    """Raises UsageError if Keras has no activation of this name."""
    try:
        keras.activations.get(name)
    except (ValueError, TypeError):
        raise UsageError(
            f"activation: expected the name of a Keras activation, received {name!r}"
        ) from None


def embedding_model(
    shape: tuple[int, ...],
    scaling: tuple[Tensor, Tensor],
    encoder: keras.Model,
    classify: Network,
    name: str,
) -> keras.Model:
    """Returns raw features -> standardise -> embed -> classify as one Keras model.

    Args:
        shape: of the features of an instance.
        scaling: mean and scale of each column.
        encoder: from standardised features to embeddings.
        classify: layer or function from embeddings to "probabilities".
        name: of the model.
    """
    inputs = keras.Input(shape, name="features")
    standardise = constants(*scaling, "standardise")
    embed = keras.layers.Activation("linear", dtype="float32", name="embedding")
    embedding = embed(encoder(standardise(inputs)))
    outputs = {"probabilities": classify(embedding), "embedding": embedding}
    return keras.Model(inputs, outputs, name=name)


def build_encoder(config: Any, input_dim: int, seed: int = 0, name: str = "encoder") -> keras.Model:
    """Returns the fully connected layers of a `DenseEncoder` configuration.

    Args:
        config: a `DenseEncoder`; the last layer is the embedding, and the first has no dropout.
        input_dim: d of `[None, d] -> [None, h]`.
        seed: draws kernels and dropout masks; each layer has a seed of its own.
        name: of the model.

    References:
        NeuCrowd, sections 3.3.3 and 4.3 (two fully connected layers, dropout .2).
    """
    check_activation(config.activation)
    inputs = keras.Input((input_dim,), name="features")
    x = inputs
    for index, width in enumerate(config.hidden_units):
        if index and config.dropout:
            masks = seed * DROPOUT_STRIDE + index
            x = keras.layers.Dropout(config.dropout, seed=masks, name=f"dropout_{index}")(x)
        kernel_seed = seed * KERNEL_STRIDE + index
        kernel: Tensor = keras.initializers.GlorotUniform(kernel_seed)
        if config.initializer == "normal":
            kernel = keras.initializers.RandomNormal(0.0, 0.05, kernel_seed)
        x = keras.layers.Dense(
            width,
            activation=config.activation,
            kernel_initializer=kernel,
            kernel_regularizer=keras.regularizers.L2(config.l2) if config.l2 else None,
            name=f"dense_{index}",
        )(x)
    return keras.Model(inputs, x, name=name)
