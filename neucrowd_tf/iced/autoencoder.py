"""The networks between inputs and embeddings: the default feature extractors, and the decoders that
undo them.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras

from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.encoders import dense_encoder, make_initializer

FILTERS = (16, 32)
# Each convolution halves both sides of an image.
_FACTOR = 2 ** len(FILTERS)


def default_encoder(
    input_shape: tuple[int, ...],
    hidden_units: Sequence[int],
    *,
    activation: str = "relu",
    dropout: float = 0.0,
    l2: float = 0.0,
    seed: int = 0,
) -> keras.Model:
    """Returns fully connected layers for flat features; for images `[height, width, channels]` two
    strided 3 x 3 convolutions and a dense layer (made for 16 x 16 and 32 x 32).

    Raises:
        DataError: neither of the two, or images whose sides do not divide by 4.

    References:
        ICED, figure 1 and section 2.2 (the feature extractor G).
    """
    if len(input_shape) == 1:
        return dense_encoder(
            input_shape[0], hidden_units, activation=activation, dropout=dropout, l2=l2, seed=seed
        )
    _check_image(input_shape)
    penalty = keras.regularizers.L2(l2) if l2 else None
    inputs = keras.Input(input_shape, name="features")
    x = inputs
    for index, count in enumerate(FILTERS):
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
        hidden_units[-1],
        activation=activation,
        kernel_initializer=_glorot(seed, 98),
        kernel_regularizer=penalty,
        name="dense",
    )(x)
    return keras.Model(inputs, x, name="encoder")


def default_decoder(
    output_shape: tuple[int, ...],
    hidden_units: Sequence[int],
    *,
    activation: str = "relu",
    seed: int = 0,
) -> keras.Model:
    """Returns the mirror of `default_encoder`, from an embedding of `hidden_units[-1]` numbers to
    `output_shape`, with a linear output.

    References:
        ICED, section 2.4 (the decoder Q).
    """
    inputs = keras.Input((hidden_units[-1],), name="embedding")
    x = inputs
    if len(output_shape) == 1:
        for index, width in enumerate(hidden_units[-2::-1]):
            kernel = _glorot(seed, index)
            x = keras.layers.Dense(width, activation, kernel_initializer=kernel)(x)
        last = keras.layers.Dense(output_shape[0], kernel_initializer=_glorot(seed, 99))
        return keras.Model(inputs, last(x), name="decoder")
    _check_image(output_shape)
    height, width, channels = output_shape
    narrow, wide = FILTERS
    small = (height // _FACTOR, width // _FACTOR, wide)
    kernel = _glorot(seed, 97)
    x = keras.layers.Dense(small[0] * small[1] * wide, activation, kernel_initializer=kernel)(x)
    x = keras.layers.Reshape(small)(x)
    for count, made_by, stream in ((narrow, activation, 0), (channels, None, 99)):
        x = keras.layers.Conv2DTranspose(
            count,
            3,
            strides=2,
            padding="same",
            activation=made_by,
            kernel_initializer=_glorot(seed, stream),
        )(x)
    return keras.Model(inputs, x, name="decoder")


def _glorot(seed: int, index: int) -> keras.initializers.Initializer:
    return make_initializer("glorot", seed * 1013 + index)


def _check_image(shape: tuple[int, ...]) -> None:
    if len(shape) != 3 or shape[0] % _FACTOR or shape[1] % _FACTOR:
        raise DataError(
            "features: expected vectors, or images [height, width, channels] with sides that"
            f" divide by {_FACTOR}, received {tuple(shape)} a row; pass encoder= and decoder="
        )
