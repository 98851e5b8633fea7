"""The steps of a model as one compiled call: on one device, or on every replica of the strategy
that it was made under, on one machine or several.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

Logs = Mapping[str, Any]


def _place() -> int:
    """Returns this replica's number among all."""
    context = tf.distribute.get_replica_context()
    return int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))


def share_of(data: Any) -> Any:
    """Returns this replica's part of a batch, consecutive rows of it; numbers stay whole.

    A batch holds indices or random numbers, so that every process can make all of it and take its
    part, and parts do not depend on how a pipeline would be cut.
    """
    count, place = tf.distribute.get_replica_context().num_replicas_in_sync, _place()

    def part(rows: Any) -> Any:
        if not rows.shape.rank:
            return rows
        size = rows.shape[0]
        return rows[size * place // count : size * (place + 1) // count]

    return tf.nest.map_structure(part, data)


def compiled_steps(
    model: keras.Model, strategy: Any = None
) -> Callable[[Iterator[Any], int], dict[str, float]]:
    """Returns `run(iterator, count)`, which takes as many training steps as `count` says and gives
    the logs after the last of them; it is compiled once for as long as the model's compilation
    lasts.
    """
    made = getattr(model, "_compiled_steps", None)
    # `compile` forgets the function of Keras' own loop, whose place this one takes.
    if made is not None and made is model.train_function:
        return made  # type: ignore[no-any-return]
    model.train_function = _one_device(model) if strategy is None else _replicas(model, strategy)
    model._compiled_steps = model.train_function
    return model._compiled_steps  # type: ignore[no-any-return]


def _one_device(model: keras.Model) -> Callable[[Iterator[Any], int], dict[str, float]]:
    if model.run_eagerly:  # its parts are compiled

        def eagerly(iterator: Iterator[Any], count: int) -> dict[str, float]:
            for _ in range(count):
                logs = model.train_step(next(iterator))
            return _numbers(logs)

        return eagerly

    # AutoGraph would convert all that a step calls, which takes longer than tracing it.
    step = tf.function(
        model.train_step, autograph=False, reduce_retracing=True, jit_compile=model.jit_compile
    )

    @tf.function(autograph=False, reduce_retracing=True)
    def several(iterator: Any, count: Any) -> Any:
        # Called at one place, as TensorFlow optimises the step's graph once for each.
        made = step.get_concrete_function(iterator.element_spec)
        start = tf.nest.map_structure(
            lambda value: tf.zeros(value.shape, value.dtype), made.structured_outputs
        )
        return tf.while_loop(
            lambda number, _: number < count,
            lambda number, _: (number + 1, made(next(iterator))),
            (tf.constant(0), start),
            parallel_iterations=1,
        )[1]

    def run(iterator: Iterator[Any], count: int) -> dict[str, float]:
        if model.steps_per_execution == 1:  # a loop would be traced for nothing
            return _numbers(step(next(iterator)))
        return _numbers(several(iterator, tf.constant(count)))

    return run


def _replicas(
    model: keras.Model, strategy: Any
) -> Callable[[Iterator[Any], int], dict[str, float]]:
    # A loop inside the function would hold collective operations, which TensorFlow cannot run.
    @tf.function(autograph=False, reduce_retracing=True)
    def step(data: Any) -> Any:
        return strategy.run(lambda whole: model.train_step(share_of(whole)), args=(data,))

    def run(iterator: Iterator[Any], count: int) -> dict[str, float]:
        logs = {}
        for _ in range(count):
            logs = step(next(iterator))
        means = {
            name: strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
            for name, value in sorted(logs.items())
        }
        return _numbers(means)

    return run


def _numbers(logs: Logs) -> dict[str, float]:
    return {name: float(value) for name, value in logs.items()}


def agreed(strategy: Any, values: Mapping[str, float]) -> dict[str, float]:
    """Returns the first worker's values on all of them, which have to call this together: what is
    decided by them is decided alike, also on processors that round otherwise.
    """
    names = sorted(values)
    own = tf.constant([values[name] for name in names], dtype=tf.float64)
    return dict(zip(names, _of_first(strategy)(own).numpy().tolist(), strict=True))


@functools.cache
def _of_first(strategy: Any) -> Callable[[Any], Any]:
    def mine(own: Any) -> Any:
        context = tf.distribute.get_replica_context()
        # A function's argument is on no device, which reducing asks for.
        kept = tf.identity(own) if _place() == 0 else tf.zeros_like(own)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, kept)

    @tf.function(autograph=False, reduce_retracing=True)
    def found(own: Any) -> Any:
        return strategy.experimental_local_results(strategy.run(mine, args=(own,)))[0]

    return found  # type: ignore[no-any-return]
