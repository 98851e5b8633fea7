"""The Keras model that trains a classifier on mixed instances and mixed labels."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowd_layers.mixing import mixed, mixing_draws
from neucrowd_tf.crowd_layers.target_model import TargetModel


class MixupModel(TargetModel):
    """Cross-entropy of mixed targets on mixed features.

    Args:
        classifier, features, num_classes, augment: as of `TargetModel`.
        alpha: of the coefficients' Beta distribution.
    """

    def __init__(
        self,
        classifier: keras.Model,
        features: Any,
        num_classes: int,
        augment: Any = None,
        alpha: float = 1.0,
    ) -> None:
        super().__init__(classifier, features, num_classes, augment)
        self.alpha = alpha

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of cross-entropies and the mass of the targets.

        References:
            Zhang et al. (2018), mixup: beyond empirical risk minimization, eq. 1.
        """
        shares, partners = mixing_draws(self._step_seed, tf.shape(rows)[0], self.alpha)
        targets = mixed(tf.gather(self._targets, rows), shares, partners)
        blended = mixed(features, shares, partners)
        probabilities = tf.cast(self.classifier(blended, training=True), tf.float32)
        losses = -tf.reduce_sum(targets * tf.math.log(tf.maximum(probabilities, 1e-7)), axis=1)
        return tf.reduce_sum(losses), tf.reduce_sum(targets)
