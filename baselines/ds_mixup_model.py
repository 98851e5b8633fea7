"""The Keras model that trains a classifier on mixed instances and mixed labels."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.methods.crowd_layers.common.mixing import mixed, mixing_draws
from neucrowd_tf.methods.crowd_layers.common.model import TargetModel


class MixupModel(TargetModel):
    """Cross-entropy of mixed targets on mixed features.

    Args:
        args: of `TargetModel`.
        alpha: of the coefficients' Beta distribution.
    """

    whole_batch = True

    def __init__(self, *args: Any, alpha: float) -> None:
        super().__init__(*args)
        self.alpha = alpha

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of cross-entropies and the mass of the targets.

        References:
            Zhang et al. (2018), mixup: beyond empirical risk minimization, eq. 1.
        """
        shares, partners = mixing_draws(self._step_seed, tf.shape(rows)[0], self.alpha)
        targets = mixed(tf.gather(self._targets, rows), shares, partners)
        return self.cross_entropy(mixed(features, shares, partners), targets)
