"""Mixup inside a compiled step: every draw is a function of the fit's seed and the step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def mixing_draws(seed: Any, size: Any, alpha: float) -> tuple[Any, Any]:
    """Returns a coefficient and a partner `[size]` for each example.

    The coefficients are Beta(alpha, alpha) shares, the partners a permutation.

    Args:
        seed: `[2]` int32, of the step.
        size: how many.
        alpha: above 0.

    References:
        Zhang et al. (2018), mixup: beyond empirical risk minimization, section 2.
    """
    seeds = tf.random.split(tf.cast(seed, tf.int32), 3)
    # Beta as a share of two Gamma draws.
    first, second = (
        tf.random.stateless_gamma([size], key, alpha=alpha) for key in (seeds[0], seeds[1])
    )
    shares = first / tf.maximum(first + second, 1e-30)
    partners = tf.argsort(tf.random.stateless_uniform([size], seeds[2]), stable=True)
    return shares, partners


def mixed(values: Any, shares: Any, partners: Any) -> Any:
    """Returns `share * value + (1 - share) * its partner`, over the first axis."""
    values = tf.cast(values, tf.float32)
    column = tf.reshape(shares, [-1] + [1] * (len(values.shape) - 1))
    return column * values + (1.0 - column) * tf.gather(values, partners)
