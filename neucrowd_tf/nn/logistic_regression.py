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

    The mean is taken off in two parts, what float32 holds of it and the rest: features far from
    zero, whose scale is small beside their mean, would lose the digits that tell them apart.
    Keras stores float64 constants as float32, so these would not do in a saved model.

    Args:
        shape: of an instance; more than one dimension is flattened.
        kernel, bias: of the softmax, `[d, C]` and `[C]`.
        mean, scale: `[d]` of each column.
    """
    single = mean.astype(np.float32).astype(np.float64)
    dense = keras.layers.Dense(len(bias), "softmax", dtype="float32", name="probabilities")
    dense.build((None, len(mean)))
    dense.set_weights([kernel, bias])
    inputs = keras.Input(shape, dtype="float32", name="features")
    if len(shape) == 1:
        x = inputs
    else:
        x = keras.layers.Flatten()(inputs)
    x = constants(single, np.ones(len(mean)), "centre")(x)
    x = constants(mean - single, scale, "standardise")(x)
    return keras.Model(inputs, {"probabilities": dense(x)})
