"""Predictions of a Keras model: each output is compiled once, and predicted block by block."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.training.features import ROWS


def rows_at_once(shape: Sequence[int], most: int = ROWS) -> int:
    """Returns how many instances of this shape are predicted at a time, up to `most`."""
    return max(1, min(ROWS if len(shape) == 1 else 256, most))


def compiled_output(model: keras.Model, name: str, shape: Sequence[int]) -> Tensor:
    """Returns the compiled function from features `[M, *shape]` to an output of the model."""
    output = keras.Model(model.input, model.output[name])
    signature = [tf.TensorSpec([None, *shape], tf.float32)]
    compiled = tf.function(
        lambda x: output(x, training=False), input_signature=signature, autograph=False
    )
    concrete = compiled.get_concrete_function()
    # To look for the signature in each call takes as long as to predict.
    return lambda x: concrete(tf.convert_to_tensor(x, tf.float32))
