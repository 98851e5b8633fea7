"""Networks from and to the input space: the default feature extractors and the decoders that undo
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras

from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.encoders import dense_encoder, make_initializer


def default_encoder(
    input_shape: tuple[int, ...],
    hidden_units: Sequence[int],
    *,
    activation: str,
    dropout: float,
    l2: float,
    seed: int,
    name: str = "encoder",
) -> keras.Model:
    """Returns fully connected layers for flat features, convolutions for images `[height, width,
    channels]`.

    Raises:
        DataError: neither of the two, or images whose sides do not divide by 4.
    """
    if len(input_shape) == 1:
        return dense_encoder(
            input_shape[0],
            hidden_units,
            activation=activation,
            dropout=dropout,
            l2=l2,
            seed=seed,
            name=name,
        )
    return convolutional_encoder(
        input_shape,
        hidden_units[-1],
        activation=activation,
        dropout=dropout,
        l2=l2,
        seed=seed,
        name=name,
    )


def default_decoder(
    input_shape: tuple[int, ...],
    hidden_units: Sequence[int],
    *,
    activation: str,
    seed: int,
    name: str = "decoder",
) -> keras.Model:
    """Returns what leads from an embedding of `hidden_units[-1]` numbers back to `input_shape`; the
    mirror of `default_encoder`.
    """
    if len(input_shape) == 1:
        return dense_decoder(
            hidden_units[-1],
            hidden_units[:-1][::-1],
            input_shape[0],
            activation=activation,
            seed=seed,
            name=name,
        )
    return convolutional_decoder(
        hidden_units[-1], input_shape, activation=activation, seed=seed, name=name
    )


def dense_decoder(
    embedding_dim: int,
    hidden_units: Sequence[int],
    output_dim: int,
    *,
    activation: str = "relu",
    seed: int = 0,
    name: str = "decoder",
) -> keras.Model:
    """Returns fully connected layers `[None, embedding_dim] -> [None, output_dim]` with a linear
    output.
    """
    inputs = keras.Input((embedding_dim,), name="embedding")
    x = inputs
    for index, width in enumerate(hidden_units):
        x = keras.layers.Dense(
            width,
            activation=activation,
            kernel_initializer=_glorot(seed, index),
            name=f"dense_{index}",
        )(x)
    x = keras.layers.Dense(output_dim, kernel_initializer=_glorot(seed, 99), name="reconstruction")(
        x
    )
    return keras.Model(inputs, x, name=name)


def convolutional_encoder(
    input_shape: tuple[int, ...],
    embedding_dim: int = 64,
    *,
    filters: Sequence[int] = (16, 32),
    activation: str = "relu",
    dropout: float = 0.0,
    l2: float = 0.0,
    seed: int = 0,
    name: str = "encoder",
) -> keras.Model:
    """Returns two strided 3 x 3 convolutions and a dense layer; made for 16 x 16 and 32 x 32
    images.

    Args:
        input_shape: (height, width, channels), sides that divide by 4.
        filters: of each convolution, which halves both sides.
    """
    _check_image(input_shape, len(filters))
    penalty = keras.regularizers.L2(l2) if l2 else None
    inputs = keras.Input(input_shape, name="features")
    x = inputs
    for index, count in enumerate(filters):
        x = keras.layers.Conv2D(
            count,
            3,
            strides=2,
            padding="same",
            activation=activation,
            kernel_initializer=_glorot(seed, index),
            kernel_regularizer=penalty,
            name=f"conv_{index}",
        )(x)
    x = keras.layers.Flatten()(x)
    if dropout:
        x = keras.layers.Dropout(dropout, seed=seed * 1009 + 1)(x)
    x = keras.layers.Dense(
        embedding_dim,
        activation=activation,
        kernel_initializer=_glorot(seed, 98),
        kernel_regularizer=penalty,
        name="dense",
    )(x)
    return keras.Model(inputs, x, name=name)


def convolutional_decoder(
    embedding_dim: int,
    output_shape: tuple[int, ...],
    *,
    filters: Sequence[int] = (32, 16),
    activation: str = "relu",
    seed: int = 0,
    name: str = "decoder",
) -> keras.Model:
    """Returns a dense layer and transposed convolutions, each doubling both sides, with a linear
    output `output_shape`.
    """
    _check_image(output_shape, len(filters))
    height, width, channels = output_shape
    factor = 2 ** len(filters)
    inputs = keras.Input((embedding_dim,), name="embedding")
    x = keras.layers.Dense(
        height // factor * (width // factor) * filters[0],
        activation=activation,
        kernel_initializer=_glorot(seed, 97),
        name="dense",
    )(inputs)
    x = keras.layers.Reshape((height // factor, width // factor, filters[0]))(x)
    for index, count in enumerate(filters[1:]):
        x = keras.layers.Conv2DTranspose(
            count,
            3,
            strides=2,
            padding="same",
            activation=activation,
            kernel_initializer=_glorot(seed, index),
            name=f"conv_{index}",
        )(x)
    x = keras.layers.Conv2DTranspose(
        channels,
        3,
        strides=2,
        padding="same",
        kernel_initializer=_glorot(seed, 99),
        name="reconstruction",
    )(x)
    return keras.Model(inputs, x, name=name)


def _glorot(seed: int, index: int) -> keras.initializers.Initializer:
    return make_initializer("glorot", seed * 1013 + index)


def _check_image(shape: tuple[int, ...], halvings: int) -> None:
    factor = 2**halvings
    if len(shape) != 3 or shape[0] % factor or shape[1] % factor:
        raise DataError(
            "features: expected vectors, or images [height, width, channels] with sides that"
            f" divide by {factor}, received {tuple(shape)} a row; pass encoder= and decoder="
        )
