"""Standardising inside the network, so that an exported model takes raw features."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike, NDArray


@keras.saving.register_keras_serializable("neucrowd_tf")
class Standardise(keras.layers.Layer):
    """`(x - mean) / scale` with constants that are weights.

    Keras' `Normalization` holds the variance, which float32 cannot from scales of 1e20 on, and
    takes no scale below 1e-7. If asked for, a signed square root comes first.

    Args:
        square_root: whether `sign(x) sqrt(|x|)` comes first (pooled activations have long tails).
        name: of the layer.
        dtype: of the constants and the results.
        trainable: whether training changes the constants.
    """

    def __init__(
        self,
        square_root: bool = False,
        *,
        name: str | None = None,
        dtype: Any = "float32",
        trainable: bool = False,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.square_root = square_root

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = (int(input_shape[-1]),)  # type: ignore[arg-type]
        constant = {"shape": width, "trainable": False}
        self.mean = self.add_weight(initializer="zeros", name="mean", **constant)
        self.scale = self.add_weight(initializer="ones", name="scale", **constant)

    def call(self, features: Any) -> Any:
        x = ops.cast(features, self.compute_dtype)
        if self.square_root:
            x = ops.sign(x) * ops.sqrt(ops.abs(x))
        return (x - self.mean) / self.scale

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "square_root": self.square_root}


def constants(mean: ArrayLike, scale: ArrayLike, name: str, dtype: str = "float32") -> Standardise:
    """Returns the layer with the mean and the scale `[d]` of each column."""
    layer = Standardise(name=name, dtype=dtype)
    layer.build((None, len(mean)))  # type: ignore[arg-type]
    layer.set_weights([mean, scale])
    return layer


def rescaled(model: keras.Model, mean: NDArray[Any], scale: NDArray[Any]) -> keras.Model:
    """Returns a model of features `[M, d]` in float64, which are rescaled for `model`."""
    inputs = keras.Input((len(mean),), dtype="float64", name="features")
    x = constants(mean, scale, "rescale", "float64")(inputs)
    return keras.Model(inputs, model(ops.cast(x, "float32")))


def linear_model(
    shape: tuple[int, ...],
    kernel: NDArray[Any],
    bias: NDArray[Any],
    mean: NDArray[Any],
    scale: NDArray[Any],
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
    x = inputs if len(shape) == 1 else keras.layers.Flatten()(inputs)
    x = constants(single, np.ones(len(mean)), "centre")(x)
    x = constants(mean - single, scale, "standardise")(x)
    return keras.Model(inputs, {"probabilities": dense(x)})
