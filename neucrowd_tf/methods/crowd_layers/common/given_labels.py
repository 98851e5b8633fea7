"""The loss and metrics of labels that are not missing, for a user's Keras model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Fields, Tensor
from neucrowd_tf.methods.crowd_layers.common.head import float_type
from neucrowd_tf.methods.crowd_layers.common.losses import annotation_losses


def given_labels(
    user: str, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor, dtype: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the codes `[...]`, predictions `[..., C]` and weights `[...]` of labels.

    The weight of a missing label is 0. No compiler drops the check of codes: where XLA leaves out
    the assertion, the weight of a code that no class has is NaN, and so are the loss, its gradient
    and metrics.

    Args:
        user: the loss or metric, for errors.
        y_true: class codes; -1 is missing.
        y_pred: what a model predicts for them.
        sample_weight: of labels, as `y_true`, or of instances, with as many dimensions as codes.
        dtype: of the weights.

    Raises:
        ValueError: shapes that do not match, or weights that Keras may have made of columns.
    """
    labels = tf.convert_to_tensor(y_true)
    predictions = tf.identity(y_pred)  # without Keras' mask: -1 marks labels that do not count
    # Keras gives codes [B] a column.
    if labels.shape.rank == predictions.shape.rank and labels.shape[-1] in (1, None):
        labels = tf.squeeze(labels, -1)
    if not labels.shape.is_compatible_with(predictions.shape[:-1]):
        raise ValueError(
            f"{user}: predictions of shape {predictions.shape} need codes of shape"
            f" {predictions.shape[:-1]}, received {labels.shape}. To compare with true labels, give"
            " the model a second output, the class probabilities."
        )
    codes, weights = _checked_codes(user, labels, tf.shape(predictions)[-1], dtype)
    if sample_weight is not None:
        weights *= _label_weights(user, sample_weight, weights.shape, dtype)
    return codes, predictions, weights


def _checked_codes(
    user: str, labels: Tensor, num_classes: Tensor, dtype: str
) -> tuple[Tensor, Tensor]:
    """Returns codes and weights `[...]`: 1, 0 of a missing label, or NaN of one without a class."""
    if not labels.dtype.is_floating:
        labels = tf.cast(labels, tf.int64)
    usable = (labels >= -1) & (labels < tf.cast(num_classes, labels.dtype))
    codes = tf.cast(labels, tf.int32)
    if labels.dtype.is_floating:
        usable &= tf.cast(codes, labels.dtype) == labels
    message = f"{user}: a label is no code below the number of classes; -1 is missing."
    tf.debugging.Assert(tf.reduce_all(usable), [message])
    return codes, tf.where(usable, tf.cast(codes >= 0, dtype), tf.constant(math.nan, dtype))


