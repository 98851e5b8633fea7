"""Augmentation of image batches inside the training step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def crop_and_flip(images: Any, seed: Any, padding: int = 4) -> Any:
    """Returns images that are shifted and half of the time mirrored, each in its own way.

    Shifts are up to `padding` pixels; edges are reflected.

    Args:
        images: `[B, height, width, channels]`.
        seed: `[2]` int32; the result is a function of it.
        padding: the largest shift, in pixels.
    """
    shape = tf.shape(images)
    batch, height, width = shape[0], shape[1], shape[2]
    padded = tf.pad(
        images, [[0, 0], [padding, padding], [padding, padding], [0, 0]], mode="REFLECT"
    )
    offsets = tf.random.stateless_uniform(
        [batch, 2], seed=seed, maxval=2 * padding + 1, dtype=tf.int32
    )
    mirrored = tf.random.stateless_uniform([batch, 1], seed=seed + tf.constant([0x51, 0])) < 0.5
    columns = tf.range(width)[None]
    columns = offsets[:, 1:] + tf.where(mirrored, width - 1 - columns, columns)
    rows = offsets[:, :1] + tf.range(height)[None]
    result = tf.gather(tf.gather(padded, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    return tf.ensure_shape(result, images.shape)
