"""Weighted Doctor Net's second phase: the weights of the annotators' classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.crowd_layers.model import InstanceModel, rows_variable

if TYPE_CHECKING:
    from numpy.typing import NDArray


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotatorAverage(keras.layers.Layer):
    """The weighted mean of annotators' probabilities, `[B, R, C]` to `[B, C]`.

    The weights are softmax(w).
    """

    def __init__(
        self, *, name: str | None = None, trainable: bool = True, dtype: Any = "float32"
    ) -> None:
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.weight_initializer = keras.initializers.Zeros()
        self.weight: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        annotators = int(input_shape[1])  # type: ignore[arg-type]
        self.weight = self.add_weight(
            shape=(annotators,), initializer=self.weight_initializer, dtype="float32", name="weight"
        )

    def shares(self) -> Any:
        """Returns the weights `[R]`, which sum to one."""
        return ops.softmax(ops.convert_to_tensor(self.weight))

    def call(self, answers: Any) -> Any:
        return ops.einsum("brc,r->bc", ops.cast(answers, "float32"), self.shares())

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], input_shape[2])


class DoctorWeights(InstanceModel):
    """Trains an average's weights so that it predicts the mean of each instance's observed labels.

    Args:
        answers: the trained network, features to annotators' probabilities `[B, R, C]`; it stays as
            it is.
        average: what is trained.
        features: the crowd model's variable of features, shared.
        num_classes: C.
        softmax: "training" has the softmax over weights in the loss; "after" trains raw weights on
            the normalised average, as printed.
    """

    def __init__(
        self,
        answers: keras.Model,
        average: AnnotatorAverage,
        features: Any,
        num_classes: int,
        softmax: str = "training",
    ) -> None:
        super().__init__(features, [average])
        self._answers, self.average, self.softmax = [answers], average, softmax
        self._targets = rows_variable(tf.zeros((0, num_classes)), "targets")

    def set_targets(self, votes: NDArray[Any]) -> None:
        """Sets what is predicted: the shares of `[N, C]` votes."""
        self._targets.assign(
            (votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)).astype(np.float32)
        )

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of cross-entropies and the batch's size.

        References:
            DASC, eq. 7.
        """
        answers = tf.stop_gradient(self._answers[0](features, training=False))
        if self.softmax == "training":
            # Deviation: the paper takes the softmax of the weights when they are trained; inside
            # the loss what is trained is what predicts.
            mean = self.average(answers)
        else:
            mean = tf.maximum(
                tf.einsum("brc,r->bc", answers, tf.convert_to_tensor(self.average.weight)), 1e-7
            )
            mean = mean / tf.reduce_sum(mean, axis=1, keepdims=True)
        losses = -tf.reduce_sum(
            tf.gather(self._targets, rows) * tf.math.log(tf.maximum(mean, 1e-7)), axis=1
        )
        return tf.reduce_sum(losses), tf.cast(tf.size(losses), tf.float32)


@keras.saving.register_keras_serializable("neucrowd_tf")
class CyclicSGD(keras.optimizers.Optimizer):
    """SGD with a cyclic learning rate.

    The rate runs up and down between two bounds while the momentum runs the other way.

    Args:
        low, high: of the learning rate.
        momentum_low, momentum_high: momentum is high where the rate is low.
        half_cycle: steps from one bound to the other.

    References:
        Smith (2017), Cyclical learning rates for training neural networks, section 3; DASC, section
        4.1.
    """

    def __init__(
        self,
        low: float = 1e-3,
        high: float = 1e-2,
        momentum_low: float = 0.8,
        momentum_high: float = 0.9,
        half_cycle: int = 100,
        name: str = "cyclic_sgd",
    ) -> None:
        super().__init__(learning_rate=low, name=name)
        self.low, self.high, self.momentum_low, self.momentum_high, self.half_cycle = (
            low,
            high,
            momentum_low,
            momentum_high,
            half_cycle,
        )
        self._velocities: list[Any] = []

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._velocities = [
            self.add_variable_from_reference(variable, name="velocity") for variable in variables
        ]

    def phase(self) -> Any:
        """Returns the position of the next step in the triangle.

        It is 0 at the low rate and 1 at the high one.
        """
        place = ops.cast(self.iterations, "float32") / self.half_cycle
        return 1.0 - ops.abs(place % 2.0 - 1.0)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        height = self.phase()
        rate = ops.cast(self.low + (self.high - self.low) * height, variable.dtype)
        momentum = ops.cast(
            self.momentum_high - (self.momentum_high - self.momentum_low) * height, variable.dtype
        )
        velocity = self._velocities[self._get_variable_index(variable)]
        step = (
            ops.cast(velocity, variable.dtype) * momentum
            - ops.cast(gradient, variable.dtype) * rate
        )
        self.assign(velocity, step)
        self.assign_add(variable, step)

    def get_config(self) -> dict[str, Any]:
        names = ("low", "high", "momentum_low", "momentum_high", "half_cycle", "name")
        return {name: getattr(self, name) for name in names}
