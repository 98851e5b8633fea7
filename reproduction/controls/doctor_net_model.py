"""The printed loss and optimizer of Weighted Doctor Net's second phase."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from neucrowd_tf.crowd_layers.doctor_weights import DoctorWeights

# Of the cyclic schedule: at the begin and in the middle of a cycle.
RATES, MOMENTA = (1e-3, 1e-2), (0.9, 0.8)


class RawWeights(DoctorWeights):
    """Trains raw weights on the normalised average, as in the paper."""

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        answers = self._answers[0](features, training=False)
        weights = tf.convert_to_tensor(self.average.weight)
        mean = tf.maximum(tf.einsum("brc,r->bc", answers, weights), 1e-7)
        mean = mean / tf.reduce_sum(mean, axis=1, keepdims=True)
        targets = tf.gather(self._targets, rows)
        total = -tf.reduce_sum(targets * tf.math.log(tf.maximum(mean, 1e-7)))
        return total, tf.cast(tf.size(rows), tf.float32)


@keras.saving.register_keras_serializable("neucrowd_tf")
class CyclicSGD(keras.optimizers.Optimizer):
    """SGD whose learning rate runs up and down between two bounds.

    Its momentum runs the other way.

    Args:
        half_cycle: steps from one bound to the other.

    References:
        Smith (2017), Cyclical learning rates for training neural networks, section 3; DASC, section
        4.1.
    """

    def __init__(self, half_cycle: int = 100, name: str = "cyclic_sgd") -> None:
        super().__init__(learning_rate=RATES[0], name=name)
        self.half_cycle = half_cycle
        self._velocities: list[Any] = []

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._velocities = [
            self.add_variable_from_reference(variable, name="velocity") for variable in variables
        ]

    def phase(self) -> Any:
        """Returns the next step's place: 0 at the low rate, 1 at the high one."""
        place = ops.cast(self.iterations, "float32") / self.half_cycle
        return 1.0 - ops.abs(place % 2.0 - 1.0)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        rate, momentum = (
            ops.cast(first + (last - first) * self.phase(), variable.dtype)
            for first, last in (RATES, MOMENTA)
        )
        velocity = self._velocities[self._get_variable_index(variable)]
        step = (
            ops.cast(velocity, variable.dtype) * momentum
            - ops.cast(gradient, variable.dtype) * rate
        )
        self.assign(velocity, step)
        self.assign_add(variable, step)

    def get_config(self) -> dict[str, Any]:
        return {"half_cycle": self.half_cycle, "name": self.name}
