"""Crowd layers whose answers depend on the instance as well as on its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.declare import estimator
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.features import blocks_of

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray


@estimator
class InstanceLayer(AnnotatorEstimator):
    """Base of crowd layers of which corners of the simplex alone say nothing.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
    """

    def _confusion_matrices(self, network: Any, data: TrainingData) -> NDArray[np.float32]:
        classes, annotators = len(self.classes_), data.annotations.num_annotators
        sums, mass = np.zeros((annotators, classes, classes)), np.zeros(classes)
        rows = max(1, min(self._rows_at_once(), (1 << 22) // (annotators * classes)))
        for _, block in blocks_of(data.features, rows):
            probabilities = self._predict_proba(block).astype(np.float64)
            answers = self._outputs("annotators", block)
            sums += np.einsum("bt,brc->rtc", probabilities, answers, optimize=True)
            mass += probabilities.sum(axis=0)
        means = sums / np.maximum(mass, 1e-12)[None, :, None]
        return np.asarray(
            means / np.maximum(means.sum(axis=2, keepdims=True), 1e-12), dtype=np.float32
        )


@estimator
class SharedFeaturesLayer(InstanceLayer):
    """Base of crowd layers whose head takes shared features, too.

    These are the features before the base's last dense layer. The loss goes over single
    annotations.
    """

    def _graph(self, base: keras.Model, standardised: Any, head: Any) -> tuple[Any, Any]:
        from neucrowd_tf.crowd_layers.heads.instance_confusion import shared_features

        probabilities, features = shared_features(base, standardised)
        return head([probabilities, features]), probabilities

    def _few_cells(self, data: TrainingData) -> bool:
        return True
