"""Training steps as compiled functions, on one device and on the replicas of a strategy."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import NamedValues, Strategy, Tensor
from neucrowd_tf.nn.keras_private import clear_kernels

Steps = Callable[[Iterator[Tensor], Tensor], NamedValues]

_EACH = 4
_networks = itertools.count(1)


def free_earlier() -> None:
    """Frees what networks left that nothing refers to any more, as a new one is made.

    TensorFlow keeps a kernel of 36 kB for each variable's name and each function's, for as long as
    the process lives; those in use are rebuilt. The networks themselves are circles of
    references of 2 to 10 MB, which wait for Python's collector. It counts objects, of which
    TensorFlow has so many that it comes once in ten or twenty networks: so after each fourth one.
    """
    number = next(_networks)
    if number > 1 and number % _EACH == 1:
        gc.collect()
    clear_kernels()


def compiled_steps(model: keras.Model, strategy: Strategy = None) -> Steps:
    """Returns `take(iterator, count)`, which makes `count` training steps.

    It returns the last step's logs, and is compiled once for as long as the model's compilation
    lasts.
    """
    steps: Steps | None = getattr(model, "_compiled_steps", None)
    # `compile` forgets the function of Keras' own loop, whose place this one takes.
    if steps is None or steps is not model.train_function:
        if strategy is None:
            steps = _one_device(model)
        else:
            steps = _replicas(model, strategy)
        model.train_function = model._compiled_steps = steps
    return steps


def _one_device(model: keras.Model) -> Steps:
    if model.run_eagerly:  # its parts are compiled

        def eagerly(iterator: Iterator[Any], count: Tensor) -> NamedValues:
            for _ in range(int(count)):
                logs = model.train_step(next(iterator))
            return logs

        return eagerly

    # AutoGraph would convert all that a step calls, which takes longer than tracing it.
    step = tf.function(
        model.train_step, autograph=False, reduce_retracing=True, jit_compile=model.jit_compile
    )
    if model.steps_per_execution == 1:  # a loop would be traced for nothing
        return lambda iterator, _: step(next(iterator))

    @tf.function(autograph=False, reduce_retracing=True)
    def several(iterator: Any, count: Tensor) -> Tensor:
        # Called at one place, as TensorFlow optimises the step's graph once for each.
        traced = step.get_concrete_function(iterator.element_spec)
        start = tf.nest.map_structure(
            lambda value: tf.zeros(value.shape, value.dtype), traced.structured_outputs
        )
        return tf.while_loop(
            lambda number, _: number < count,
            lambda number, _: (number + 1, traced(next(iterator))),
            (tf.constant(0), start),
            parallel_iterations=1,
        )[1]

    return several


def _replicas(model: keras.Model, strategy: Strategy) -> Steps:
    # A loop inside the function would hold collective operations, which TensorFlow cannot run.
    @tf.function(autograph=False, reduce_retracing=True)
    def step(data: Tensor) -> Tensor:
        return strategy.run(model.train_step, args=(data,))

    def several(iterator: Iterator[Any], count: Tensor) -> NamedValues:
        logs = {}
        for _ in range(int(count)):
            logs = step(next(iterator))
        return {
            name: strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
            for name, value in sorted(logs.items())
        }

    return several
