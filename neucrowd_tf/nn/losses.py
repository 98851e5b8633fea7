"""Metric-learning losses.

They are contrastive, triplet, semi-hard triplet, lifted structured and triplet-center.

Each is a pure function of distances and a choice of pairs or triplets (`neucrowd_tf.nn.miners`),
and a Keras loss for batches of labels `[B]` and embeddings `[B, h]`:

    model.compile(optimizer="adam", loss=SemiHardTripletLoss(margin=1.0))
    model.fit(features, class_codes)

A batch without the pairs that a loss needs (one class only, one example of each) has loss zero and
gradient zero, and examples that coincide have finite gradients.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from neucrowd_tf.nn.miners import flat_labels, pair_masks, semihard_negatives
from neucrowd_tf.nn.similarity import EPSILON, widened

_FAR = 1e9


def pairwise_distances(embeddings: Any, others: Any = None, *, squared: bool = False) -> Any:
    """Returns l2 distances `[B, M]` between rows of `[B, h]` and `[M, h]`.

    By default both are the same rows.

    Where two rows coincide, and the norm has no gradient, the gradient is zero. float16 is computed
    in float32.
    """
    a = widened(embeddings)
    b = a if others is None else widened(others)
    if len(a.shape) != 2 or len(b.shape) != 2 or not _agree(a.shape[1], b.shape[1]):
        raise ValueError(
            f"embeddings: expected shapes [B, h] and [M, h], received {tuple(a.shape)} and"
            f" {tuple(b.shape)}"
        )
    # Distances do not change with the origin; moved to the middle, rounding does not swamp short
    # ones.
    centre = ops.stop_gradient(ops.mean(b, axis=0))
    a, b = a - centre, b - centre
    square = ops.sum(a * a, axis=1)[:, None] + ops.sum(b * b, axis=1)[None, :]
    square = ops.maximum(square - 2.0 * ops.matmul(a, ops.transpose(b)), EPSILON)
    return square if squared else ops.sqrt(square)


def _agree(*sizes: int | None) -> bool:
    """Returns whether the sizes that are known are one."""
    return len({*sizes} - {None}) < 2


def _same_shape(**tensors: Any) -> list[Any]:
    """Returns tensors after checking that none would be broadcast against another."""
    converted = {name: ops.convert_to_tensor(tensor) for name, tensor in tensors.items()}
    shapes = [tuple(tensor.shape) for tensor in converted.values()]
    for shape in shapes[1:]:
        if len(shape) != len(shapes[0]) or not all(map(_agree, shape, shapes[0])):
            shown = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in converted.items())
            raise ValueError(f"expected tensors of one shape, received {shown}")
    return list(converted.values())


def contrastive_loss(distances: Any, same: Any, *, margin: float = 1.0) -> Any:
    """Returns the contrastive loss of pairs, `[P]`.

    It is half the squared distance, or half the squared shortfall from the margin.

    Args:
        distances: `[P]` (or any shape) l2 distances.
        same: the same shape; whether the two have one label.
        margin: how far apart examples of different labels are wanted.

    References:
        Hadsell, Chopra, LeCun (2006): Dimensionality reduction by learning an invariant mapping,
        eq. (4).
    """
    distances, same = _same_shape(distances=widened(distances), same=same)
    apart = ops.square(ops.maximum(margin - distances, 0.0))
    return 0.5 * ops.where(ops.cast(same, "bool"), ops.square(distances), apart)


def triplet_loss(positive_distances: Any, negative_distances: Any, *, margin: float = 1.0) -> Any:
    """Returns the triplet loss, `[T]`: max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Args:
        positive_distances: `[T]` (or any shape); squared l2 in the paper.
        negative_distances: of the same shape.
        margin: how much nearer the positive is wanted.

    References:
        Schroff, Kalenichenko, Philbin (2015): FaceNet, eq. (2).
    """
    near, far = _same_shape(
        positive_distances=widened(positive_distances),
        negative_distances=widened(negative_distances),
    )
    return ops.maximum(near - far + margin, 0.0)


def lifted_structured_loss(distances: Any, labels: Any, *, margin: float = 1.0) -> tuple[Any, Any]:
    """Returns the lifted structured loss of each positive pair of a batch.

    Args:
        distances: `[B, B]` l2 distances.
        labels: `[B]` class codes.
        margin: alpha.

    Returns:
        `[B, B]` half of max(0, J_ij) squared, J_ij = log(sum of exp(alpha - D) over the negatives
        of i and those of j) + D_ij; and `[B, B]` bool, which of them count. Each pair stands there
        twice.

    References:
        Oh Song, Xiang, Jegelka, Savarese (2016): Deep metric learning via lifted structured feature
        embedding, eq. (4).
    """
    distances = widened(distances)
    positives, negatives = pair_masks(labels)
    pull = ops.logsumexp(ops.where(negatives, margin - distances, -_FAR), axis=1)
    counted = ops.logical_and(positives, ops.any(negatives, axis=1)[:, None])
    loss = ops.logaddexp(pull[:, None], pull[None, :]) + distances
    return 0.5 * ops.square(ops.maximum(ops.where(counted, loss, 0.0), 0.0)), counted


def triplet_center_loss(distances: Any, labels: Any, *, margin: float = 1.0) -> Any:
    """Returns the triplet-center loss, `[B]`.

    It is max(0, d(own center) + margin - d(nearest other center)).

    Args:
        distances: `[B, C]` between examples and the classes' centers; half the squared l2 distance
            in the paper.
        labels: `[B]` class codes below C.
        margin: how much nearer the own center is wanted.

    References:
        He, Zhou, Zhou, Bai, Bai (2018): Triplet-center loss for multi-view 3D object retrieval, eq.
        (5).
    """
    distances, labels = widened(distances), flat_labels(labels)
    if len(distances.shape) != 2 or not _agree(distances.shape[0], labels.shape[0]):
        raise ValueError(
            f"expected distances [B, C] and labels [B], received {tuple(distances.shape)} and"
            f" {tuple(labels.shape)}"
        )
    same = ops.equal(
        ops.cast(labels, "int32")[:, None], ops.arange(distances.shape[1], dtype="int32")[None, :]
    )
    near = ops.sum(ops.where(same, distances, 0.0), axis=1)
    other = ops.min(ops.where(same, _FAR, distances), axis=1, initial=_FAR)
    return ops.maximum(near + margin - other, 0.0)


def _shares(losses: Any, counted: Any) -> Any:
    """Returns `[B]` each anchor's share of losses `[B, ...]`.

    Their mean is the mean over what counts, or 0 if nothing does.
    """
    weight = ops.cast(counted, losses.dtype)
    axes = tuple(range(1, len(losses.shape)))
    total = ops.maximum(ops.sum(weight), 1.0)
    size = ops.cast(ops.shape(losses)[0], losses.dtype)
    return ops.sum(ops.where(counted, losses, 0.0), axis=axes) * (size / total)


class _BatchLoss(keras.losses.Loss):
    """A loss of labels `[B]` or `[B, 1]` and embeddings `[B, h]`, reduced over the batch."""

    def __init__(
        self, margin: float = 1.0, reduction: str = "sum_over_batch_size", name: str | None = None
    ) -> None:
        super().__init__(reduction=reduction, name=name)
        self.margin = margin

    def call(self, y_true: Any, y_pred: Any) -> Any:
        labels, embeddings = flat_labels(y_true), ops.convert_to_tensor(y_pred)
        if len(embeddings.shape) != 2 or not _agree(labels.shape[0], embeddings.shape[0]):
            raise ValueError(
                f"expected labels [B] and outputs [B, h], received {tuple(labels.shape)} and"
                f" {tuple(embeddings.shape)}"
            )
        return self.batch_loss(labels, embeddings)

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        """Returns each example's share of the batch's loss, `[B]`."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin}


