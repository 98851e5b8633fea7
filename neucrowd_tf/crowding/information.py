"""The information loss: how much a generated annotation tells of what the classifier said (eq.
3)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from neucrowd_tf.crowding.classifier import entropy


def latent_log_likelihood(latent: Any, log_q: Any) -> Any:
    """Returns the expectation of log Q(z | y) over z drawn from the classifier's output, `[..., C]
    -> [...]`.

    Args:
        latent: `[..., C]` probabilities, z-hat.
        log_q: `[..., C]` the auxiliary network's log probabilities.
    """
    # The expectation over z is a sum of C terms, so it is taken exactly rather than by drawing z.
    return tf.reduce_sum(latent * log_q, axis=-1)


def information_loss(latent: Any, log_q: Any) -> Any:
    """Returns L_I, the lower bound on the information between the classifier's output and generated
    annotations, in nats.

    Args:
        latent: `[P, C]` z-hat of each generated annotation's instance.
        log_q: `[P, C]`.

    Returns:
        a scalar: the mean of log Q(z | y), plus H(z), which is the entropy of the mean of z-hat and
            a constant while the
        classifier is fixed.

    References:
        CrowdInG, eq. 3.
    """
    return tf.reduce_mean(latent_log_likelihood(latent, log_q)) + entropy(
        tf.reduce_mean(latent, axis=0)
    )
