"""Features: scaling of columns, blocks of rows, and features that are not held in memory."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import array_digest

# Under this share of a column's mean a deviation is float32's rounding, which dividing by it would
# blow up.
CONSTANT = 1e-7
_ROWS = 8192
ROWS = 4096  # that a network predicts at a time
SHUFFLED = 4096  # instances among which a batch is drawn


def standardise(
    features: NDArray[Any], wanted: bool | str = True, *, weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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

    def blocks() -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        for places, block in blocks_of(features, _ROWS):
            values = block.reshape(-1, width).astype(np.float64)
            values = signed_square_root(values) if wanted == "square_root" else values
            yield values, None if weights is None else weights[places, None]

    def total(values: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[Any]:
        return np.asarray((values if weight is None else values * weight).sum(axis=0))

    rows = math.prod(features.shape) // width
    count = rows if weights is None else weights.sum()
    mean = sum(total(values, weight) for values, weight in blocks()) / count
    squares = sum(total(np.square(values - mean), weight) for values, weight in blocks())
    deviation = np.sqrt(squares / count)
    exact = getattr(features, "dtype", None) == np.float64
    least = rows * np.finfo(np.float64).eps if exact else CONSTANT
    return mean, np.where(deviation > least * np.abs(mean), deviation, 1.0)


def signed_square_root(values: NDArray[Any]) -> NDArray[Any]:
    """Returns `sign(x) sqrt(|x|)`, which shortens the long tails of pooled activations."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def blocks_of(features: Any, rows: int) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yields positions and features of at most `rows` instances at a time.

    Of no instances there is one empty block. `DatasetFeatures` have blocks of their own.
    """
    if hasattr(features, "blocks"):
        yield from features.blocks(rows)
        return
    for start in range(0, max(len(features), 1), rows):
        places = slice(start, start + rows)
        yield places, features[places]


def in_blocks(
    function: Callable[[NDArray[Any]], Any], features: NDArray[Any], rows: int = ROWS
) -> NDArray[Any]:
    """Returns `function` of `[M, ...]` features, computed on at most `rows` of them at a time.

    Without features it is called once with none, which gives the result its shape.
    """
    results = [(places, np.asarray(function(block))) for places, block in blocks_of(features, rows)]
    result = np.concatenate([block for _, block in results])
    if not hasattr(features, "blocks"):
        return result
    return np.asarray(result[np.argsort(np.concatenate([places for places, _ in results]))])


def is_dataset(features: Any) -> bool:
    """Whether features are a `tf.data.Dataset` (without importing TensorFlow)."""
    return hasattr(features, "element_spec")


class DatasetFeatures:
    """The features `[N, ...]` of a `tf.data.Dataset`, which every pass reads again.

    Args:
        dataset: elements (features, index), or batches of them. `index` is the instance's position,
            0 to N - 1. Resumed fits have the same bytes if the dataset's order is always the same.
        subject: their name in errors.

    Raises:
        DataError: other elements, or other positions.
    """

    def __init__(self, dataset: Any, subject: str = "features") -> None:
        import tensorflow as tf

        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2 and hasattr(spec[1], "dtype")
        if not pair or not spec[1].dtype.is_integer or spec[1].shape.rank not in (0, 1):
            raise DataError(
                f"{subject}: expected a tf.data.Dataset of (features, index), received elements"
                f" {spec}. dataset.enumerate().map(lambda index, x: (x, index)) adds the index."
            )
        dataset = dataset.unbatch() if spec[1].shape.rank else dataset
        self.dataset = dataset.map(lambda x, i: (tf.cast(x, tf.float32), tf.cast(i, tf.int32)))
        shape = self.dataset.element_spec[0].shape
        if not shape.rank or not shape.is_fully_defined():
            raise DataError(f"{subject}: expected one shape of all instances, received {shape}")
        places = [int(i) for i in self.dataset.map(lambda _, i: i).as_numpy_iterator()]
        if sorted(places) != list(range(len(places))):
            raise DataError(f"{subject}: expected each index from 0 to {len(places) - 1} once")
        self.shape = (len(places), *shape.as_list())
        self.ndim, self.subject = len(self.shape), subject

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: NDArray[np.int64]) -> DatasetFeatures:
        """Returns the instances at these positions, which become 0 to n - 1."""
        import tensorflow as tf

        places = np.full(len(self), -1, np.int32)
        places[rows] = np.arange(len(rows))
        some = copy.copy(self)
        some.dataset = self.dataset.map(lambda x, i: (x, tf.gather(places, i))).filter(
            lambda _, i: i >= 0
        )
        some.shape = (len(rows), *self.shape[1:])
        return some

    def blocks(self, rows: int = ROWS) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
        """Yields positions `[n]` and features `[n, ...]` of at most `rows` instances at a time."""
        for block, places in self.dataset.batch(rows).as_numpy_iterator():
            if not np.isfinite(block).all():
                raise DataError(f"{self.subject}: expected finite numbers")
            yield places, block

    def batches(self, size: int, seed: int) -> tuple[Callable[[int], Any], int]:
        """Returns a maker of the pipeline from a step on, and the steps of an epoch.

        An element is the step's number, features `[B, ...]` and positions `[B]`.
        """
        dataset = self.dataset.shuffle(min(len(self), SHUFFLED), seed=seed).batch(size).repeat()

        def make(first_step: int) -> Any:
            steps = dataset.enumerate().skip(first_step)
            return steps.map(lambda step, pair: (step, *pair)).prefetch(2)

        return make, -(-len(self) // size)

    def digest(self) -> str:
        """Returns the SHA-256 of positions and features."""
        digests = [array_digest(array) for block in self.blocks() for array in block]
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()
