"""The Keras models of CrowdAR, MaDL and COIN-Net.

These crowd layers have losses that are more than cross-entropy.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowd_layers.crowd_model import AnnotationModel


class ReliabilityModel(AnnotationModel):
    """CrowdAR's model: annotations are softened by their estimated reliability.

    The reliability learns from what the classifier agrees with.

    Args:
        share: lambda of eq. 5, of the annotations' part.
    """

    def __init__(self, *args: Any, share: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.share = share

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of losses and of weights.

        References:
            Cao et al. (2023), eqs. 3 and 5.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        logits = self.head(inputs, (within, annotators))
        reliable = self.head.reliability(inputs, within, annotators)
        uniform = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=1)
        annotated = reliable * self.losses_of(labels, logits) + (1.0 - reliable) * uniform
        agreed = tf.argmax(tf.gather(inputs[0], within), axis=1, output_type=tf.int32) == labels
        right = tf.where(agreed, reliable, 1.0 - reliable)
        judged = -tf.math.log(tf.maximum(right, 1e-7))
        losses = self.share * annotated + (1.0 - self.share) * judged
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


class MaDLModel(AnnotationModel):
    """MaDL: annotations of similar annotators count less."""

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of losses and of weights.

        References:
            Herde et al. (2023), eqs. 25 and 26.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        answers = self.head(inputs, (within, annotators), training=True)
        unlike = tf.gather(self.head.annotator_weights(), annotators)
        losses = unlike * self.losses_of(labels, answers)
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


class Outliers(keras.layers.Layer):
    """A vector `[C]` for each annotation, which is 0 but for outliers.

    Args:
        num_annotations, num_classes: its shape.
    """

    def __init__(self, num_annotations: int, num_classes: int) -> None:
        super().__init__(name="outliers", dtype="float32")
        self.shift_initializer = keras.initializers.Zeros()
        self.shift = self.add_weight(
            shape=(num_annotations, num_classes), initializer=self.shift_initializer, name="shift"
        )
        self.built = True

    def call(self, annotations: Any) -> Any:
        """Returns `[K, C]` of these annotations; each sums to 0."""
        shifts = tf.gather(tf.convert_to_tensor(self.shift), annotations)
        return shifts - tf.reduce_mean(shifts, axis=1, keepdims=True)


class OutlierModel(AnnotationModel):
    """COIN-Net: answers are the confusion matrices' plus a shift that few instances have.

    Args:
        shape: numbers of annotations and classes.
        sparsity: lambda_2, of how many instances have a shift.
        power: p of the group norm's power, of the squares.
    """

    whole_batch = True

    def __init__(
        self, *args: Any, shape: tuple[int, int], sparsity: float, power: float, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.outliers = Outliers(*shape)
        self.parts = [*self.parts, self.outliers]
        self.sparsity, self.power = sparsity, power

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of losses and of weights, and keeps the sparsity's term.

        References:
            Nguyen, Ibrahim and Fu (2024), the implementation of criterion 10.
        """
        places, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        shifts = self.outliers(places)
        answers = tf.exp(self.head(inputs, (within, annotators))) + shifts
        answers = tf.clip_by_value(answers, 1e-10, 1.0 - 1e-10)
        answers = answers / tf.reduce_sum(answers, axis=1, keepdims=True)
        squares = tf.math.unsorted_segment_sum(
            tf.reduce_sum(tf.square(shifts), axis=1), within, tf.shape(rows)[0]
        )
        sparse = tf.reduce_mean(tf.pow(squares + 1e-10, self.power))
        self.outliers.add_loss(self.sparsity * sparse)
        losses = self.losses_of(labels, tf.math.log(answers))
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)
