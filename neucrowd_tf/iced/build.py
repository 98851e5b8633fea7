"""Puts the networks of ICED together: from the user's Keras models or the default ones, and for
prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.iced.decoder import default_decoder, default_encoder
from neucrowd_tf.iced.network import ICEDModel
from neucrowd_tf.nn.encoders import make_initializer
from neucrowd_tf.training.state import fresh_copy

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Seeds of the networks are this far apart, so that no layer of one draws the numbers of another's.
_DECODER, _CLASSIFIER = 7919, 104729


def build_networks(
    features: NDArray[np.float32],
    num_classes: int,
    *,
    encoder: keras.Model | None,
    classifier: keras.Model | None,
    decoder: keras.Model | None,
    hidden_units: Sequence[int],
    activation: str,
    dropout: float,
    l2: float,
    batch_size: int,
    make_optimizer: Callable[[], keras.optimizers.Optimizer],
    seed: int,
) -> ICEDModel:
    """Returns the model to train; networks that are given are copied and get fresh weights.

    Raises:
        DataError: a given network does not fit the features, the classes or the others.
    """
    shape, units = features.shape[1:], tuple(hidden_units)
    if encoder is not None:
        encoder = fresh_copy(encoder, seed)
        units = (*units[:-1], int(encoder.output_shape[-1]))
    else:
        encoder = default_encoder(
            shape, units, activation=activation, dropout=dropout, l2=l2, seed=seed
        )
    if decoder is not None:
        decoder = fresh_copy(decoder, seed + _DECODER)
    else:
        decoder = default_decoder(shape, units, activation=activation, seed=seed + _DECODER)
    classifier = (
        _dense_classifier(units[-1], num_classes, seed)
        if classifier is None
        else fresh_copy(classifier, seed + _CLASSIFIER)
    )
    for what, network, expected in (
        ("encoder", encoder, (shape, units[-1:])),
        ("classifier", classifier, (units[-1:], (num_classes,))),
        ("decoder", decoder, (units[-1:], shape)),
    ):
        found = (tuple(network.input_shape[1:]), tuple(network.output_shape[1:]))
        if found != expected:
            raise DataError(
                f"{what}: expected a network from {expected[0]} to {expected[1]}, received one from"
                f" {found[0]} to {found[1]}"
            )
    return ICEDModel(
        encoder,
        classifier,
        decoder,
        features,
        num_classes,
        batch_size=batch_size,
        make_optimizer=make_optimizer,
    )


def _dense_classifier(embedding_dim: int, num_classes: int, seed: int) -> keras.Model:
    inputs = keras.Input((embedding_dim,), name="embedding")
    kernel = make_initializer("glorot", seed * 1013 + _CLASSIFIER)
    logits = keras.layers.Dense(num_classes, kernel_initializer=kernel, name="logits")(inputs)
    return keras.Model(inputs, logits, name="classifier")


def prediction_model(
    model: ICEDModel,
    feature_shape: tuple[int, ...],
    mean: NDArray[np.float32],
    scale: NDArray[np.float32],
) -> keras.Model:
    """Returns raw features -> standardise -> embed -> classify as one Keras model that shares the
    weights of `model`.
    """
    inputs = keras.Input(feature_shape, name="features")
    x = keras.layers.Normalization(
        axis=-1, mean=mean, variance=np.square(scale), name="standardise"
    )(inputs)
    embedding = keras.layers.Activation("linear", dtype="float32", name="embedding")(
        model.encoder(x)
    )
    probabilities = keras.layers.Activation("softmax", dtype="float32", name="probabilities")(
        model.classifier(embedding)
    )
    return keras.Model(
        inputs, {"probabilities": probabilities, "embedding": embedding}, name="iced"
    )


def fit_scaler(
    features: NDArray[np.float32], standardise: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Returns mean and scale of each feature (of each channel of images); 0 and 1 where nothing is
    to be standardised.
    """
    axes = tuple(range(features.ndim - 1))
    width = features.shape[-1]
    if not standardise:
        return np.zeros(width, np.float32), np.ones(width, np.float32)
    mean: Any = features.mean(axis=axes, dtype=np.float64)
    scale: Any = features.std(axis=axes, dtype=np.float64)
    return mean.astype(np.float32), np.where(scale > 1e-7, scale, 1.0).astype(np.float32)
