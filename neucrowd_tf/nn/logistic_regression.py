"""A logistic regression as a Keras model, which keeps the digits of features far from zero."""

from __future__ import annotations

import keras
import numpy as np

from neucrowd_tf.declare.types import Array
from neucrowd_tf.nn.standardise import constants


def linear_model(
    shape: tuple[int, ...], kernel: Array, bias: Array, mean: Array, scale: Array
) -> keras.Model:
    """Returns a model of features `[M, *shape]`: standardise, then a dense softmax, in float32.

    The mean is subtracted in two parts: its value rounded to float32, and the remainder. Otherwise
    features far from zero, whose scale is small compared with their mean, would lose the digits
    that distinguish them. Constants in float64 would not help in a saved model, because Keras
    stores them as float32.

    Args:
        shape: of an instance; more than one dimension is flattened.
        kernel, bias: of the softmax, `[d, C]` and `[C]`.
        mean, scale: `[d]` of each column.
    """
    rounded_mean = mean.astype(np.float32).astype(np.float64)
    dense = keras.layers.Dense(len(bias), "softmax", dtype="float32", name="probabilities")
    dense.build((None, len(mean)))
    dense.set_weights([kernel, bias])
    inputs = keras.Input(shape, dtype="float32", name="features")
    x = inputs
    if len(shape) > 1:
        x = keras.layers.Flatten()(x)
    x = constants(rounded_mean, np.ones(len(mean)), "centre")(x)
    x = constants(mean - rounded_mean, scale, "standardise")(x)
    return keras.Model(inputs, {"probabilities": dense(x)})
