"""Weighted Doctor Net's second phase: the weights of annotators' classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import LayerOptions
from neucrowd_tf.crowd_layers.target_model import TargetModel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotatorAverage(keras.layers.Layer):
    """The weighted mean of annotators' answers.

    It maps probabilities `[B, R, C]` to `[B, C]`, with weights softmax(w).
    """

    def __init__(self, **layer: Unpack[LayerOptions]) -> None:
        super().__init__(**{"dtype": "float32", **layer})
        self.weight_initializer = keras.initializers.Zeros()

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.weight = self.add_weight(
            input_shape[1:2], self.weight_initializer, dtype="float32", name="weight"
        )

    def shares(self) -> Any:
        """Returns the weights `[R]`, which sum to one."""
        return ops.softmax(ops.convert_to_tensor(self.weight))

    def call(self, answers: Any) -> Any:
        return ops.einsum("brc,r->bc", ops.cast(answers, "float32"), self.shares())

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], input_shape[2])


class DoctorWeights(TargetModel):
    """Trains an average's weights so that it predicts the mean of each instance's observed labels.

    Args:
        answers: the trained network, features to annotators' probabilities `[B, R, C]`; it stays as
            it is.
        average: what is trained.
        features: the crowd model's variable of features, shared.
        num_classes: C.
    """

    def __init__(
        self, answers: keras.Model, average: AnnotatorAverage, features: Any, num_classes: int
    ) -> None:
        super().__init__(average, features, num_classes)
        self._answers, self.average = [answers], average

    def set_targets(self, targets: NDArray[Any]) -> None:
        """Sets what is predicted: the shares of `[N, C]` votes."""
        super().set_targets(targets / np.maximum(targets.sum(axis=1, keepdims=True), 1))

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of cross-entropies and the batch's size.

        References:
            DASC, eq. 7.
        """
        # Deviation: the paper takes the softmax of the weights when they are trained; inside the
        # loss what is trained is what predicts.
        answers = tf.stop_gradient(self._answers[0](features, training=False))
        return super().batch_loss(rows, answers)[0], tf.cast(tf.size(rows), tf.float32)
