"""Adam in one operation per variable.

For networks as small as these, the dozen operations per variable of Keras' own cost more than their
arithmetic.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.nn.keras_private import moments_of, place_of


@keras.saving.register_keras_serializable("neucrowd_tf")
class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam with TensorFlow's kernel, which passes once over a variable and its moments.

    Under a distribution strategy, for sparse gradients and with `amsgrad` it is Keras' own.
    """

    def apply(self, grads: Tensor, trainable_variables: Tensor = None) -> None:
        """Applies gradients; the powers of both decays are made once for all variables."""
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        powers = (tf.pow(self.beta_1, step), tf.pow(self.beta_2, step))
        object.__setattr__(self, "_powers", powers)  # not an attribute that Keras is to track
        super().apply(grads, trainable_variables)

    def update_step(self, gradient: Tensor, variable: Tensor, learning_rate: Tensor) -> None:
        if isinstance(variable, keras.Variable):
            target = variable.value
        else:
            target = variable
        if self.amsgrad or tf.distribute.has_strategy() or isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        moments = moments_of(self, place_of(self, variable))
        kind = target.dtype
        first, second = (tf.cast(power, kind) for power in vars(self)["_powers"])
        tf.raw_ops.ResourceApplyAdam(
            var=target.handle,
            m=moments[0].value.handle,
            v=moments[1].value.handle,
            beta1_power=first,
            beta2_power=second,
            lr=tf.cast(learning_rate, kind),
            beta1=tf.cast(self.beta_1, kind),
            beta2=tf.cast(self.beta_2, kind),
            epsilon=tf.cast(self.epsilon, kind),
            grad=tf.cast(gradient, kind),
        )
