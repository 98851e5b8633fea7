"""The classifier's side of the generative module: how sure it is of each instance, and which
instances update whom.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def entropy(probabilities: Any) -> Any:
    """Returns the Shannon entropy of distributions in nats, `[..., C] -> [...]`; 0 log 0 counts as
    0.
    """
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)


def split_by_entropy(entropies: Any, threshold: float) -> tuple[Any, Any]:
    """Returns the instances that update the generator, and the rest, which update the classifier.

    Where the classifier is sure it is more often right, so these instances show the generator what
    annotators make of a class; the updated generator then teaches the classifier on the instances
    of which it is not sure.

    Args:
        entropies: `[N]` of the classifier's predictions.
        threshold: t, the share of the instances, those with the lowest entropy, that go to the
            generator.

    Returns:
        two vectors of instance codes, `round(t N)` and the others, each by increasing entropy; of
        two instances or more, each gets one at least.

    References:
        CrowdInG, section 3.3.3.
    """
    order = tf.argsort(entropies, stable=True)
    # Deviation: t is a share rather than a value of the entropy, so that it means the same whatever
    # the number of classes.
    size = tf.cast(tf.round(threshold * tf.cast(tf.size(order), tf.float32)), tf.int32)
    size = tf.clip_by_value(size, 1, tf.maximum(tf.size(order) - 1, 1))
    return order[:size], order[size:]
