"""Standardising inside the network, so that an exported model takes raw features."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import LayerOptions


@keras.saving.register_keras_serializable("neucrowd_tf")
class Standardise(keras.layers.Layer):
    """`(x - mean) / scale` with constants that are weights.

    If asked for, a signed square root comes first.

    Args:
        square_root: whether `sign(x) sqrt(|x|)` comes first (pooled activations have long tails).
    """

    def __init__(self, square_root: bool = False, **layer: Unpack[LayerOptions]) -> None:
        super().__init__(**{"dtype": "float32", "trainable": False, **layer})
        self.square_root = square_root

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = (int(input_shape[-1]),)  # type: ignore[arg-type]
        constant = {"shape": width, "trainable": False, "dtype": "float32"}
        self.mean = self.add_weight(initializer="zeros", name="mean", **constant)
        self.scale = self.add_weight(initializer="ones", name="scale", **constant)

    def call(self, features: Any) -> Any:
        x = ops.cast(features, "float32")
        if self.square_root:
            x = ops.sign(x) * ops.sqrt(ops.abs(x))
        return (x - self.mean) / self.scale

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "square_root": self.square_root}
