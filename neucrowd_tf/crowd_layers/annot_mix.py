"""annot-mix: mixup of instances, annotators and labels."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from neucrowd_tf.crowd_layers.instance_layer import SharedFeaturesLayer
from neucrowd_tf.crowd_layers.presets import INSTANCE_PRESETS, registered
from neucrowd_tf.declare import estimator, number, whole
from neucrowd_tf.training.estimator import TrainingData


@registered(
    "annot_mix",
    "annot-mix: confusions of instance and annotator, trained on mixed instances, annotators and"
    " labels",
    INSTANCE_PRESETS,
)
@estimator
class AnnotMix(SharedFeaturesLayer):
    """Classifier behind a confusion matrix per instance and annotator, trained on mixtures.

    Instances, annotators and labels are mixed. The base ends in a dense layer; the layers before it
    represent the instance.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Herde et al. (2024), section 3.
    """

    # What is mixed are features as they are given.
    standardised_once: ClassVar[bool] = False

    alpha: Annotated[
        float, number(above=0), "of the coefficients' Beta distribution; near 0 nothing is mixed."
    ] = 1.0
    eta: Annotated[
        float, number(above=0, below=1), "how often an annotator is right before training."
    ] = 0.9
    embedding_size: Annotated[int, whole(1), "of instances and annotators."] = 128

    # Deviation: the papers have one rate; where features are not fixed, matrices that see the
    # instance learn its labels before the classifier does, and classes swap.
    annotator_learning_rate: float | None = 1e-4

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.instance_confusion import AnnotMixHead

        return AnnotMixHead(
            num_annotators, num_classes, self.embedding_size, self.eta, name="annot_mix"
        )

    def _annotation_model(self, data: TrainingData) -> tuple[Any, dict[str, Any]]:
        from neucrowd_tf.crowd_layers.annot_mix_model import AnnotMixModel

        return AnnotMixModel, {"alpha": self.alpha}
