"""CrowdAR: the reliability of each annotation.

It follows from the instance's difficulty and the annotator's expertise.
"""

from __future__ import annotations

from typing import Annotated, Any

from neucrowd_tf.crowd_layers.instance_layer import SharedFeaturesLayer
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator, number
from neucrowd_tf.training.estimator import TrainingData


@registered(
    "crowdar",
    "CrowdAR: annotations softened by their reliability, which learns from the classifier",
)
@estimator
class CrowdAR(SharedFeaturesLayer):
    """A classifier behind annotators' matrices, trained on labels softened by reliability.

    The base ends in a dense layer; the layers before it say how difficult an instance is.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Cao et al. (2023), eqs. 1 to 5.
    """

    annotation_share: Annotated[
        float, number(least=0, most=1), "lambda: the annotations' part of the loss."
    ] = 0.9

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.reliability import ReliabilityHead

        return ReliabilityHead(num_annotators, name="reliability")

    def _annotation_model(self, data: TrainingData) -> tuple[Any, dict[str, Any]]:
        from baselines.annotation_models import ReliabilityModel

        return ReliabilityModel, {"share": self.annotation_share}


SelfTrainedCrowdAR = self_trained("crowdar", CrowdAR, "CrowdAR")
