"""Adam in one operation per variable.

For networks as small as these, the dozen operations per variable of Keras' own cost more than their
arithmetic.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.nn.keras_private import moments_of


@keras.saving.register_keras_serializable("neucrowd_tf")
class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam with TensorFlow's kernel, which passes once over a variable and its moments.

    Under a distribution strategy, for sparse gradients and with `amsgrad` it is Keras' own.
    """

    def apply(self, grads: Tensor, trainable_variables: Tensor = None) -> None:
        """Applies gradients; the powers of both decays are computed once for all variables."""
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        powers = (tf.pow(self.beta_1, step), tf.pow(self.beta_2, step))
        object.__setattr__(self, "_powers", powers)  # not an attribute that Keras is to track
        super().apply(grads, trainable_variables)

    def update_step(self, gradient: Tensor, variable: Tensor, learning_rate: Tensor) -> None:
        if self.amsgrad or tf.distribute.has_strategy() or isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        target = variable
        if isinstance(variable, keras.Variable):
            target = variable.value
        first_moment, second_moment = moments_of(self, variable)

        def cast(value: Tensor) -> Tensor:
            return tf.cast(value, target.dtype)

        beta1_power, beta2_power = vars(self)["_powers"]
        tf.raw_ops.ResourceApplyAdam(
            var=target.handle,
            m=first_moment.value.handle,
            v=second_moment.value.handle,
            beta1_power=cast(beta1_power),
            beta2_power=cast(beta2_power),
            lr=cast(learning_rate),
            beta1=cast(self.beta_1),
            beta2=cast(self.beta_2),
            epsilon=cast(self.epsilon),
            grad=cast(gradient),
        )
