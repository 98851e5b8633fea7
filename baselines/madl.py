"""MaDL: confusions of instance and annotator, and annotators who are alike."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.crowd_layers.instance_layer import SharedFeaturesLayer
from neucrowd_tf.crowd_layers.presets import INSTANCE_PRESETS, registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator, fitted, number, whole
from neucrowd_tf.training.estimator import TrainingData


@registered(
    "madl",
    "MaDL: confusions of instance and annotator; similar annotators count less",
    INSTANCE_PRESETS,
)
@estimator
class MaDL(SharedFeaturesLayer):
    """Classifier behind a confusion matrix per instance and annotator, weighted by similarity.

    Annotators whose embeddings are close to others' count less. The base ends in a dense layer; the
    layers before it represent the instance.

    Attributes:
        annotator_weights_: `[R]`, how much an annotator's labels count; R in sum.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Herde et al. (2023), section 4.
    """

    embedding_size: Annotated[int, whole(1), "of instances and annotators."] = 16
    eta: Annotated[
        float, number(above=0, below=1), "how often an annotator is right before training."
    ] = 0.8

    annotator_weights_: NDArray[np.float32] = fitted()

    # Deviation: the papers have one rate; where features are not fixed, matrices that see the
    # instance learn its labels before the classifier does, and classes swap.
    annotator_learning_rate: float | None = 1e-4

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.instance_confusion import MaDLHead

        return MaDLHead(num_annotators, num_classes, self.embedding_size, self.eta, name="madl")

    def _annotation_model(self, data: TrainingData) -> tuple[Any, dict[str, Any]]:
        from baselines.annotation_models import MaDLModel

        return MaDLModel, {}

    def _finish(self, network: Any, data: TrainingData) -> None:
        super()._finish(network, data)
        weights = network.model.head.annotator_weights()
        self.annotator_weights_ = np.asarray(weights, dtype=np.float32)


SelfTrainedMaDL = self_trained("madl", MaDL, "MaDL")
