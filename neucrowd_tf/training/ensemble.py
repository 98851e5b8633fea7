"""Averages of several fits: of one method with several seeds, or of several methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from neucrowd_tf.annotations.votes import Scale, scale_of
from neucrowd_tf.declare.declarations import Constraint, estimator, fitted, whole
from neucrowd_tf.declare.types import Array, Estimator, Floats32, Network
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

# Members' seeds lie this far apart, away from those of rounds and restarts.
MEMBER_SEEDS = 104_729


@estimator
class MeanOfFits(CrowdEstimator):
    """The mean of the class probabilities of several fits; a subclass says what is fitted.

    It is exported as one model.

    Attributes:
        members_: the fitted estimators.
        confusion_matrices_: `[R, C true, C observed]`, the members' mean; None where one has none.
    """

    distributed: ClassVar[bool] = True

    size: Annotated[int, whole(1), "fits of each estimator; the first uses the seed itself."] = 4

    members_: list[Estimator] = fitted()
    confusion_matrices_: Floats32 | None = fitted()

    def _estimators(self) -> Sequence[Any]:
        """Returns unfitted estimators."""
        raise NotImplementedError

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.members_ = []
        for index in range(self.size):
            for place, unfitted in enumerate(self._estimators()):
                member = clone(unfitted)
                if "seed" in member.get_params(deep=False):
                    member.set_params(seed=(self.seed + MEMBER_SEEDS * index) % 2**31)
                stage = run.stage(f"member-{index}-{place}")
                self.members_.append(
                    member.fit(data.features, data.annotations, data.named_validation, run=stage)
                )
        self.confusion_matrices_ = None
        matrices = []
        for member in self.members_:
            matrix = getattr(member, "confusion_matrices_", None)
            if matrix is None:
                return
            matrices.append(matrix)
        self.confusion_matrices_ = np.mean(matrices, axis=0)

    def _mean(self, method: str, features: Floats32) -> Array:
        """Returns the mean of what a method of each member returns."""
        return np.mean([getattr(member, method)(features) for member in self.members_], axis=0)

    def _predict_proba(self, features: Floats32) -> Array:
        return self._mean("predict_proba", features)

    def predict_annotators(self, features: ArrayLike) -> Floats32:
        """Returns the members' mean probabilities `[M, R, C]` of each annotator's label.

        Raises:
            AttributeError: a member does not predict annotators.
        """
        return self._mean("predict_annotators", self._check_fitted(features))

    def _inference_model(self) -> Network:
        import keras

        inputs = keras.Input(self.feature_shape_, name="features")
        outputs = []
        for index, member in enumerate(self.members_):
            model = member.inference_model()
            model.name = f"member_{index}"  # layers of one model need names of their own
            outputs.append(model(inputs)["probabilities"])
        mean = outputs[0]
        if len(outputs) > 1:
            mean = keras.layers.Average()(outputs)
        mean = keras.layers.Activation("linear", dtype="float32", name="probabilities")(mean)
        return keras.Model(inputs, {"probabilities": mean}, name="ensemble")


@estimator
class Ensemble(MeanOfFits):
    """The mean of the class probabilities of fits that differ in their seeds.

    Attributes:
        members_, confusion_matrices_: see `MeanOfFits`.
    """

    estimator: Annotated[
        Any,
        Constraint("an estimator", lambda value: hasattr(value, "fit")),
        "estimator whose clones are fitted.",
    ] = dataclasses.field(kw_only=False)

    @property
    def scale(self) -> Scale:
        """The scale of the estimator's classes."""
        return scale_of(self.estimator)

    def _estimators(self) -> Sequence[Any]:
        return [self.estimator]
