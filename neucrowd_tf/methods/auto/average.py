"""The calibrated geometric mean of fitted classifiers, as one classifier that can be exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from scipy.special import log_softmax, softmax

from neucrowd_tf.declare.declarations import estimator, fitted
from neucrowd_tf.declare.types import Array, Estimator, Floats, Floats32, Layer, Network
from neucrowd_tf.training.estimator import CrowdEstimator

# A smaller probability counts as this, so that one certain member does not overrule all others.
LEAST = 1e-4


def log_probabilities(probabilities: Array) -> Floats:
    """Returns `log max(p, LEAST)`."""
    return np.asarray(np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), LEAST)))


def mean_logits(
    predictions: Sequence[Array], weights: Sequence[float] | Floats | None = None
) -> Floats:
    """Returns the log of the members' geometric mean, `[M, C]`, scaled to sum to one.

    Args:
        predictions: `[M, C]` by member.
        weights: of the members; None for equal weights.
    """
    logs = list(map(log_probabilities, predictions))
    return np.asarray(log_softmax(np.average(logs, axis=0, weights=weights), axis=1))


@estimator
class Average(CrowdEstimator):
    """The geometric mean of classifiers' probabilities, at a temperature; made by `Average.of`.

    Probabilities are `softmax(sum_m w_m log max(p_m, LEAST) / T + shift)`.

    Attributes:
        members_: fitted estimators, M.
        weights_: w, `[M]`; they sum to one.
        temperature_: T; above 1 makes probabilities less extreme.
        shift_: `[C]` added to the logits: minus the log class shares for a balanced target, else
            zeros.
    """

    takes_texts: ClassVar[bool] = True  # the members convert them to the same numbers
    distributed: ClassVar[bool] = True

    members_: list[Estimator] = fitted()
    weights_: Floats = fitted()
    temperature_: float = fitted()
    shift_: Floats = fitted()

    @classmethod
    def of(
        cls,
        members: Sequence[CrowdEstimator],
        temperature: float,
        shift: Floats,
        weights: Sequence[float] | Floats,
    ) -> Self:
        """Returns the average of fitted estimators of the same classes and features."""
        average = cls()
        first = members[0]
        average.classes_ = first.classes_
        average.feature_shape_ = first.feature_shape_
        average.n_features_in_ = first.n_features_in_
        average.members_ = list(members)
        average.weights_ = np.asarray(weights, np.float64) / np.sum(weights)
        average.temperature_ = float(temperature)
        average.shift_ = np.asarray(shift, np.float64)
        return average

    def _predict_proba(self, features: Floats32) -> Array:
        logits = mean_logits(
            [member.predict_proba(features) for member in self.members_], self.weights_
        )
        return np.asarray(softmax(logits / self.temperature_ + self.shift_, axis=1))

    def _inference_model(self) -> Network:
        """Returns a Keras model that contains the members' models and averages them."""
        import keras

        models = [member.inference_model() for member in self.members_]
        matrices, places = self._projections()
        width = sum(one.shape[1] for one in matrices)
        if matrices:
            shape = (width,)
        else:
            shape = models[0].input_shape[1:]
        inputs = keras.Input(shape=shape, dtype="float32", name="features")
        logs = []
        for number, model in enumerate(models):
            model.name = f"member_{number}"  # Keras requires different names
            if matrices:
                part = inputs[:, places[number]]
            else:
                part = inputs
            probabilities = model(part)["probabilities"]
            probabilities = keras.ops.cast(probabilities, "float32")
            logs.append(keras.ops.log(keras.ops.maximum(probabilities, LEAST)))
        weights = self.weights_.astype(np.float32)[:, None, None]
        mean = keras.ops.sum(keras.ops.stack(logs) * weights, axis=0)
        # `mean_logits` also subtracts each row's log sum, which cancels in the softmax.
        shifted = mean / self.temperature_ + self.shift_[None].astype(np.float32)
        return keras.Model(inputs, {"probabilities": keras.ops.softmax(shifted, axis=-1)})

    def text_layer(self) -> Layer:
        """Returns the layer that converts texts to the members' features, side by side."""
        matrices, _ = self._projections()
        first = self.members_[0]
        if matrices:
            return first.encoder_.layer(np.hstack(matrices))
        return first.text_layer()

    def _projections(self) -> tuple[list[Array], list[slice]]:
        """Returns matrices from TF-IDF to members' features, and each member's place in them."""
        matrices: list[Array] = []
        places: list[slice] = []
        for member in self.members_ if hasattr(self.members_[0], "projection") else ():
            matrix = member.projection()
            same = (at for at, one in enumerate(matrices) if np.array_equal(one, matrix))
            if (at := next(same, len(matrices))) == len(matrices):
                matrices.append(matrix)
            start = sum(one.shape[1] for one in matrices[:at])
            places.append(slice(start, start + matrix.shape[1]))
        return matrices, places
