"""COIN-Net: confusion matrices, and instances that follow none of them."""

from __future__ import annotations

from typing import Annotated, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Fields, Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields
from neucrowd_tf.methods.crowd_layers.geocrowdnet import GeoCrowdNetHead
from neucrowd_tf.training.estimator import TrainingData


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

    def call(self, annotations: Tensor) -> Tensor:
        """Returns their shifts `[K, C]`; a row sums to 0."""
        shifts = tf.gather(self.shift, annotations)
        return shifts - tf.reduce_mean(shifts, axis=1, keepdims=True)


class OutlierModel(AnnotationModel):
    """COIN-Net: answers are the confusion matrices' plus a shift that few instances have.

    Args:
        shape: numbers of annotations and classes.
        sparsity: lambda_2, weight of the penalty on the shifts.
        power: p, the power of an instance's sum of squares in the penalty.
    """

    whole_batch = True

    def __init__(
        self, *args: Any, shape: tuple[int, int], sparsity: float, power: float, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.outliers = Outliers(*shape)
        self.trained = [*self.trained, self.outliers]
        self.sparsity = sparsity
        self.power = power

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns two sums: of the weighted losses, and of the weights.

        The penalty on the shifts is among `losses`.

        References:
            Nguyen, Ibrahim and Fu (2024), the implementation of criterion 10.
        """
        places, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        shifts = self.outliers(places)
        answers = tf.exp(self.head(inputs, (within, annotators))) + shifts
        answers = tf.clip_by_value(answers, 1e-10, 1.0 - 1e-10)
        answers /= tf.reduce_sum(answers, axis=1, keepdims=True)
        squares = tf.math.unsorted_segment_sum(
            tf.reduce_sum(tf.square(shifts), axis=1), within, tf.shape(rows)[0]
        )
        sparse = tf.reduce_mean(tf.pow(squares + 1e-10, self.power))
        self.outliers.add_loss(self.sparsity * sparse)
        losses = self.losses_of(labels, tf.math.log(answers))
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


@register_method(
    "coinnet",
    summary="COIN-Net: confusion matrices with the largest volume, and a shift that few instances"
    " have",
    **layer_fields(),
)
@estimator
class COINNet(CrowdLayerBase):
    """A classifier and confusion matrices, with a sparse shift of the answers to outliers.

    The volume of the class probabilities is part of the loss. A penalty keeps the shift of an
    instance at 0, except for outliers.

    Attributes:
        outlier_scores_: `[N]`: the sum of squares of the shifts of a training instance's answers.
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Nguyen, Ibrahim and Fu (2024), section 4.
    """

    volume_weight: Annotated[float, number(least=0), "lambda_1, weight of the volume."] = 0.01
    outlier_weight: Annotated[float, number(least=0), "lambda_2, weight of the outliers."] = 0.01
    outlier_power: Annotated[
        float, number(above=0), "power of an instance's sum of squares; less finds fewer outliers."
    ] = 0.2

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return GeoCrowdNetHead(num_annotators, "F", self.volume_weight, name="coinnet")

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        return OutlierModel, {
            "shape": (data.annotations.num_annotations, len(self.classes_)),
            "sparsity": self.outlier_weight,
            "power": self.outlier_power,
        }

    def _finish(self, network: CompiledNetwork, data: TrainingData) -> None:
        super()._finish(network, data)
        crowd = data.annotations
        shifts = np.asarray(network.model.outliers(np.arange(crowd.num_annotations)))
        squares = np.square(shifts).sum(axis=1)
        instances = np.sort(crowd.instances)  # the order that the model has annotations in
        scores = np.bincount(instances, weights=squares, minlength=crowd.num_instances)
        self.outlier_scores_ = scores.astype(np.float32)
