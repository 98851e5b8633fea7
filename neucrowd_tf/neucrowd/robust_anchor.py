"""The robust anchor (NeuCrowd, definition 4): one for a batch, by the examples' assurance."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def robust_anchor(
    anchors: Any, assurance: Any, classes: Any, num_classes: int, *, reduction: str = "mean"
) -> Any:
    """Replaces each tuplet's anchor by its batch's robust anchor.

    With more than one positive class in the batch there is one robust anchor for each of them.
    Under `tf.distribute` the batch is that of all replicas together.

    Args:
        anchors: `[batch, h]` embeddings of the selected anchors.
        assurance: `[batch]` label assurance of the anchors.
        classes: `[batch]` the index of each tuplet's positive class, from 0 to `num_classes - 1`.
        num_classes: how many classes are positive in turn.
        reduction: "mean" (assurance-weighted mean), "sum" (definition 4 as published) or "scaled"
            (the sum over the number of tuplets, as in the released code).

    Returns:
        `[batch, h]`: for each tuplet the robust anchor of its class.

    References:
        NeuCrowd, definition 4 and section 3.3.2.
    """
    # Deviation: the sum grows with the batch and leaves the space that the other embeddings live
    # in; the weighted mean does not.
    strength = tf.cast(assurance, anchors.dtype)
    if reduction == "mean":
        strength += 1e-6  # a batch of ties alone still has a centre: the plain mean
    member = tf.one_hot(classes, num_classes, dtype=anchors.dtype) * strength[:, None]
    total, weight = tf.matmul(member, anchors, transpose_a=True), tf.reduce_sum(member, axis=0)
    if reduction == "scaled":
        weight = tf.reduce_sum(tf.one_hot(classes, num_classes, dtype=anchors.dtype), axis=0)
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        total, weight = context.all_reduce(tf.distribute.ReduceOp.SUM, [total, weight])
    if reduction != "sum":
        total = total / tf.maximum(weight, 1e-12)[:, None]
    return tf.gather(total, classes)
