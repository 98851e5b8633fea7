"""Batches with equally many instances of each class, as indices: for losses that are computed on a
whole batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.errors import DataError
from neucrowd_tf.training.tuplets import prefetch, step_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


def class_batches(seed: int, labels: NDArray[np.integer[Any]], batch: int) -> Any:
    """Returns `make(first_step)`, a pipeline of `[batch // C, C]` int32 instance positions,
    functions of (seed, step) alone.

    Each column holds instances of one of the C classes that occur, without repeats unless the class
    has fewer than that many: those go round again. A batch is a pseudo-random permutation of each
    class, cut off, which costs no more for many instances than for few.

    Args:
        seed: draws the batches.
        labels: `[N]` class codes.
        batch: how many instances a batch has, rounded down to equal parts; at least two of each
            class.

    Raises:
        DataError: fewer than two classes occur.
    """
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(f"expected labels of at least two classes, received {len(classes)}")
    members = [tf.constant(np.flatnonzero(labels == c).astype(np.int32)) for c in classes]
    share = max(2, batch // len(classes))

    @tf.autograph.experimental.do_not_convert
    def draw(step: tf.Tensor) -> tf.Tensor:
        columns = []
        for column, rows in enumerate(members):
            size = int(rows.shape[0])
            place = tf.range(share, dtype=tf.int32) % size
            if size > 1:
                own = tf.stack([tf.constant(seed * len(members) + column, tf.int64), step])
                place = tf.random.experimental.index_shuffle(place, seed=own, max_index=size - 1)
            columns.append(tf.gather(rows, place))
        return tf.stack(columns, axis=1)

    def make(first_step: int) -> tf.data.Dataset:
        steps = step_numbers(first_step)
        return prefetch(steps.map(draw, num_parallel_calls=1, deterministic=True))

    return make
