"""Features: scaling of columns, blocks of rows, and features that are not held in memory."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from neucrowd_tf.declare.types import Array, Features, Floats, Floats32, Indices
from neucrowd_tf.io.files.arrays import array_digest

# Under this share of a column's mean a deviation is float32's rounding, which dividing by it would
# blow up.
CONSTANT = 1e-7
_ROWS = 8192
ALIGNMENT = 64  # bytes, of memory that TensorFlow uses as it is
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

    def blocks() -> Iterator[tuple[Floats, Floats | float]]:
        """Yields values `[n, d]` and their weights `[n, 1]`."""
        for positions, block in blocks_of(features, _ROWS):
            values = block.reshape(-1, width).astype(np.float64)
            if wanted == "square_root":
                values = signed_square_root(values)
            yield values, 1.0 if weights is None else weights[positions, None]

    rows = math.prod(features.shape) // width
    count = rows if weights is None else weights.sum()
    mean = sum((values * weight).sum(axis=0) for values, weight in blocks()) / count
    squares = sum((np.square(values - mean) * weight).sum(axis=0) for values, weight in blocks())
    deviation = np.sqrt(squares / count)
    least = CONSTANT
    if getattr(features, "dtype", None) == np.float64:
        least = rows * float(np.finfo(np.float64).eps)
    return mean, np.where(deviation > least * np.abs(mean), deviation, 1.0)


def signed_square_root(values: Array) -> Array:
    """Returns `sign(x) sqrt(|x|)`, which shortens the long tails of pooled activations."""
    return np.copysign(np.sqrt(np.abs(values)), values)


class LazyFeatures:
    """Features `[N, ...]` that are read block by block in every pass.

    Attributes:
        shape, ndim, dtype: as of an array.
        subject: their name in errors.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    subject: str
    _changes: tuple[Callable[[Array], Floats32], ...] = ()

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def changed(self, change: Callable[[Array], Floats32]) -> Self:
        """Returns float32 features whose blocks are changed when they are read."""
        changed = copy.copy(self)
        changed._changes = (*self._changes, change)
        changed.dtype = np.dtype(np.float32)
        return changed

    def _change(self, block: Array) -> Array:
        for change in self._changes:
            block = change(block)
        return block

    def blocks(self, rows: int = ROWS) -> Iterator[tuple[Any, Array]]:
        """Yields positions and features `[n, ...]` of at most `rows` instances at a time."""
        raise NotImplementedError

    def in_file(self) -> LazyFeatures:
        """Returns the features where instances can be taken at random: an array or a file."""
        return self

    def digest(self) -> str:
        """Returns the SHA-256 of positions and features."""
        digests = []
        for positions, features in self.blocks():
            digests += [array_digest(np.asarray(positions)), array_digest(features)]
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()


class ArrayFeatures(LazyFeatures):
    """Features of an array that is not copied, such as a file's (`np.memmap`).

    Args:
        array: `[N, ...]` finite numbers of any type.
        subject: their name in errors.

    Attributes:
        array: the same.
    """

    def __init__(self, array: Array, subject: str = "features") -> None:
        self.array = array
        self.subject = subject
        self.shape = array.shape
        self.dtype = array.dtype
        self._rows: Indices | None = None

    def __getitem__(self, rows: Indices) -> ArrayFeatures:
        """Returns the instances at these positions."""
        selected = copy.copy(self)
        selected._rows = rows if self._rows is None else self._rows[rows]
        selected.shape = (len(selected._rows), *self.shape[1:])
        return selected

    def flat(self) -> ArrayFeatures:
        """Returns features `[N, d]`, whatever shape an instance has."""
        flat = copy.copy(self)
        flat.array = self.array.reshape(len(self.array), -1)
        flat.shape = (len(self), *flat.array.shape[1:])
        return flat

    def take(self, rows: Indices | slice) -> Array:
        """Returns the features at these positions as an array."""
        return self._change(self.array[rows if self._rows is None else self._rows[rows]])

    def blocks(self, rows: int = ROWS) -> Iterator[tuple[slice, Array]]:
        for start in range(0, max(len(self), 1), rows):
            positions = slice(start, start + rows)
            yield positions, self.take(positions)


def blocks_of(features: Features, rows: int) -> Iterator[tuple[Any, Array]]:
    """Yields positions and features of at most `rows` instances at a time.

    Of no instances there is one empty block.
    """
    if isinstance(features, LazyFeatures):
        yield from features.blocks(rows)
        return
    yield from ArrayFeatures(features).blocks(rows)


def in_blocks(function: Callable[[Array], Any], features: Array, rows: int = ROWS) -> Array:
    """Returns `function` of `[M, ...]` features, computed on at most `rows` of them at a time.

    Without features it is called once with none, which gives the result its shape.
    """
    blocks = blocks_of(features, rows)
    positions, block = next(blocks)  # there is one at least
    values = np.asarray(function(block))
    result = _aligned((len(features), *values.shape[1:]), values.dtype)
    result[positions] = values
    for positions, block in blocks:
        result[positions] = function(block)
    return result


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Returns an array, not filled, whose memory TensorFlow can use as it is (see `ALIGNMENT`)."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def is_mapped(features: Features) -> bool:
    """Whether features are a file's, which is not read before it is used."""
    return isinstance(features, np.memmap)


def is_dataset(features: Features) -> bool:
    """Whether features are a `tf.data.Dataset` (without importing TensorFlow)."""
    return hasattr(features, "element_spec")
