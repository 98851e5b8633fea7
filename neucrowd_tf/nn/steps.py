"""Steps of training that leave nothing behind: their numbers as a pipeline, and a step of an
optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

MOST_STEPS = 1 << 62


def take_step(
    optimizer: keras.optimizers.Optimizer, gradients: Sequence[Any], variables: Sequence[Any]
) -> None:
    """Does what `optimizer.apply` does, without what it leaves in memory.

    Keras sums gradients over replicas also where there is one, by a custom gradient. TensorFlow
    keeps those for as long as the process lives, and with each the graph of the step that it is in,
    and the network's variables. Without a strategy there is nothing to sum: in the cross-replica
    context Keras leaves it out.

    Args:
        optimizer: a built one.
        gradients: one for each variable.
        variables: what is changed.
    """
    replica = tf.distribute.get_replica_context()
    if replica is None or tf.distribute.has_strategy():
        optimizer.apply(gradients, variables)
    else:
        replica.merge_call(lambda _: optimizer.apply(gradients, variables))


def steps_from(first: int, each: int = 1) -> tf.data.Dataset:
    """Returns the numbers of the steps from `first` on, or of each so many-th, without end, int64.

    `Dataset.counter` gives the same ones, and leaves a function in TensorFlow's default graph each
    time.
    """
    return tf.data.Dataset.range(first, MOST_STEPS, each).repeat()