def _label_weights(user: str, sample_weight: Tensor, shape: tf.TensorShape, dtype: str) -> Tensor:
    """Returns weights of labels, or of instances, that can be multiplied by those in this shape."""
    weights = tf.cast(sample_weight, dtype)
    if weights.shape.rank == 1 and shape.rank != 1:
        raise ValueError(
            f"{user}: sample_weight has the shape [B] where labels have {shape}. If it"
            " comes from class_weight of fit, Keras weighs items by a column of their labels: use"
            " AnnotationLoss(class_weight=...) instead. If these are weights of items, pass"
            " sample_weight[:, None]."
        )
    received = weights.shape
    if received.rank < shape.rank:
        weights = weights[(..., *[None] * (shape.rank - received.rank))]
    is_compatible = weights.shape.rank == shape.rank
    for size, expected in zip(weights.shape, shape, strict=False):
        is_compatible = is_compatible and (size in (None, 1) or expected in (None, size))
    if not is_compatible:
        raise ValueError(
            f"{user}: sample_weight has the shape {received} where labels have {shape}. Give a"
            " weight to each label, in the labels' shape, or to each item, [B, 1]; for weights of"
            " classes use AnnotationLoss(class_weight=...)."
        )
    return weights


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotationLoss(keras.losses.Loss):
    """The loss of the labels that are not missing.

    Labels are class codes `[B, R]`, -1 for a missing label, and predictions are logits
    `[B, R, C]`; or `[B]` and `[B, C]`, or `[B, T, R]` and `[B, T, R, C]`. It is computed in
    float64 or, with any other dtype, float32.

    Args:
        gamma: of the focal loss; 0 is cross-entropy.
        log_probabilities: for heads whose outputs are log-probabilities already (`UnionHead`).
        reduction: "sum_over_batch_size", "mean" and "mean_with_sample_weight" are the weighted mean
            over labels, divided by the replicas of a strategy as Keras does; "sum"; or "none", the
            weighted losses in the labels' shape, 0 where one is missing.
        class_weight: `[C]` weights of labels by class, or a mapping from some codes; others weigh
            1. `class_weight` of `fit` is an error, as Keras would treat it as weights of items.
        labels_per_item: average number of labels per item. A batch's mean is then the sum of its
            losses divided by this number for each item, so that Keras' mean over batches is the
            mean over all labels, and a batch with few labels weighs little. None divides by the
            number of the batch's own labels.

    Raises:
        ValueError: an argument that cannot be used.
    """

    def __init__(
        self,
        gamma: float = 0.0,
        *,
        log_probabilities: bool = False,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "annotation_loss",
        dtype: object = None,
        class_weight: Sequence[float] | Mapping[int, float] | None = None,
        labels_per_item: float | None = None,
    ) -> None:
        is_mean = reduction in ("sum_over_batch_size", "mean", "mean_with_sample_weight")
        if labels_per_item is not None:
            if not is_mean:
                raise ValueError(f"labels_per_item: has no effect with reduction={reduction!r}")
            if not 0 < labels_per_item < math.inf:
                raise ValueError(
                    f"labels_per_item: expected a number above 0, got {labels_per_item!r}"
                )
            labels_per_item = float(labels_per_item)
            reduction = "mean"
        elif is_mean:
            reduction = "mean_with_sample_weight"
        super().__init__(name=name, reduction=reduction, dtype=float_type(dtype))
        self.gamma = gamma
        self.log_probabilities = log_probabilities
        self.class_weight = _checked(class_weight)
        self.labels_per_item = labels_per_item

    @tf.autograph.experimental.do_not_convert  # as Keras' own in a tf.function
    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor = None) -> Tensor:
        """Returns the reduced loss.

        Args:
            y_true: class codes.
            y_pred: logits.
            sample_weight: of labels, as `y_true`, or of instances, `[B, 1]`.

        Raises:
            ValueError: shapes that do not match.
        """
        name = type(self).__name__
        codes, logits, weights = given_labels(name, y_true, y_pred, sample_weight, self.dtype)
        if self.class_weight is not None:
            weights *= self._of_classes(codes, logits.shape[-1])
        loss = super().__call__(codes, logits, weights)
        if self.labels_per_item is None:
            return loss
        labels = tf.cast(tf.reduce_prod(tf.shape(codes)[1:]), loss.dtype)
        return loss * (labels / self.labels_per_item)

    def _of_classes(self, codes: Tensor, num_classes: int) -> Tensor:
        """Returns the weight of each label's class."""
        if isinstance(self.class_weight, Mapping):
            weights = [self.class_weight.get(code, 1.0) for code in range(num_classes)]
            is_complete = max(self.class_weight, default=0) < num_classes
        else:
            weights = list(self.class_weight or ())
            is_complete = len(weights) == num_classes
        if not is_complete:
            raise ValueError(
                f"class_weight: there are {num_classes} classes, received {self.class_weight}. Give"
                " a list with a weight for each class, or a mapping from some class codes."
            )
        within = tf.clip_by_value(codes, 0, num_classes - 1)
        return tf.gather(tf.constant(weights, self.dtype), within)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        labels = tf.cast(y_true, tf.int32)
        return annotation_losses(
            labels, y_pred, self.gamma, log_probabilities=self.log_probabilities
        )

    def get_config(self) -> Fields:
        return {
            **super().get_config(),
            "gamma": self.gamma,
            "log_probabilities": self.log_probabilities,
            "class_weight": self.class_weight,
            "labels_per_item": self.labels_per_item,
        }


