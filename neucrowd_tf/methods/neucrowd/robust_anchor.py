"""The robust anchor (NeuCrowd, definition 4): one for a batch, by the examples' assurance."""

from __future__ import annotations

import tensorflow as tf

from neucrowd_tf.declare.types import Tensor


def robust_anchors(
    members: Tensor, assurance: Tensor, classes: Tensor, num_classes: int, *, reduction: str
) -> Tensor:
    """Returns a batch's robust anchor for each positive class, `[num_classes, h]`.

    Under `tf.distribute` the batch is that of all replicas together.

    Args:
        members: `[batch, h]` the selected anchors: their embeddings, or, as definition 4 says, the
            examples themselves.
        assurance: `[batch]` label assurance of the anchors.
        classes: `[batch]` the index of each tuplet's positive class, from 0 to `num_classes - 1`.
        num_classes: how many classes are positive in turn.
        reduction: "mean" or "sum", weighted by assurance.

    References:
        NeuCrowd, definition 4 and section 3.3.2.
    """
    # Deviation: NeuCrowd definition 4. Paper: An example e_r*, the sum of assurance times anchor
    # examples, which the network then embeds. Here: The assurance-weighted mean of embeddings.
    # `anchor="sum"` is the paper's example, embedded; `anchor="embedding_sum"` sums embeddings.
    # Why: The released code averages embeddings. Effect: claims neucrowd_sum_examples and
    # neucrowd_sum_embeddings.
    strength = tf.cast(assurance, members.dtype)
    if reduction == "mean":
        strength += 1e-6  # a batch of ties alone still has a centre: the plain mean
    share = tf.one_hot(classes, num_classes, dtype=members.dtype) * strength[:, None]
    total = tf.matmul(share, members, transpose_a=True)
    weight = tf.reduce_sum(share, axis=0)
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        total, weight = context.all_reduce(tf.distribute.ReduceOp.SUM, [total, weight])
    if reduction == "sum":
        return total
    return total / tf.maximum(weight, 1e-12)[:, None]
