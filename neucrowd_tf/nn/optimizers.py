"""Adam in one operation a variable: the networks here are small, and Keras' own spends longer on its
dozen operations a variable than a step's gradients take.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("neucrowd_tf")
class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam with TensorFlow's kernel, which passes once over a variable and its moments. Under
    a distribution strategy, for sparse gradients and with `amsgrad` it is Keras' own.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        target = variable.value if isinstance(variable, keras.Variable) else variable
        if self.amsgrad or tf.distribute.has_strategy() or isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        kind = target.dtype
        place = self._get_variable_index(variable)
        step = tf.cast(self.iterations.value + 1, kind)
        tf.raw_ops.ResourceApplyAdam(
            var=target.handle,
            m=self._momentums[place].value.handle,
            v=self._velocities[place].value.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, kind), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, kind), step),
            lr=tf.cast(learning_rate, kind),
            beta1=tf.cast(self.beta_1, kind),
            beta2=tf.cast(self.beta_2, kind),
            epsilon=tf.cast(self.epsilon, kind),
            grad=tf.cast(gradient, kind),
        )
