"""Miners: which pairs and triplets of a batch a metric-learning loss is computed on.

A miner looks at labels (and distances) and returns indices or masks; the losses in
`neucrowd_tf.nn.losses` consume them. No gradient flows through a choice.
"""

from __future__ import annotations

from keras import ops

from neucrowd_tf.declare.types import Tensor


def flat_labels(labels: Tensor) -> Tensor:
    """Returns labels as `[B]`, from `[B]` or `[B, 1]`.

    Compared as they are, labels `[B, 1]` would broadcast to `[B, B]`.

    Raises:
        ValueError: another shape (one-hot labels, say).
    """
    labels = ops.convert_to_tensor(labels)
    if len(labels.shape) == 2 and labels.shape[1] == 1:
        return ops.reshape(labels, (-1,))
    if len(labels.shape) != 1:
        raise ValueError(
            "labels: expected class codes of shape [B] or [B, 1], received shape"
            f" {tuple(labels.shape)}"
        )
    return labels


def pair_masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns which pairs `[B, B]` have the same label, and which have different labels.

    An example does not form a pair with itself.

    Args:
        labels: `[B]` class codes.
    """
    labels = flat_labels(labels)
    same = ops.equal(labels[:, None], labels[None, :])
    position = ops.arange(ops.shape(labels)[0])
    other = ops.not_equal(position[:, None], position[None, :])
    return ops.logical_and(same, other), ops.logical_not(same)


def semihard_negatives(distances: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the semi-hard negative of each anchor and positive.

    It is the nearest of the negatives that are farther from the anchor than the positive is; if
    all are nearer, the farthest negative.

    Args:
        distances: `[B, B]` between the examples of a batch, as the loss measures them.
        labels: `[B]` class codes.

    Returns:
        `[B, B]` int32 the negative for each (anchor, positive), and `[B, B]` bool where there is
        one: the two have the same label and the batch holds another.

    References:
        Schroff, Kalenichenko, Philbin (2015): FaceNet, section 3.2.
    """
    positives, negatives = pair_masks(labels)
    distances = ops.stop_gradient(ops.convert_to_tensor(distances))
    # How many negatives are no farther than each example, by sorting, which takes far less than
    # comparing all triplets. Sorting twice (it is stable) puts negatives before other examples that
    # are equally far.
    negatives_first = ops.argsort(ops.logical_not(negatives), axis=1)
    nearest = ops.argsort(ops.take_along_axis(distances, negatives_first, axis=1), axis=1)
    order = ops.take_along_axis(negatives_first, nearest, axis=1)
    passed = ops.cumsum(ops.cast(ops.take_along_axis(negatives, order, axis=1), "int32"), axis=1)
    passed = ops.take_along_axis(passed, ops.argsort(order, axis=1), axis=1)
    total = ops.sum(ops.cast(negatives, "int32"), axis=1, keepdims=True)
    nearest_negatives = ops.argsort(ops.where(negatives, distances, float("inf")), axis=1)
    # The next negative, or the farthest if none is left.
    index = ops.maximum(ops.minimum(passed, total - 1), 0)
    chosen = ops.take_along_axis(nearest_negatives, index, axis=1)
    return ops.cast(chosen, "int32"), ops.logical_and(positives, total > 0)
