"""The mean of fitted classifiers as one classifier, calibrated, which exports as one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.arguments import estimator, fitted
from neucrowd_tf.training.estimator import CrowdEstimator
from neucrowd_tf.training.run import Run

# A member that is sure beyond this does not overrule all others together.
LEAST = 1e-4


def mean_logits(predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Returns the log of the members' geometric mean, `[M, C]`, scaled to sum to one."""
    logs = [np.log(np.maximum(np.asarray(p, dtype=np.float64), LEAST)) for p in predictions]
    return np.asarray(log_softmax(np.mean(logs, axis=0), axis=1))


@estimator
class Average(CrowdEstimator):
    """The geometric mean of classifiers' probabilities, at a temperature; made by `Average.of`.

    Probabilities are `softmax(mean_m log max(p_m, LEAST) / T + shift)`.

    Attributes:
        members_: fitted estimators, M.
        names_: what they are called, `[M]`.
        temperature_: T; above 1 makes less sure.
        shift_: `[C]` added to the logits: minus the log of the classes' shares where these are to
            count as equal, else zeros.
    """

    takes_texts: ClassVar[bool] = True  # the members make the same numbers of them
    distributed: ClassVar[bool] = True

    members_: list[Any] = fitted()
    names_: list[str] = fitted()
    temperature_: float = fitted()
    shift_: NDArray[np.float64] = fitted()

    @classmethod
    def of(
        cls,
        members: Sequence[CrowdEstimator],
        names: Sequence[str],
        temperature: float,
        shift: NDArray[np.float64],
    ) -> Self:
        """Returns the average of fitted estimators of the same classes and features."""
        made, first = cls(), members[0]
        texts = hasattr(first, "text_features_")
        made.classes_ = first.classes_
        made.feature_shape_ = () if texts else first.feature_shape_
        made.n_features_in_ = 1 if texts else first.n_features_in_
        made.members_, made.names_ = list(members), list(names)
        made.temperature_, made.shift_ = float(temperature), np.asarray(shift, dtype=np.float64)
        return made

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        logits = mean_logits([member.predict_proba(features) for member in self.members_])
        return np.asarray(softmax(logits / self.temperature_ + self.shift_, axis=1))

    def inference_model(self) -> Any:
        """Returns a Keras model that holds the members' and averages them."""
        import keras

        shape = tuple(self.members_[0].feature_shape_)
        inputs = keras.Input(shape=shape, dtype="float32", name="features")
        logs = []
        for number, member in enumerate(self.members_):
            model = member.inference_model()
            model.name = f"member_{number}"  # Keras takes no two of one name
            probabilities = model(inputs)["probabilities"]
            probabilities = keras.ops.cast(probabilities, "float32")
            logs.append(keras.ops.log(keras.ops.maximum(probabilities, LEAST)))
        mean = keras.ops.mean(keras.ops.stack(logs), axis=0)
        # A row's sum, which `predict_proba` takes out before, would cancel in the softmax.
        shifted = mean / self.temperature_ + self.shift_[None].astype(np.float32)
        return keras.Model(inputs, {"probabilities": keras.ops.softmax(shifted, axis=-1)})

    def refitted(self, features: Any, annotations: Annotations, run: Run) -> Average:
        """Returns the average of the same members, fitted to other (more) instances; how they are
        averaged stays.
        """
        members = [
            clone(member).fit(features, annotations, run=run.stage(name))
            for member, name in zip(self.members_, self.names_, strict=True)
        ]
        return Average.of(members, self.names_, self.temperature_, self.shift_)

    def text_layer(self) -> Any:
        return self.members_[0].text_layer()
