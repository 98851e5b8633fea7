"""COIN-Net: confusion matrices, and instances that follow none of them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator, fitted, number
from neucrowd_tf.training.estimator import TrainingData


@registered(
    "coinnet",
    "COIN-Net: confusion matrices with the largest volume, and a shift that few instances have",
)
@estimator
class COINNet(AnnotatorEstimator):
    """A classifier and confusion matrices, with a sparse shift of the answers to outliers.

    The volume of the class probabilities is part of the loss. A penalty keeps the shift of an
    instance at 0, except for outliers.

    Attributes:
        outlier_scores_: `[N]`: the sum of squares of the shifts of a training instance's answers.
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Nguyen, Ibrahim and Fu (2024), section 4.
    """

    volume_weight: Annotated[float, number(least=0), "lambda_1, of the volume."] = 0.01
    outlier_weight: Annotated[float, number(least=0), "lambda_2, of the outliers."] = 0.01
    outlier_power: Annotated[
        float, number(above=0), "of an instance's sum of squares; less makes fewer outliers."
    ] = 0.2

    outlier_scores_: NDArray[np.float32] = fitted()

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.geocrowdnet import GeoCrowdNetHead

        return GeoCrowdNetHead(num_annotators, "F", self.volume_weight, name="coinnet")

    def _annotation_model(self, data: TrainingData) -> tuple[Any, dict[str, Any]]:
        from baselines.annotation_models import OutlierModel

        shape = data.annotations.num_annotations, len(self.classes_)
        weights = {"sparsity": self.outlier_weight, "power": self.outlier_power}
        return OutlierModel, {"shape": shape, **weights}

    def _finish(self, network: Any, data: TrainingData) -> None:
        super()._finish(network, data)
        crowd = data.annotations
        shifts = np.asarray(network.model.outliers(np.arange(crowd.num_annotations)))
        squares = np.square(shifts).sum(axis=1)
        # The model has annotations in the order of their instances.
        instances = np.sort(crowd.instances, kind="stable")
        scores = np.bincount(instances, weights=squares, minlength=crowd.num_instances)
        self.outlier_scores_ = scores.astype(np.float32)


SelfTrainedCOINNet = self_trained("coinnet", COINNet, "COIN-Net")
