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


def log_probabilities(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Returns `log max(p, LEAST)`."""
    return np.asarray(np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), LEAST)))


def mean_logits(
    predictions: Sequence[NDArray[Any]],
    weights: Sequence[float] | NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Returns the log of the members' geometric mean, `[M, C]`, scaled to sum to one.

    Args:
        predictions: `[M, C]` by member.
        weights: how much each member counts; None for all alike.
    """
    logs = [log_probabilities(one) for one in predictions]
    return np.asarray(log_softmax(np.average(logs, axis=0, weights=weights), axis=1))


@estimator
class Average(CrowdEstimator):
    """The geometric mean of classifiers' probabilities, at a temperature; made by `Average.of`.

    Probabilities are `softmax(sum_m w_m log max(p_m, LEAST) / T + shift)`.

    Attributes:
        members_: fitted estimators, M.
        names_: what they are called, `[M]`.
        weights_: w, how much each counts, `[M]`; they sum to one.
        temperature_: T; above 1 makes less sure.
        shift_: `[C]` added to the logits: minus the log of the classes' shares where these are to
            count as equal, else zeros.
    """

    takes_texts: ClassVar[bool] = True  # the members make the same numbers of them
    distributed: ClassVar[bool] = True

    members_: list[Any] = fitted()
    names_: list[str] = fitted()
    weights_: NDArray[np.float64] = fitted()
    temperature_: float = fitted()
    shift_: NDArray[np.float64] = fitted()

    @classmethod
    def of(
        cls,
        members: Sequence[CrowdEstimator],
        names: Sequence[str],
        temperature: float,
        shift: NDArray[np.float64],
        weights: Sequence[float] | NDArray[np.float64] | None = None,
    ) -> Self:
        """Returns the average of fitted estimators of the same classes and features; all count
        alike where no weights are given.
        """
        made, first = cls(), members[0]
        texts = hasattr(first, "text_features_")
        made.classes_ = first.classes_
        made.feature_shape_ = () if texts else first.feature_shape_
        made.n_features_in_ = 1 if texts else first.n_features_in_
        made.members_, made.names_ = list(members), list(names)
        given = np.ones(len(members)) if weights is None else np.asarray(weights, np.float64)
        made.weights_ = given / given.sum()
        made.temperature_, made.shift_ = float(temperature), np.asarray(shift, dtype=np.float64)
        return made

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        logits = mean_logits(
            [member.predict_proba(features) for member in self.members_], self.weights_
        )
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
        weights = self.weights_.astype(np.float32)[:, None, None]
        mean = keras.ops.sum(keras.ops.stack(logs) * weights, axis=0)
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
        return Average.of(members, self.names_, self.temperature_, self.shift_, self.weights_)

    def text_layer(self) -> Any:
        return self.members_[0].text_layer()
