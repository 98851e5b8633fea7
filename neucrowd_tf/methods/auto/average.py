"""The calibrated geometric mean of fitted classifiers, as one classifier that can be exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax

from neucrowd_tf.declare.declarations import estimator, fitted
from neucrowd_tf.declare.types import Array, Estimator, Floats, Floats32, Layer, Network
from neucrowd_tf.training.estimator import CrowdEstimator

# A smaller probability counts as this, so that one certain member does not overrule all others.
LEAST = 1e-4


def log_probabilities(probabilities: ArrayLike) -> Floats:
    """Returns `log max(p, LEAST)` of probabilities of any shape."""
    return np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), LEAST))


def mean_logits(
    predictions: Sequence[Array] | Array, weights: Sequence[float] | Floats | None = None
) -> Floats:
    """Returns the log of the members' geometric mean, `[N, C]`, scaled to sum to one.

    Args:
        predictions: `[N, C]` by member.
        weights: of the members; None for equal weights.
    """
    logs = log_probabilities(predictions)
    return log_softmax(np.average(logs, axis=0, weights=weights), axis=1)


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
        average.weights_ = np.divide(weights, np.sum(weights))
        average.temperature_ = temperature
        average.shift_ = shift
        return average

    def _predict_proba(self, features: Floats32) -> Array:
        logits = mean_logits(
            [member.predict_proba(features) for member in self.members_], self.weights_
        )
        return softmax(logits / self.temperature_ + self.shift_, axis=1)

    def _inference_model(self) -> Network:
        """Returns a Keras model that contains the members' models and averages them."""
        import keras

        models = [member.inference_model() for member in self.members_]
        projection, columns = self._projections()
        shape = models[0].input_shape[1:]
        if columns:
            shape = projection.shape[1:]
        inputs = keras.Input(shape=shape, dtype="float32", name="features")
        logs = []
        for index, model in enumerate(models):
            model.name = f"member_{index}"  # Keras requires different names
            features = inputs
            if columns:
                features = inputs[:, columns[index]]
            probabilities = model(features)["probabilities"]
            probabilities = keras.ops.cast(probabilities, "float32")
            logs.append(keras.ops.log(keras.ops.maximum(probabilities, LEAST)))
        weights = self.weights_.astype(np.float32)[:, None, None]
        mean = keras.ops.sum(keras.ops.stack(logs) * weights, axis=0)
        # `mean_logits` also subtracts each row's log sum, which cancels in the softmax.
        shifted = mean / self.temperature_ + self.shift_[None].astype(np.float32)
        return keras.Model(inputs, {"probabilities": keras.ops.softmax(shifted, axis=-1)})

    def text_layer(self) -> Layer:
        """Returns the layer that converts texts to the members' features, side by side."""
        projection, columns = self._projections()
        first = self.members_[0]
        if columns:
            return first.encoder_.layer(projection)
        return first.text_layer()

    def _projections(self) -> tuple[Array, list[slice]]:
        """Returns how members of texts get their features from TF-IDF.

        Returns:
            `[V + W, k]` the members' distinct matrices side by side, and each member's columns;
                empty if members do not take texts.
        """
        first = self.members_[0]
        if not hasattr(first, "projection"):
            return np.zeros((0, 0)), []
        matrices: list[Array] = []
        columns_of: dict[bytes, slice] = {}
        columns = []
        start = 0
        for member in self.members_:
            matrix = member.projection()
            key = matrix.tobytes()
            if key not in columns_of:
                stop = start + matrix.shape[1]
                columns_of[key] = slice(start, stop)
                matrices.append(matrix)
                start = stop
            columns.append(columns_of[key])
        return np.hstack(matrices), columns
