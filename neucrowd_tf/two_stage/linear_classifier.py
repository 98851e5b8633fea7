"""Base of the methods whose classifier is one logistic regression on raw features.

They need no TensorFlow to fit and predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from neucrowd_tf.arguments import argument, estimator, fitted, strengths
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.linear import STRENGTHS, LinearHead

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@estimator
class LinearClassifier(CrowdEstimator):
    """A crowd method that predicts with `head_`, which its `_fit` sets."""

    Cs: Sequence[float] = argument(
        STRENGTHS,
        strengths,
        "inverse regularisation strengths, the strongest regularisation first. The one with the"
        " best log loss on the validation data is taken, or by cross-validation over instances"
        " without it.",
    )

    trains_network: ClassVar[bool] = False

    head_: LinearHead = fitted()

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self.head_.predict_proba(features.reshape(len(features), -1))

    def inference_model(self) -> Any:
        """Returns a Keras model: standardise, then a dense softmax."""
        import keras

        inputs = keras.Input(shape=tuple(self.feature_shape_), dtype="float32", name="features")
        hidden = inputs if len(self.feature_shape_) == 1 else keras.layers.Flatten()(inputs)
        for layer in self.head_.layers():
            hidden = layer(hidden)
        return keras.Model(inputs, {"probabilities": hidden})

    @staticmethod
    def _flat(
        data: TrainingData,
    ) -> tuple[NDArray[np.float32], tuple[NDArray[np.float32], NDArray[np.int64]] | None]:
        """Returns features `[N, d]` and validation data, whatever shape a row had."""
        held = data.validation
        return data.features.reshape(len(data.features), -1), (
            None if held is None else (held[0].reshape(len(held[0]), -1), held[1])
        )
