"""Features: scaling of columns, and blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neucrowd_tf.declare.types import Array, Features, Floats

# Under this share of a column's mean a deviation is float32's rounding, which dividing by it would
# blow up.
CONSTANT = 1e-7
_ROWS = 8192
ROWS = 4096  # that a network predicts at a time


def standardise(
    features: Array, wanted: bool | str = True, *, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Returns the mean and the scale `[d]` of each column.

    `(features - mean) / scale` has mean 0 and standard deviation 1.

    A column that is constant up to rounding (its deviation is at most `CONSTANT` times its mean's
    magnitude; in float64 the rounding of a sum of N) has scale 1: it becomes about 0. Sums are in
    float64, over blocks of rows, so that images take no copy in that precision.

    Args:
        features: `[N, ..., d]`, N > 0; of images each channel is a column.
        wanted: False gives mean 0 and scale 1, which change nothing; "square_root" takes the signed
            square root first.
        weights: `[N]` of the rows of `[N, d]` features; by default all count the same.
    """
    width = features.shape[-1]
    if not wanted:
        return np.zeros(width), np.ones(width)

    def blocks() -> Iterator[tuple[Floats, Floats | None]]:
        for places, block in blocks_of(features, _ROWS):
            values = block.reshape(-1, width).astype(np.float64)
            if wanted == "square_root":
                values = signed_square_root(values)
            yield values, None if weights is None else weights[places, None]

    def total(values: Floats, weight: Floats | None) -> Array:
        return np.asarray((values if weight is None else values * weight).sum(axis=0))

    rows = math.prod(features.shape) // width
    if weights is None:
        count = rows
    else:
        count = weights.sum()
    mean = sum(total(values, weight) for values, weight in blocks()) / count
    squares = sum(total(np.square(values - mean), weight) for values, weight in blocks())
    deviation = np.sqrt(squares / count)
    exact = getattr(features, "dtype", None) == np.float64
    if exact:
        least = rows * np.finfo(np.float64).eps
    else:
        least = CONSTANT
    return mean, np.where(deviation > least * np.abs(mean), deviation, 1.0)


def signed_square_root(values: Array) -> Array:
    """Returns `sign(x) sqrt(|x|)`, which shortens the long tails of pooled activations."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def blocks_of(features: Features, rows: int) -> Iterator[tuple[Any, Array]]:
    """Yields positions and features of at most `rows` instances at a time.

    Of no instances there is one empty block. `DatasetFeatures` have blocks of their own.
    """
    if hasattr(features, "blocks"):
        yield from features.blocks(rows)
        return
    for start in range(0, max(len(features), 1), rows):
        places = slice(start, start + rows)
        yield places, features[places]


def in_blocks(function: Callable[[Array], Any], features: Array, rows: int = ROWS) -> Array:
    """Returns `function` of `[M, ...]` features, computed on at most `rows` of them at a time.

    Without features it is called once with none, which gives the result its shape.
    """
    blocks = blocks_of(features, rows)
    places, block = next(blocks)  # there is one at least
    values = np.asarray(function(block))
    result = np.empty((len(features), *values.shape[1:]), values.dtype)
    result[places] = values
    for places, block in blocks:
        result[places] = function(block)
    return result


def is_dataset(features: Features) -> bool:
    """Whether features are a `tf.data.Dataset` (without importing TensorFlow)."""
    return hasattr(features, "element_spec")
