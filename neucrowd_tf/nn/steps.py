"""Steps of an optimizer, and how the replicas of a strategy share a step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Strategy, Tensor
from neucrowd_tf.nn.keras_private import clipped


def take_step(
    optimizer: keras.optimizers.Optimizer, gradients: Sequence[Tensor], variables: Sequence[Tensor]
) -> None:
    """Does the same as `optimizer.apply`, but leaves nothing in memory.

    The replicas' gradients are summed before they are clipped, so that they are clipped as on one
    device.

    Keras sums gradients over replicas by a custom gradient, even if there is only one replica.
    TensorFlow keeps a custom gradient until the process ends, with the graph of its step and the
    network's variables. Without a strategy there is nothing to sum, and Keras leaves the sum out in
    the cross-replica context.

    Args:
        optimizer: a built one.
        gradients: of `optimizer.scale_loss(loss)`, one for each variable, or None.
        variables: what is changed.
    """
    count = replicas()  # AutoGraph, which converts users' steps, does not support ":="
    if count > 1 and clips(optimizer):
        sums = []
        changed = []
        for gradient, variable in zip(gradients, variables, strict=True):
            if gradient is not None:
                sums.append(summed(gradient))
                changed.append(variable)
        gradients = [total / count for total in clipped(optimizer, sums)]  # Keras sums them again
        variables = changed
    replica = tf.distribute.get_replica_context()
    scaling = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)  # needs a replica context
    if replica is None or tf.distribute.has_strategy() or scaling:
        optimizer.apply(gradients, variables)
    else:
        replica.merge_call(lambda _: optimizer.apply(gradients, variables))


def clips(optimizer: keras.optimizers.Optimizer) -> bool:
    """Returns whether an optimizer clips gradients."""
    return bool(optimizer.clipnorm or optimizer.clipvalue or optimizer.global_clipnorm)


def _replica_index() -> int:
    """Returns this replica's number, from 0."""
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))


def replicas() -> int:
    """Returns how many replicas share a step; 1 without a strategy."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return 1
    return int(context.num_replicas_in_sync)


def share_of(data: Tensor) -> Tensor:
    """Returns this replica's consecutive rows of each tensor of a batch; scalars stay as they are.

    A batch holds indices or random numbers. Every process therefore makes the whole batch and takes
    its part, and parts do not depend on how a pipeline would be cut. A part may have no rows.

    Args:
        data: a tensor `[batch, ...]`, or a nest of such tensors.
    """
    count = replicas()
    if count == 1:
        return data
    index = _replica_index()

    def share(rows: Tensor) -> Tensor:
        if not rows.shape.rank:
            return rows
        size = keras.ops.shape(rows)[0]
        return rows[size * index // count : size * (index + 1) // count]

    return tf.nest.map_structure(share, data)


def summed(value: Tensor) -> Tensor:
    """Returns the sum of a value over the replicas."""
    if replicas() == 1:
        return value
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def agreed(strategy: Strategy, values: Mapping[str, float]) -> dict[str, float]:
    """Returns the first worker's values on all workers, which have to call this together.

    All workers then decide alike by these values, even if their processors round differently.
    """
    names = sorted(values)
    local = tf.constant([values[name] for name in names], dtype=tf.float64)
    return dict(zip(names, _of_first(strategy)(local).numpy().tolist(), strict=True))


@functools.cache
def _of_first(strategy: Strategy) -> Callable[[Tensor], Tensor]:
    def reduced(local: Tensor) -> Tensor:
        context = tf.distribute.get_replica_context()
        # An argument of a function has no device, which `all_reduce` needs; these tensors have one.
        value = tf.zeros_like(local)
        if _replica_index() == 0:
            value = tf.identity(local)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value)

    @tf.function(autograph=False, reduce_retracing=True)
    def first(local: Tensor) -> Tensor:
        return strategy.experimental_local_results(strategy.run(reduced, args=(local,)))[0]

    return first  # type: ignore[no-any-return]


def gradients(tape: tf.GradientTape, loss: Tensor, variables: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradients of Keras variables; zeros if the loss does not depend on a variable.

    TensorFlow makes such zeros for its own variables only; for Keras' it raises AttributeError.
    """
    sources = [variable.value for variable in variables]
    return tape.gradient(loss, sources, unconnected_gradients="zero")
