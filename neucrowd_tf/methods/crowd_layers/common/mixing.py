"""What a compiled step changes of its batch; draws are functions of the fit's seed and the step."""

from __future__ import annotations

import tensorflow as tf

from neucrowd_tf.declare.types import Tensor

PADDING = 4  # the largest shift of an image, in pixels


def crop_and_flip(images: Tensor, seed: Tensor) -> Tensor:
    """Returns images that are shifted and half of the time mirrored, each in its own way.

    Shifts are up to `PADDING` pixels; edges are reflected.

    Args:
        images: `[B, height, width, channels]`.
        seed: `[2]` int32; the result is a function of it.
    """
    batch, height, width, _ = tf.unstack(tf.shape(images))
    edges = [PADDING, PADDING]
    padded = tf.pad(images, [[0, 0], edges, edges, [0, 0]], mode="REFLECT")
    offsets = tf.random.stateless_uniform(
        [batch, 2], seed=seed, maxval=2 * PADDING + 1, dtype=tf.int32
    )
    mirrored = tf.random.stateless_uniform([batch, 1], seed=seed + tf.constant([0x51, 0])) < 0.5
    columns = tf.range(width)[None]
    columns = offsets[:, 1:] + tf.where(mirrored, width - 1 - columns, columns)
    rows = offsets[:, :1] + tf.range(height)[None]
    result = tf.gather(tf.gather(padded, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    return tf.ensure_shape(result, images.shape)


def mixing_draws(seed: Tensor, size: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Returns a share and the position of a partner for each of some values, `[size]` each.

    The shares are drawn from Beta(alpha, alpha), the partners are a permutation.

    Args:
        seed: `[2]` int32, of the step.
        size: number of values.
        alpha: above 0.

    References:
        Zhang et al. (2018), mixup: beyond empirical risk minimization, section 2.
    """
    seeds = tf.random.split(tf.cast(seed, tf.int32), 3)
    # Beta as a share of two Gamma draws.
    first = tf.random.stateless_gamma([size], seeds[0], alpha=alpha)
    second = tf.random.stateless_gamma([size], seeds[1], alpha=alpha)
    shares = first / tf.maximum(first + second, 1e-30)
    partners = tf.argsort(tf.random.stateless_uniform([size], seeds[2]), stable=True)
    return shares, partners


def mixed(values: Tensor, shares: Tensor, partners: Tensor) -> Tensor:
    """Returns `share * value + (1 - share) * its partner`, over the first axis."""
    values = tf.cast(values, tf.float32)
    column = tf.reshape(shares, [-1] + [1] * (len(values.shape) - 1))
    return column * values + (1.0 - column) * tf.gather(values, partners)
