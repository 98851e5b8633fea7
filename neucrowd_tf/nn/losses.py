"""Metric-learning losses: contrastive, triplet, semi-hard, lifted structured, triplet-center.

Each is a pure function. Those that choose pairs or triplets of a batch (`neucrowd_tf.nn.miners`)
take labels `[B]` and embeddings `[B, h]`, as Keras does:

    model.compile(optimizer="adam", loss=semihard_triplet_loss)
    model.fit(features, class_codes)

A batch without the pairs that a loss needs (one class only, one example of each) has loss zero and
gradient zero, and examples that coincide have finite gradients.
"""

from __future__ import annotations

import keras
from keras import ops

from neucrowd_tf.declare.types import Fields, Shape, Tensor
from neucrowd_tf.nn.miners import flat_labels, pair_masks, semihard_negatives
from neucrowd_tf.nn.similarity import EPSILON, widened

_FAR = 1e9


def pairwise_distances(
    embeddings: Tensor, others: Tensor = None, *, squared: bool = False
) -> Tensor:
    """Returns l2 distances `[B, M]` between rows.

    If two rows coincide, the norm has no gradient; here it is zero. float16 is computed in float32.

    Args:
        embeddings: `[B, h]`.
        others: `[M, h]`; None compares the embeddings with each other.
        squared: whether the distances are squared.
    """
    a = widened(embeddings)
    b = a
    if others is not None:
        b = widened(others)
    # Distances do not depend on the origin. With the centre as the origin, rounding does not swamp
    # short ones.
    centre = ops.stop_gradient(ops.mean(b, axis=0))
    a = a - centre
    b = b - centre
    square = ops.sum(a * a, axis=1)[:, None] + ops.sum(b * b, axis=1)[None, :]
    square = ops.maximum(square - 2.0 * ops.matmul(a, ops.transpose(b)), EPSILON)
    if squared:
        return square
    return ops.sqrt(square)


def contrastive_loss(distances: Tensor, same: Tensor, *, margin: float = 1.0) -> Tensor:
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
    distances = widened(distances)
    apart = ops.square(ops.maximum(margin - distances, 0.0))
    return 0.5 * ops.where(ops.cast(same, "bool"), ops.square(distances), apart)


def triplet_loss(
    positive_distances: Tensor, negative_distances: Tensor, *, margin: float = 1.0
) -> Tensor:
    """Returns the triplet loss, `[T]`: max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Args:
        positive_distances: `[T]` (or any shape); squared l2 in the paper.
        negative_distances: of the same shape.
        margin: how much nearer the positive is wanted.

    References:
        Schroff, Kalenichenko, Philbin (2015): FaceNet, eq. (2).
    """
    shortfall = widened(positive_distances) - widened(negative_distances) + margin
    return ops.maximum(shortfall, 0.0)


def semihard_triplet_loss(labels: Tensor, embeddings: Tensor, *, margin: float = 1.0) -> Tensor:
    """Returns each anchor's share of the semi-hard triplet loss of a batch, `[B]`.

    It is the triplet loss of every positive pair with its semi-hard negative, as TensorFlow Addons'
    `TripletSemiHardLoss` computed it with `distance_metric="squared-L2"`; see `semihard_negatives`.

    Args:
        labels: `[B]` class codes.
        embeddings: `[B, h]`.
        margin: how much nearer the positive is wanted.
    """
    distances = pairwise_distances(embeddings, squared=True)
    chosen, counted = semihard_negatives(distances, labels)
    far = ops.take_along_axis(distances, chosen, axis=1)
    return _shares(triplet_loss(distances, far, margin=margin), counted)


def lifted_structured_loss(labels: Tensor, embeddings: Tensor, *, margin: float = 1.0) -> Tensor:
    """Returns each example's share of the lifted structured loss of a batch, `[B]`.

    The loss of a positive pair (i, j) is max(0, J_ij)^2 / 2 with J_ij = log(sum of exp(alpha - D)
    over the negatives of i and of j) + D_ij.

    Args:
        labels: `[B]` class codes.
        embeddings: `[B, h]`.
        margin: alpha.

    References:
        Oh Song, Xiang, Jegelka, Savarese (2016): Deep metric learning via lifted structured feature
        embedding, eq. (4).
    """
    distances = pairwise_distances(embeddings)
    positives, negatives = pair_masks(labels)
    pull = ops.logsumexp(ops.where(negatives, margin - distances, -_FAR), axis=1)
    counted = ops.logical_and(positives, ops.any(negatives, axis=1)[:, None])
    loss = ops.logaddexp(pull[:, None], pull[None, :]) + distances
    halves = 0.5 * ops.square(ops.maximum(ops.where(counted, loss, 0.0), 0.0))
    return _shares(halves, counted)


def triplet_center_loss(labels: Tensor, distances: Tensor, *, margin: float = 1.0) -> Tensor:
    """Returns the triplet-center loss, `[B]`.

    It is max(0, d(own center) + margin - d(nearest other center)).

    Args:
        labels: `[B]` class codes below C.
        distances: `[B, C]` between examples and the classes' centers, as `ClassCenters` gives them;
            half the squared l2 distance in the paper.
        margin: how much nearer the own center is wanted.

    References:
        He, Zhou, Zhou, Bai, Bai (2018): Triplet-center loss for multi-view 3D object retrieval, eq.
        (5).
    """
    distances = widened(distances)
    own = ops.one_hot(flat_labels(labels), distances.shape[1], dtype="bool")
    near = ops.sum(ops.where(own, distances, 0.0), axis=1)
    other = ops.min(ops.where(own, _FAR, distances), axis=1, initial=_FAR)
    return ops.maximum(near + margin - other, 0.0)


def _shares(losses: Tensor, counted: Tensor) -> Tensor:
    """Returns `[B]` each anchor's share of the losses of pairs, `[B, B]`.

    The mean of the shares is the mean over the pairs that count, `[B, B]` bool, or 0 without any.
    """
    total = ops.maximum(ops.sum(ops.cast(counted, losses.dtype)), 1.0)
    size = ops.cast(ops.shape(losses)[0], losses.dtype)
    return ops.sum(ops.where(counted, losses, 0.0), axis=1) * (size / total)


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class ClassCenters(keras.layers.Layer):
    """A trained center for each class.

    It maps embeddings `[B, h]` to half the squared distances to all centers, `[B, C]`.

    Args:
        num_classes: C.
        seed: draws the centers from a normal distribution with standard deviation 0.5 (centers that
            start at zero would stay equal).
        options: of a Keras layer.

    Example:
        >>> distances = ClassCenters(num_classes=3)(embeddings)  # doctest: +SKIP
        >>> loss = triplet_center_loss(labels, distances)  # doctest: +SKIP

    References:
        He, Zhou, Zhou, Bai, Bai (2018): Triplet-center loss, section 3.2.
    """

    def __init__(self, num_classes: int, seed: int = 0, **options: object) -> None:
        super().__init__(**options)
        self.num_classes = num_classes
        self.seed = seed
        self.initializer = keras.initializers.RandomNormal(stddev=0.5, seed=seed)

    def build(self, input_shape: Shape) -> None:
        self.centers = self.add_weight(
            shape=(self.num_classes, input_shape[-1]),
            initializer=self.initializer,
            name="centers",
            autocast=False,
        )

    def call(self, embeddings: Tensor) -> Tensor:
        return 0.5 * pairwise_distances(
            ops.cast(embeddings, self.centers.dtype), self.centers, squared=True
        )

    def get_config(self) -> Fields:
        return {**super().get_config(), "num_classes": self.num_classes, "seed": self.seed}
