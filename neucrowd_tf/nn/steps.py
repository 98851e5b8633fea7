"""Steps of an optimizer, and what the replicas of a strategy do in one."""

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

    Gradients are those of `optimizer.scale_loss(loss)`. Replicas' gradients are summed before they
    are clipped, as those of one device are.

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
    count = replicas()  # AutoGraph, which converts users' steps, knows no ":="
    if count > 1 and clips(optimizer):
        pairs = [pair for pair in zip(gradients, variables, strict=True) if pair[0] is not None]
        gradients = clipped(optimizer, [summed(gradient) for gradient, _ in pairs])
        gradients = [gradient / count for gradient in gradients]  # Keras adds them up once more
        variables = [variable for _, variable in pairs]
    scaling = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)  # it wants a replica
    if replica is None or tf.distribute.has_strategy() or scaling:
        optimizer.apply(gradients, variables)
    else:
        replica.merge_call(lambda _: optimizer.apply(gradients, variables))


def clips(optimizer: keras.optimizers.Optimizer) -> bool:
    """Returns whether an optimizer clips gradients."""
    return bool(optimizer.clipnorm or optimizer.clipvalue or optimizer.global_clipnorm)


def _place() -> int:
    """Returns this replica's number among all."""
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))


def replicas() -> int:
    """Returns how many replicas share a step; 1 without a strategy."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return 1
    return int(context.num_replicas_in_sync)


def share_of(data: Tensor) -> Tensor:
    """Returns this replica's part of a batch, consecutive rows of it; numbers stay whole.

    A batch holds indices or random numbers, so that every process can make all of it and take its
    part, and parts do not depend on how a pipeline would be cut. A part may have no rows.
    """
    count = replicas()
    if count == 1:
        return data
    place = _place()

    def share(rows: Tensor) -> Tensor:
        if not rows.shape.rank:
            return rows
        if rows.shape[0] is None:
            size = tf.shape(rows)[0]
        else:
            size = rows.shape[0]
        return rows[size * place // count : size * (place + 1) // count]

    return tf.nest.map_structure(share, data)


def summed(value: Tensor) -> Tensor:
    """Returns the sum of a value over the replicas."""
    if replicas() == 1:
        return value
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def agreed(strategy: Strategy, values: Mapping[str, float]) -> dict[str, float]:
    """Returns the first worker's values on all workers, which have to call this together.

    What is decided by the values is then decided alike, also on processors that round differently.
    """
    names = sorted(values)
    local = tf.constant([values[name] for name in names], dtype=tf.float64)
    return dict(zip(names, _of_first(strategy)(local).numpy().tolist(), strict=True))


@functools.cache
def _of_first(strategy: Strategy) -> Callable[[Tensor], Tensor]:
    def reduced(local: Tensor) -> Tensor:
        context = tf.distribute.get_replica_context()
        # A function's argument is on no device, which reducing asks for.
        if _place() == 0:
            value = tf.identity(local)
        else:
            value = tf.zeros_like(local)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value)

    @tf.function(autograph=False, reduce_retracing=True)
    def first(local: Tensor) -> Tensor:
        return strategy.experimental_local_results(strategy.run(reduced, args=(local,)))[0]

    return first  # type: ignore[no-any-return]


def gradients(tape: tf.GradientTape, loss: Tensor, variables: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradients of Keras variables, zeros for a variable that the loss does not touch.

    TensorFlow makes these zeros from its own variables only; from Keras' it raises an
    AttributeError.
    """
    sources = [variable.value for variable in variables]
    return list(tape.gradient(loss, sources, unconnected_gradients="zero"))
