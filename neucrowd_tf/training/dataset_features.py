"""Features that are not held in memory: a `tf.data.Dataset`, read again in every pass."""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats32, Indices, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.training.batches import step_numbers
from neucrowd_tf.training.features import ROWS, ArrayFeatures, LazyFeatures

SHUFFLED = 4096  # instances among which a batch is drawn
_BYTES_AT_ONCE = 1 << 24  # of instances that come one by one


class DatasetFeatures(LazyFeatures):
    """The features `[N, ...]` of a `tf.data.Dataset`, which every pass reads again, by batches.

    Args:
        dataset: batches (features, index), or single elements. `index` is the instance's position,
            0 to N - 1. Resumed fits have the same bytes if the dataset's order is always the same.
        subject: their name in errors.

    Raises:
        DataError: other elements, other positions, or no end.
    """

    def __init__(self, dataset: Any, subject: str = "features") -> None:
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2 and hasattr(spec[1], "dtype")
        if not pair or not spec[1].dtype.is_integer or spec[1].shape.rank not in (0, 1):
            raise DataError(
                f"{subject}: expected a tf.data.Dataset of (features, index), received elements"
                f" {spec}. dataset.enumerate().map(lambda index, x: (x, index)) adds the index."
            )
        shape = spec[0].shape[1:] if spec[1].shape.rank else spec[0].shape
        if not shape.rank or not shape.is_fully_defined():
            raise DataError(f"{subject}: expected one shape of all instances, received {shape}")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise DataError(f"{subject}: the dataset has no end. Leave out dataset.repeat().")
        dtype = spec[0].dtype
        if np.can_cast(dtype.as_numpy_dtype, np.float32):  # others stay exact until `as_single`
            dtype = tf.float32
        if not (dtype.is_floating or dtype.is_integer):
            raise DataError(f"{subject}: expected numbers, received dtype {dtype.name}")
        if not spec[1].shape.rank:
            dataset = dataset.batch(max(1, min(ROWS, _BYTES_AT_ONCE // (4 * math.prod(shape)))))
        self.dataset = dataset.map(lambda x, i: (tf.cast(x, dtype), tf.cast(i, tf.int32)))
        indices = self.dataset.map(lambda _, i: i).as_numpy_iterator()
        positions = np.concatenate([np.zeros(0, np.int32), *indices])
        if not np.array_equal(np.sort(positions), np.arange(len(positions))):
            raise DataError(f"{subject}: expected each index from 0 to {len(positions) - 1} once")
        self.shape = (len(positions), *shape.as_list())
        self.dtype = np.dtype(dtype.as_numpy_dtype)
        self.subject = subject

    def __getitem__(self, rows: Indices) -> DatasetFeatures:
        """Returns the instances at these positions, which become 0 to n - 1."""
        positions = np.full(len(self), -1, np.int32)
        positions[rows] = np.arange(len(rows))

        def chosen(features: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            new = tf.gather(positions, indices)
            return tf.boolean_mask(features, new >= 0), tf.boolean_mask(new, new >= 0)

        selected = copy.copy(self)
        selected.dataset = self.dataset.map(chosen).filter(lambda _, i: tf.size(i) > 0)
        selected.shape = (len(rows), *self.shape[1:])
        return selected

    def blocks(self, rows: int = ROWS) -> Iterator[tuple[Array, Floats32]]:
        for block, positions in self.dataset.rebatch(rows).as_numpy_iterator():
            if not np.isfinite(block).all():
                raise DataError(f"{self.subject}: expected finite numbers")
            yield positions, self._change(block)

    def changed_dataset(self) -> tf.data.Dataset:
        """Returns a dataset of the same elements, with the changes."""

        def changed(features: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            values = tf.numpy_function(self._change, [features], tf.float32)
            values.set_shape(features.shape)
            return values, indices

        return self.dataset.map(changed) if self._changes else self.dataset

    def batches(self, size: int) -> DatasetBatches:
        """Returns the pipelines of batches of this size."""
        return DatasetBatches(self, size)

    def in_file(self) -> ArrayFeatures:
        """Returns the features in a temporary file, for methods that take instances at random."""
        with tempfile.TemporaryFile() as file:
            array = np.memmap(file, np.float32, "w+", shape=self.shape)
        for positions, block in self.blocks():
            array[positions] = block
        return ArrayFeatures(array, self.subject)


class DatasetBatches:
    """Batches of a dataset, each drawn among `SHUFFLED` instances that stand together.

    An element is a step's seeds `[2]`, features `[B, ...]` and positions `[B]`.

    Attributes:
        steps: of an epoch.
    """

    def __init__(self, features: DatasetFeatures, size: int) -> None:
        self.steps = -(-len(features) // size)
        self._dataset = features.changed_dataset().rebatch(SHUFFLED).enumerate()
        self._size = size

    def make(self, first_step: int, seed: int) -> Tensor:
        """Returns the pipeline from a step on, a function of (seed, step) and of the dataset."""

        def epoch(number: Tensor) -> Tensor:
            def shuffled(index: Tensor, pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
                draw = tf.random.experimental.stateless_fold_in(tf.stack([seed, number]), index)
                order = tf.argsort(tf.random.stateless_uniform(tf.shape(pair[1]), draw))
                return tf.gather(pair[0], order), tf.gather(pair[1], order)

            return self._dataset.map(shuffled).rebatch(self._size)

        seed = seed % 2**31
        batches = step_numbers(first_step // self.steps).flat_map(epoch)
        steps = batches.skip(first_step % self.steps).enumerate(first_step)
        return steps.map(
            lambda step, pair: (tf.cast(tf.stack([seed, step % 2**31]), tf.int32), *pair)
        ).prefetch(2)
