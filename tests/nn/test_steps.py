"""A step changes what Keras' own does, to the same numbers, and leaves no graph in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.random import default_rng

from neucrowd_tf.nn.steps import take_step

X = default_rng(0).normal(size=(16, 4)).astype(np.float32)


def trained(apply: Callable[[Any, Sequence[Any], Sequence[Any]], Any]) -> list[np.ndarray]:
    """Returns the weights after three steps in a traced function named `a_step`."""
    initializer = keras.initializers.GlorotUniform(seed=1)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, kernel_initializer=initializer)]
    )
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)

    @tf.function
    def a_step(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(rows, training=True) ** 2)
        variables = model.trainable_variables
        apply(optimizer, tape.gradient(loss, variables), variables)
        return loss

    for _ in range(3):
        a_step(tf.constant(X))
    return [np.array(value) for value in (*model.get_weights(), optimizer.iterations)]


def graphs() -> int:
    gc.collect()
    remaining = (item for item in gc.get_objects() if type(item).__name__ == "FuncGraph")
    return sum(graph.name == "a_step" for graph in remaining)


def test_a_step_is_keras_own_and_leaves_nothing() -> None:
    ours = trained(take_step)
    assert graphs() == 0
    theirs = trained(lambda optimizer, *passed: optimizer.apply(*passed))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_step_under_a_strategy() -> None:
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        variable = tf.Variable(1.0)
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build([variable])
    strategy.run(lambda: take_step(optimizer, [tf.constant(1.0)], [variable]))
    assert float(variable) == 0.5
