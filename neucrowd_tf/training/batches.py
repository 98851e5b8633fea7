"""Pipelines of batches that are functions of (seed, step) alone."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from neucrowd_tf.declare.types import Tensor


def uniform_batches(seed: int, batch: int, width: int) -> Tensor:
    """Returns `make(first_step)`, a pipeline of `[batch, width]` uniform numbers.

    They are functions of (seed, step) alone.
    """

    def draw(step: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform(
            [batch, width], seed=tf.stack([tf.constant(seed, tf.int64), step]), dtype=tf.float64
        )

    return pipelines(draw)


def pipelines(draw: Callable[[tf.Tensor], tf.Tensor]) -> Callable[[int], tf.data.Dataset]:
    """Returns `make(first_step)`, a pipeline of what `draw` gives for each step from there on."""
    plain = tf.autograph.experimental.do_not_convert(draw)

    def make(first_step: int) -> tf.data.Dataset:
        steps = step_numbers(first_step)
        return steps.map(plain, num_parallel_calls=1, deterministic=True).prefetch(tf.data.AUTOTUNE)

    return make


def step_numbers(first: int, by: int = 1) -> tf.data.Dataset:
    """Returns the numbers `first`, `first + by`, ... without an end.

    `tf.data.Dataset.counter` gives them too, but it leaves the graph of its addition in the global
    graph with each call, for as long as the process lives. There is nothing to tune in it, and a
    pipeline's tuner makes tearing down its iterator wait up to .6 s.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.range(first, tf.int64.max, by).with_options(options)
