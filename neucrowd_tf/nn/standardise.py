"""Standardising inside the network, so that an exported model takes raw features."""

from __future__ import annotations

import keras
from keras import ops
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Array, Fields, Tensor


@keras.saving.register_keras_serializable("neucrowd_tf")
class Standardise(keras.layers.Layer):
    """`(x - mean) / scale` with constants that are weights.

    Keras' `Normalization` stores the variance, which overflows float32 for scales from 1e20 on, and
    it does not accept scales below 1e-7.

    Args:
        square_root: whether `sign(x) sqrt(|x|)` comes first (pooled activations have long tails).
        dtype: of the constants, which are never trained, and the results.
        options: of a Keras layer.

    Example:
        >>> layer = Standardise(square_root=True)
    """

    def __init__(
        self, *, square_root: bool = False, dtype: object = "float32", **options: object
    ) -> None:
        super().__init__(dtype=dtype, **options)
        self.square_root = square_root

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = (int(input_shape[-1]),)  # type: ignore[arg-type]
        constant = {"shape": width, "trainable": False}
        self.mean = self.add_weight(initializer="zeros", name="mean", **constant)
        self.scale = self.add_weight(initializer="ones", name="scale", **constant)

    def call(self, features: Tensor) -> Tensor:
        x = ops.cast(features, self.compute_dtype)
        if self.square_root:
            x = ops.sign(x) * ops.sqrt(ops.abs(x))
        return (x - self.mean) / self.scale

    def get_config(self) -> Fields:
        return {**super().get_config(), "square_root": self.square_root}


def constants(mean: ArrayLike, scale: ArrayLike, name: str, dtype: str = "float32") -> Standardise:
    """Returns a `Standardise` layer with the mean and the scale `[d]` of each column."""
    layer = Standardise(name=name, dtype=dtype)
    layer.build((None, len(mean)))  # type: ignore[arg-type]
    layer.set_weights([mean, scale])
    return layer


def rescaled(model: keras.Model, shape: tuple[int, ...], mean: Array, scale: Array) -> keras.Model:
    """Returns a model of features `[M, *shape]` in float64, rescaled for a model in float32."""
    inputs = keras.Input(shape, dtype="float64", name="features")
    x = constants(mean, scale, "rescale", "float64")(inputs)
    return keras.Model(inputs, model(ops.cast(x, "float32")))
