"""Similarities between embeddings."""

from __future__ import annotations

import keras
from keras import ops

from neucrowd_tf.declare.types import Tensor

EPSILON = 1e-12


def widened(x: Tensor) -> Tensor:
    """Returns a tensor, as float32 if it is float16.

    float16 rounds `EPSILON` to 0 and cannot hold squares from 256 on.
    """
    tensor = ops.convert_to_tensor(x)
    if keras.backend.standardize_dtype(tensor.dtype) == "float16":
        return ops.cast(tensor, "float32")
    return tensor


def cosine_similarity(a: Tensor, b: Tensor) -> Tensor:
    """Returns the cosine between vectors along the last axis; 0 where one of them is zero.

    References:
        RLL, section III-A: r(x_i, x_*).
    """
    a = widened(a)
    b = widened(b)
    dot = ops.sum(a * b, axis=-1)
    norms = ops.sum(ops.square(a), axis=-1) * ops.sum(ops.square(b), axis=-1)
    return dot * ops.rsqrt(ops.maximum(norms, EPSILON))


def euclidean_similarity(a: Tensor, b: Tensor, offset: float = 1.0) -> Tensor:
    """Returns `offset - ||a - b||` along the last axis.

    The gradient at distance zero, where the norm has none, is zero.

    References:
        NeuCrowd, section 3.3.3: R, with `offset` C.
    """
    squared = ops.sum(ops.square(widened(a) - widened(b)), axis=-1)
    return offset - ops.sqrt(ops.maximum(squared, EPSILON))


def similarity(name: str, a: Tensor, b: Tensor, offset: float = 1.0) -> Tensor:
    """Returns "cosine" or "euclidean" similarity."""
    if name == "cosine":
        return cosine_similarity(a, b)
    return euclidean_similarity(a, b, offset)
