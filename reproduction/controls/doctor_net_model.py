"""The loss as in the paper of Weighted Doctor Net's second phase."""

from __future__ import annotations

import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.methods.crowd_layers.doctor_net import DoctorWeights


class RawWeights(DoctorWeights):
    """Trains raw weights on the normalised average, as in the paper."""

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        answers = self._answers[0](features, training=False)
        weights = tf.convert_to_tensor(self.average.weight)
        mean = tf.maximum(tf.einsum("brc,r->bc", answers, weights), 1e-7)
        mean = mean / tf.reduce_sum(mean, axis=1, keepdims=True)
        targets = tf.gather(self._targets, rows)
        total = -tf.reduce_sum(targets * tf.math.log(tf.maximum(mean, 1e-7)))
        return total, tf.cast(tf.size(rows), tf.float32)
