"""The Keras model that trains a classifier on class distributions of instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from neucrowd_tf.crowd_layers.model import InstanceModel, rows_variable

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TargetModel(InstanceModel):
    """A classifier trained with cross-entropy against targets `[N, C]`.

    Args:
        classifier: features to probabilities `[B, C]`.
        features: `[N, ...]`.
        num_classes: C.
        augment: as of `InstanceModel`.
    """

    def __init__(
        self,
        classifier: keras.Model,
        features: Any,
        num_classes: int,
        augment: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(features, [classifier], augment)
        self.classifier = classifier
        self._targets = rows_variable(tf.zeros((0, num_classes)), "targets")

    def set_targets(self, targets: NDArray[Any]) -> None:
        """Sets what is predicted: `[N, C]`, whose rows sum to the weight of their instance."""
        self._targets.assign(targets.astype("float32"))

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        return self.cross_entropy(features, tf.gather(self._targets, rows))

    def cross_entropy(self, features: Any, targets: Any) -> tuple[Any, Any]:
        """Returns the sum of cross-entropies against targets `[B, C]`, and the targets' sum."""
        probabilities = tf.cast(self.classifier(features, training=True), tf.float32)
        losses = -tf.reduce_sum(targets * tf.math.log(tf.maximum(probabilities, 1e-7)), axis=1)
        return tf.reduce_sum(losses), tf.reduce_sum(targets)