def _checked(
    class_weight: Sequence[float] | Mapping[int, float] | None,
) -> list[float] | dict[int, float] | None:
    """Returns checked weights, by code in a mapping; JSON has made its keys texts."""
    if class_weight is None:
        return None
    if isinstance(class_weight, Mapping):
        codes = list(map(str, class_weight))
        if not all(map(str.isdecimal, codes)):
            raise ValueError("class_weight: the keys are class codes from 0")
        return dict(zip(map(int, codes), _weights(list(class_weight.values())), strict=True))
    return _weights(class_weight)


def _weights(values: Sequence[float]) -> list[float]:
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim != 1 or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("class_weight: expected a finite number from 0 for each class code")
    return list(map(float, weights))


class _LabelMean(keras.metrics.Mean):
    """The mean of a figure over labels that are not missing; NaN if all are.

    Raises:
        ValueError: at the end of an epoch, if a compiler has dropped the check of label codes.
    """

    def __init__(self, name: str, dtype: object = None) -> None:
        super().__init__(name=name, dtype=float_type(dtype))

    def figures(self, labels: Tensor, predictions: Tensor) -> Any:
        """Returns the figure `[...]` of labels, from codes `[...]` and predictions `[..., C]`."""
        raise NotImplementedError

    @tf.autograph.experimental.do_not_convert
    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor = None) -> None:
        """Adds a batch; arguments are as of `AnnotationLoss`."""
        name = type(self).__name__
        labels, predictions, weights = given_labels(name, y_true, y_pred, sample_weight, self.dtype)
        figures = tf.cast(self.figures(labels, predictions), self.dtype)
        super().update_state(tf.reshape(figures, [-1]), tf.reshape(weights, [-1]))

    def result(self) -> Tensor:
        count = tf.convert_to_tensor(self.count)
        if tf.executing_eagerly() and math.isnan(count):
            raise ValueError(
                f"{type(self).__name__}: a label is no code below the number of classes; -1 is"
                " missing."
            )
        return tf.convert_to_tensor(self.total) / count


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotationAccuracy(_LabelMean):
    """The share of given labels that are predicted as the most likely ones.

    Labels are as of `AnnotationLoss`; predictions are logits or probabilities. With class
    probabilities `[B, C]` and true labels `[B]`, -1 where one is not known, it is the accuracy.
    """

    def __init__(self, name: str = "annotation_accuracy", dtype: object = None) -> None:
        super().__init__(name, dtype)

    def figures(self, labels: Tensor, predictions: Tensor) -> Any:
        return tf.argmax(predictions, axis=-1, output_type=labels.dtype) == labels


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotationLogLoss(_LabelMean):
    """The mean over given labels of -log of their predicted probability.

    The mean goes over all labels of an epoch, whichever batch they are in: watch it in place of
    the loss where batches differ in their number of labels.

    Args:
        from_logits: whether predictions are logits, as of heads, and not probabilities.
        name: in logs.
        dtype: float64, else it is computed in float32.
    """

    def __init__(
        self, *, from_logits: bool = True, name: str = "annotation_log_loss", dtype: object = None
    ) -> None:
        super().__init__(name, dtype)
        self.from_logits = from_logits

    def figures(self, labels: Tensor, predictions: Tensor) -> Any:
        logits = predictions
        if not self.from_logits:
            logits = tf.math.log(tf.maximum(predictions, 1e-7))
        return annotation_losses(labels, logits)

    def get_config(self) -> Fields:
        return {**super().get_config(), "from_logits": self.from_logits}
