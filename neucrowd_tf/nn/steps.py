"""A step of an optimizer that leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


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
