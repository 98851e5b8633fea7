"""Max-MIG's aggregator, its loss, and the Keras model that trains both networks on it."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Codes32, Floats, Tensor
from neucrowd_tf.methods.crowd_layers.common.model import InstanceModel, rows_variable


def information_gain_loss(first: Tensor, second: Tensor, prior: Tensor) -> Tensor:
    """Returns minus the f-mutual information gain for KL divergence.

    It is -(1 + mean of log t_ii) + mean of t_ij over i != j.

    Here t_ij is the sum over classes of first_i second_j / prior: how much more often the two agree
    on a pair of instances than by chance. The gain is greatest where both tell the classes that
    they have in common.

    Args:
        first: `[B, C]` a network's probabilities of one batch of instances.
        second: `[B, C]` those of the other network.
        prior: `[C]`.

    References:
        Cao et al. (2019), definitions 3.1 and 3.2, table 1 (KL).
    """
    agreement = tf.matmul(first / prior, second, transpose_b=True)
    diagonal = tf.linalg.diag_part(agreement)
    size = tf.cast(tf.shape(diagonal)[0], tf.float32)
    disagreement = tf.math.divide_no_nan(
        tf.reduce_sum(agreement) - tf.reduce_sum(diagonal), size * (size - 1.0)
    )
    return disagreement - 1.0 - tf.reduce_mean(tf.math.log(tf.maximum(diagonal, 1e-7)))


class Aggregator(keras.layers.Layer):
    """Maps annotations `[B, R]` to class probabilities `[B, C]`, the aggregator g.

    It is softmax(b + sum over r of W_r[:, y_r]); missing labels do not count.
    """

    def __init__(self, num_annotators: int, num_classes: int) -> None:
        super().__init__(name="aggregator", dtype="float32")
        self.weight_initializer = self.bias_initializer = keras.initializers.Zeros()
        self.weight = self.add_weight(
            shape=(num_annotators, num_classes, num_classes), initializer="zeros", name="weight"
        )
        self.bias = self.add_weight(shape=(num_classes,), initializer="zeros", name="bias")
        self.built = True

    def call(self, labels: Tensor) -> Tensor:
        """Returns probabilities; `labels` are class codes, -1 for none."""
        labels = tf.cast(labels, tf.int32)
        rows, codes = tf.unstack(tf.cast(tf.where(labels >= 0), tf.int32), axis=1)
        observed = tf.gather_nd(labels, tf.stack([rows, codes], axis=1))
        # [R, C true, C observed] read at (annotator, observed), so that only annotations that there
        # are cost anything.
        by_observed = tf.transpose(self.weight, [0, 2, 1])
        scores = tf.gather_nd(by_observed, tf.stack([codes, observed], axis=1))
        sums = tf.math.unsorted_segment_sum(scores, rows, tf.shape(labels)[0])
        return tf.nn.softmax(sums + self.bias)


class MaxMIGModel(InstanceModel):
    """Trains classifier and aggregator together.

    Args:
        classifier: features to probabilities `[B, C]`.
        features, augment: as of `InstanceModel`.
        num_annotators, num_classes: R and C.
    """

    whole_batch = True

    def __init__(
        self,
        classifier: keras.Model,
        features: Tensor,
        num_annotators: int,
        num_classes: int,
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        networks = [classifier, Aggregator(num_annotators, num_classes)]
        super().__init__(features, networks, augment)
        self.classifier, self.aggregator = networks
        self._labels = rows_variable(tf.zeros((0, num_annotators), tf.int32), "labels")
        self._prior = tf.Variable(
            tf.fill((num_classes,), 1.0 / num_classes), trainable=False, name="prior"
        )

    def set_crowd(self, labels: Codes32, logs: Floats, prior: Floats) -> None:
        """Sets the annotations, the aggregator's first weights and the class prior.

        They are `[N, R]` (-1 for none), `[R, C true, C observed]` and `[C]`.
        """
        self._labels.assign(labels)
        self.aggregator.weight.assign(logs.astype(np.float32))
        self.aggregator.bias.assign(np.log(prior).astype(np.float32))
        self._prior.assign(prior.astype(np.float32))

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        probabilities = tf.cast(self.classifier(features, training=True), tf.float32)
        aggregated = self.aggregator(tf.gather(self._labels, rows))
        loss = information_gain_loss(probabilities, aggregated, self._prior)
        size = tf.cast(tf.shape(rows)[0], tf.float32)
        return loss * size, size
