"""Annotator heads for a Keras model of one's own.

Besides them there is the loss of a matrix of labels with gaps.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowd_layers.heads.base import AnnotatorHead
from neucrowd_tf.crowd_layers.heads.conal import ConalHead
from neucrowd_tf.crowd_layers.heads.confusion import ConfusionHead
from neucrowd_tf.crowd_layers.heads.crowd_connection import CrowdConnection
from neucrowd_tf.crowd_layers.heads.doctors import DoctorHeads
from neucrowd_tf.crowd_layers.heads.geocrowdnet import GeoCrowdNetHead
from neucrowd_tf.crowd_layers.heads.softplus_confusion import SoftplusConfusionHead
from neucrowd_tf.crowd_layers.heads.unionnet import UnionHead
from neucrowd_tf.crowd_layers.losses import annotation_losses

__all__ = [
    "AnnotationLoss",
    "AnnotatorHead",
    "ConalHead",
    "ConfusionHead",
    "CrowdConnection",
    "DoctorHeads",
    "GeoCrowdNetHead",
    "SoftplusConfusionHead",
    "UnionHead",
]


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotationLoss(keras.losses.Loss):
    """The loss of the labels that there are.

    Labels are class codes `[B, R]`, -1 for a missing label, and predictions are logits
    `[B, R, C]`; or `[B]` and `[B, C]`.

    Args:
        gamma: of the focal loss; 0 is cross-entropy.
        log_probabilities: for heads whose outputs are log-probabilities already (`UnionHead`).
        reduction: "sum_over_batch_size", "mean" and "mean_with_sample_weight" are the weighted mean
            over labels, divided by the replicas of a strategy as Keras does; "sum"; or "none", the
            weighted losses in the labels' shape, 0 where one is missing.
    """

    def __init__(
        self,
        gamma: float = 0.0,
        log_probabilities: bool = False,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "annotation_loss",
        dtype: Any = None,
    ) -> None:
        if reduction in ("sum_over_batch_size", "mean"):
            reduction = "mean_with_sample_weight"
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.gamma, self.log_probabilities = gamma, log_probabilities

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Returns the reduced loss.

        Args:
            y_true: class codes.
            y_pred: logits.
            sample_weight: of instances `[B]` or of labels, as `y_true`.
        """
        labels = tf.cast(tf.convert_to_tensor(y_true), tf.int32)
        logits = tf.convert_to_tensor(y_pred)
        if labels.shape.rank == logits.shape.rank:  # Keras gives codes [B] a column
            labels = tf.squeeze(labels, -1)
        weights = tf.cast(labels >= 0, tf.float32)
        if sample_weight is not None:
            factor = tf.cast(sample_weight, tf.float32)
            while factor.shape.rank < weights.shape.rank:
                factor = factor[..., None]
            weights = weights * factor
        return super().__call__(labels, logits, weights)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        labels = tf.cast(y_true, tf.int32)
        return annotation_losses(
            labels, y_pred, self.gamma, log_probabilities=self.log_probabilities
        )

    def get_config(self) -> dict[str, Any]:
        options = {"gamma": self.gamma, "log_probabilities": self.log_probabilities}
        return {**super().get_config(), **options}
