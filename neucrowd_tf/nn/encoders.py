"""Embedding networks.

They are the weight-shared towers of NeuCrowd, RLL and the metric-learning baselines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras

from neucrowd_tf.errors import UsageError
from neucrowd_tf.nn.optimizers import FusedAdam

Initializer = Literal["glorot", "normal"]
# Layer i of a network with seed s draws its kernel from 1013 s + i and its masks from 1009 s + i.
# Primes above any number of layers: no two layers of neighbouring seeds share one, and except for
# seed 0 a kernel's is not that of the masks beside it.
_KERNEL_STRIDE, _DROPOUT_STRIDE, _BIAS_STRIDE = 1013, 1009, 1019


def make_initializer(name: str, seed: int) -> keras.initializers.Initializer:
    """Returns a kernel initialiser.

    "glorot" is uniform; "normal" (sd .05) is NeuCrowd's, section 4.3.

    Raises:
        ValueError: another name.
    """
    if name == "glorot":
        return keras.initializers.GlorotUniform(seed=seed)
    if name == "normal":
        return keras.initializers.RandomNormal(stddev=0.05, seed=seed)
    raise ValueError(f"initializer: expected 'glorot' or 'normal', received {name!r}")


def make_optimizer(optimizer: Any, learning_rate: Any) -> keras.optimizers.Optimizer:
    """Returns a new Keras optimizer.

    Args:
        optimizer: a name ("adam", "adadelta", "sgd", ...), an optimizer, its configuration, or a
            function that makes one.
        learning_rate: of an optimizer by name: a number, a schedule, or its configuration.

    Raises:
        UsageError: a name or a configuration that Keras does not know.
    """
    if isinstance(learning_rate, Mapping):
        learning_rate = _from_config("learning_rate", learning_rate)
    if isinstance(learning_rate, int):
        learning_rate = float(learning_rate)
    try:
        if optimizer == "adam":
            return FusedAdam(learning_rate)
        if isinstance(optimizer, str):
            config = {"learning_rate": learning_rate}
            return keras.optimizers.get({"class_name": optimizer, "config": config})
        if isinstance(optimizer, Mapping):
            return _from_config("optimizer", optimizer)
        if isinstance(optimizer, keras.optimizers.Optimizer):
            return type(optimizer).from_config(optimizer.get_config())
    except (ValueError, TypeError):
        raise UsageError(
            f"optimizer: expected the name of a Keras optimizer, received {optimizer!r}"
        ) from None
    return optimizer()


def _from_config(argument: str, config: Mapping[str, Any]) -> Any:
    """Returns the optimizer or schedule of a configuration with "class_name" and "config"."""
    name, options = config.get("class_name"), dict(config.get("config", {}))
    homes = (keras.optimizers, keras.optimizers.schedules)
    kind = next((getattr(home, str(name)) for home in homes if hasattr(home, str(name))), None)
    if kind is None:
        raise UsageError(
            f"{argument}: expected the class_name of a Keras {argument}, received {name!r}"
        )
    if isinstance(options.get("learning_rate"), Mapping):
        options["learning_rate"] = _from_config("learning_rate", options["learning_rate"])
    try:
        return kind.from_config(options)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{argument}: {str(error).splitlines()[0]}") from None


def check_activation(name: str) -> None:
    """Raises UsageError where Keras knows no activation of this name."""
    try:
        keras.activations.get(name)
    except (ValueError, TypeError):
        raise UsageError(
            f"activation: expected the name of a Keras activation, received {name!r}"
        ) from None


def build_encoder(config: Any, input_dim: int, seed: int, name: str = "encoder") -> keras.Model:
    """Returns the encoder of a `DenseEncoder` configuration."""
    return dense_encoder(
        input_dim,
        config.hidden_units,
        activation=config.activation,
        dropout=config.dropout,
        l2=config.l2,
        initializer=config.initializer,
        normal_biases=config.normal_biases,
        last_dropout=config.embedding_dropout,
        seed=seed,
        name=name,
    )


def dense_encoder(
    input_dim: int,
    units: Sequence[int],
    *,
    activation: str = "sigmoid",
    dropout: float = 0.0,
    l2: float = 0.0,
    initializer: Initializer = "glorot",
    normal_biases: bool = False,
    last_dropout: bool = False,
    seed: int = 0,
    name: str = "encoder",
) -> keras.Model:
    """Returns fully connected layers `[None, input_dim] -> [None, units[-1]]`.

    There is dropout before each layer but the first.

    Args:
        units: the width of each layer; the last one is the embedding's.
        l2: kernel penalty; Keras adds `l2 * sum(kernel ** 2)` to the loss.
        normal_biases: whether biases start from N(0, 1), as in NeuCrowd's released code, and not
            at 0.
        last_dropout: whether the embedding itself is dropped out too.
        seed: draws kernels and dropout masks, a seed of its own for each layer.

    References:
        NeuCrowd, sections 3.3.3 and 4.3 (two fully connected layers, dropout .2).
    """
    if not units:
        raise ValueError("units: expected at least one layer, received none")
    check_activation(activation)
    inputs = keras.Input((input_dim,), name="features")
    x = inputs
    for index, width in enumerate(units):
        if index and dropout:
            masks = seed * _DROPOUT_STRIDE + index
            x = keras.layers.Dropout(dropout, seed=masks, name=f"dropout_{index}")(x)
        x = keras.layers.Dense(
            width,
            activation=activation,
            kernel_initializer=make_initializer(initializer, seed * _KERNEL_STRIDE + index),
            kernel_regularizer=keras.regularizers.L2(l2) if l2 else None,
            bias_initializer=(
                keras.initializers.RandomNormal(stddev=1.0, seed=seed * _BIAS_STRIDE + index)
                if normal_biases
                else "zeros"
            ),
            name=f"dense_{index}",
        )(x)
    if last_dropout and dropout:
        masks = seed * _DROPOUT_STRIDE + len(units)
        x = keras.layers.Dropout(dropout, seed=masks, name=f"dropout_{len(units)}")(x)
    return keras.Model(inputs, x, name=name)
