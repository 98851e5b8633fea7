"""Keras models of the metric-learning baselines.

A model defines which instances a step takes, and which loss it computes on them.
"""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Floats32, Indices, Integers, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.losses import ClassCenters, contrastive_loss, triplet_loss
from neucrowd_tf.nn.steps import share_of
from neucrowd_tf.training.batches import pipelines
from neucrowd_tf.training.encoder_model import EncoderModel
from neucrowd_tf.training.tuplet_index import TupletIndex

EPSILON = 1e-12


class MarginModel(EncoderModel):
    """A margin loss on triplets drawn inside the step.

    They are drawn from `[batch, 3]` uniform numbers. Every class is the anchor's in turn.

    Args:
        index: the instances by class, with one negative.
        objective: "triplet" (squared distances), or "contrastive": each triplet is a pair of one
            class and a pair of two.
        margin: of the loss.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: Floats32,
        index: TupletIndex,
        *,
        objective: str,
        margin: float,
    ) -> None:
        super().__init__(encoder, features)
        self.index = index
        self._arrays = (self.hold(index.order), self.hold(index.blocks))
        self.objective = objective
        self.margin = margin
        self._cumulative = tf.constant(index.cumulative())  # the same for all labels
        self.built = True

    def batch_losses(self, data: Tensor) -> Tensor:
        rows = share_of(self.index.draw(data, self._cumulative, self._arrays)[0])
        embeddings = self.embed_rows(rows, training=True)
        squared = tf.reduce_sum(tf.square(embeddings[:, 1:] - embeddings[:, :1]), axis=-1)
        if self.objective == "triplet":
            return triplet_loss(squared[:, 0], squared[:, 1], margin=self.margin)
        # No gradient where a pair coincides, instead of an infinite one.
        distances = tf.sqrt(tf.maximum(squared, EPSILON))
        same = tf.broadcast_to([True, False], tf.shape(squared))
        return tf.reduce_mean(contrastive_loss(distances, same, margin=self.margin), axis=1)


class BatchModel(EncoderModel):
    """A loss on whole batches of equally many instances of each class, `[per class, C]` positions.

    Args:
        labels: `[N]` class codes.
        loss: of labels and embeddings, or of labels and distances to centers, `[B]`.
        centers: number of centers; 0 for a loss of embeddings.
        seed: draws the centers.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: Floats32,
        labels: Indices,
        *,
        loss: Callable[[Tensor, Tensor], Tensor],
        centers: int,
        seed: int,
    ) -> None:
        super().__init__(encoder, features)
        self.batch_loss = loss
        self._labels = self.hold(labels)
        self.centers = None
        if centers:
            self.centers = ClassCenters(centers, seed=seed)
            self.centers.build((None, encoder.output_shape[-1]))
        self.built = True

    def batch_losses(self, data: Tensor) -> Tensor:
        rows = tf.reshape(data, [-1])
        embeddings = self.embed_rows(rows, training=True)
        if self.centers is not None:
            embeddings = self.centers(embeddings)
        return self.batch_loss(tf.gather(self._labels, rows), embeddings)


def class_batches(seed: int, labels: Integers, batch: int) -> Tensor:
    """Returns `make(first_step)`, a pipeline of `[batch // C, C]` int32 instance positions.

    They are functions of (seed, step) alone.

    Each column holds instances of one of the C classes that occur, without repeats unless the class
    has fewer than that many: those go round again. A batch is a pseudo-random permutation of each
    class, cut off, which costs no more for many instances than for few.

    Args:
        seed: draws the batches.
        labels: `[N]` class codes.
        batch: number of instances in a batch, rounded down to equal parts; at least two of each
            class.

    Raises:
        DataError: fewer than two classes occur.
    """
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(f"expected labels of at least two classes, received {len(classes)}")
    members = [np.flatnonzero(labels == code).astype(np.int32) for code in classes]
    share = max(2, batch // len(classes))

    def draw(step: tf.Tensor) -> tf.Tensor:
        columns = []
        for column, rows in enumerate(members):
            size = len(rows)
            position = tf.range(share, dtype=tf.int32) % size
            if size > 1:
                draw_seed = tf.stack([tf.constant(seed * len(members) + column, tf.int64), step])
                position = tf.random.experimental.index_shuffle(
                    position, seed=draw_seed, max_index=size - 1
                )
            columns.append(tf.gather(rows, position))
        return tf.stack(columns, axis=1)

    return pipelines(draw)
