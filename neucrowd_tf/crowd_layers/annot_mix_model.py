"""The Keras model of annot-mix."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from neucrowd_tf.crowd_layers.crowd_model import AnnotationModel
from neucrowd_tf.crowd_layers.mixing import mixed, mixing_draws


class AnnotMixModel(AnnotationModel):
    """annot-mix: mixup of instances, annotators and labels at once.

    Args:
        alpha: of the coefficients' Beta distribution.
    """

    whole_batch = True

    def __init__(self, *args: Any, alpha: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.alpha = alpha

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of losses and of weights.

        References:
            Herde et al. (2024), section 3.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        shares, partners = mixing_draws(self._step_seed, tf.size(labels), self.alpha)
        blended = mixed(tf.gather(features, within), shares, partners)
        # An annotator's embedding is linear in who it is.
        who = mixed(tf.gather(self.head.annotators(), annotators), shares, partners)
        pairs = tf.range(tf.size(labels)), who
        answers = self.head(self.network(blended, training=True), pairs, training=True)
        first, second = shares * weights, (1.0 - shares) * tf.gather(weights, partners)
        losses = first * self.losses_of(labels, answers)
        losses += second * self.losses_of(tf.gather(labels, partners), answers)
        return tf.reduce_sum(losses), tf.reduce_sum(first + second)