class _SquaredLoss(_BatchLoss):
    """A loss of distances that are squared or not."""

    def __init__(
        self,
        margin: float = 1.0,
        squared: bool = True,
        reduction: str = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(margin, reduction, name)
        self.squared = squared

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "squared": self.squared}


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class ContrastiveLoss(_BatchLoss):
    """The contrastive loss over all pairs of a batch; see `contrastive_loss`.

    Call it with class codes `[B]` and embeddings `[B, h]`.

    Args:
        margin: how far apart examples of different labels are wanted.
    """

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        same, different = pair_masks(labels)
        losses = contrastive_loss(pairwise_distances(embeddings), same, margin=self.margin)
        return _shares(losses, ops.logical_or(same, different))


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class TripletLoss(_SquaredLoss):
    """The triplet loss over all triplets of a batch; see `triplet_loss`.

    Memory grows as the cube of the batch.

    Call it with class codes `[B]` and embeddings `[B, h]`.

    Args:
        margin: how much nearer the positive is wanted.
        squared: whether distances are squared.
    """

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        positives, negatives = pair_masks(labels)
        distances = pairwise_distances(embeddings, squared=self.squared)
        counted = ops.logical_and(positives[:, :, None], negatives[:, None, :])
        near, far = (
            ops.broadcast_to(each, ops.shape(counted))
            for each in (distances[:, :, None], distances[:, None, :])
        )
        return _shares(triplet_loss(near, far, margin=self.margin), counted)


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class SemiHardTripletLoss(_SquaredLoss):
    """The triplet loss of every positive pair of a batch with its semi-hard negative.

    See `semihard_negatives`.

    Call it with class codes `[B]` and embeddings `[B, h]`. What TensorFlow Addons'
    `TripletSemiHardLoss` computed with `distance_metric="squared-L2"`, or with "L2" where `squared`
    is False.

    Args:
        margin: how much nearer the positive is wanted.
        squared: whether distances are squared.
    """

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        distances = pairwise_distances(embeddings, squared=self.squared)
        chosen, counted = semihard_negatives(distances, labels)
        far = ops.take_along_axis(distances, chosen, axis=1)
        return _shares(triplet_loss(distances, far, margin=self.margin), counted)


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class LiftedStructuredLoss(_BatchLoss):
    """The lifted structured loss of a batch; see `lifted_structured_loss`.

    Call it with class codes `[B]` and embeddings `[B, h]`.

    Args:
        margin: alpha.
    """

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        distances = pairwise_distances(embeddings)
        return _shares(*lifted_structured_loss(distances, labels, margin=self.margin))


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class TripletCenterLoss(_BatchLoss):
    """The triplet-center loss; see `triplet_center_loss`.

    Call it with class codes `[B]` and distances `[B, C]` to the classes' centers, which
    `ClassCenters` gives:

        model = keras.Sequential([encoder, ClassCenters(num_classes)])
        model.compile(optimizer="adam", loss=TripletCenterLoss(margin=5.0))

    Args:
        margin: how much nearer the own center is wanted.
    """

    def batch_loss(self, labels: Any, embeddings: Any) -> Any:
        return triplet_center_loss(embeddings, labels, margin=self.margin)


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class ClassCenters(keras.layers.Layer):
    """A trained center for each class.

    It maps embeddings `[B, h]` to half the squared distances to all centers, `[B, C]`.

    Args:
        num_classes: C.
        seed: draws the centers from a normal distribution with standard deviation .5 (zeros would
            never part from each other).

    References:
        He, Zhou, Zhou, Bai, Bai (2018): Triplet-center loss, section 3.2.
    """

    def __init__(self, num_classes: int, seed: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.num_classes, self.seed = num_classes, seed
        self.initializer = keras.initializers.RandomNormal(stddev=0.5, seed=seed)

    def build(self, input_shape: Any) -> None:
        self.centers = self.add_weight(
            shape=(self.num_classes, input_shape[-1]),
            initializer=self.initializer,
            name="centers",
            autocast=False,
        )

    def call(self, embeddings: Any) -> Any:
        return 0.5 * pairwise_distances(
            ops.cast(embeddings, self.centers.dtype), self.centers, squared=True
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        return input_shape[0], self.num_classes

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_classes": self.num_classes, "seed": self.seed}
