"""Features that are not held in memory: a `tf.data.Dataset`, read again in every pass."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats32, Indices, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.training.features import ROWS

SHUFFLED = 4096  # instances among which a batch is drawn


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
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2 and hasattr(spec[1], "dtype")
        if not pair or not spec[1].dtype.is_integer or spec[1].shape.rank not in (0, 1):
            raise DataError(
                f"{subject}: expected a tf.data.Dataset of (features, index), received elements"
                f" {spec}. dataset.enumerate().map(lambda index, x: (x, index)) adds the index."
            )
        if spec[1].shape.rank:
            dataset = dataset.unbatch()
        self.dataset = dataset.map(lambda x, i: (tf.cast(x, tf.float32), tf.cast(i, tf.int32)))
        shape = self.dataset.element_spec[0].shape
        if not shape.rank or not shape.is_fully_defined():
            raise DataError(f"{subject}: expected one shape of all instances, received {shape}")
        places = list(map(int, self.dataset.map(lambda _, i: i).as_numpy_iterator()))
        if sorted(places) != list(range(len(places))):
            raise DataError(f"{subject}: expected each index from 0 to {len(places) - 1} once")
        self.shape = (len(places), *shape.as_list())
        self.ndim = len(self.shape)
        self.subject = subject

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Indices) -> DatasetFeatures:
        """Returns the instances at these positions, which become 0 to n - 1."""
        places = np.full(len(self), -1, np.int32)
        places[rows] = np.arange(len(rows))
        some = copy.copy(self)
        some.dataset = self.dataset.map(lambda x, i: (x, tf.gather(places, i))).filter(
            lambda _, i: i >= 0
        )
        some.shape = (len(rows), *self.shape[1:])
        return some

    def blocks(self, rows: int = ROWS) -> Iterator[tuple[Array, Floats32]]:
        """Yields positions `[n]` and features `[n, ...]` of at most `rows` instances at a time."""
        for block, places in self.dataset.batch(rows).as_numpy_iterator():
            if not np.isfinite(block).all():
                raise DataError(f"{self.subject}: expected finite numbers")
            yield places, block

    def batches(self, size: int, seed: int) -> tuple[Callable[[int], Tensor], int]:
        """Returns a maker of the pipeline from a step on, and the steps of an epoch.

        An element is the step's number, features `[B, ...]` and positions `[B]`.
        """
        dataset = self.dataset.shuffle(min(len(self), SHUFFLED), seed=seed).batch(size).repeat()

        def make(first_step: int) -> Tensor:
            steps = dataset.enumerate().skip(first_step)
            return steps.map(lambda step, pair: (step, *pair)).prefetch(2)

        return make, -(-len(self) // size)

    def digest(self) -> str:
        """Returns the SHA-256 of positions and features."""
        digests = list(map(array_digest, itertools.chain.from_iterable(self.blocks())))
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()
