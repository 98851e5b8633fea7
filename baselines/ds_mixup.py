"""Dawid and Skene's labels, then a network trained with mixup.

Recent papers often omit this simple pair from their comparisons.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Network
from neucrowd_tf.methods.crowd_layers.common.presets import CLASSIFIER_PRESETS, SPACE
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from neucrowd_tf.training.estimator import TrainingData

from .ds_mixup_model import MixupModel


@register_method(
    "ds_mixup",
    summary="Dawid-Skene's posteriors, then a network trained with mixup",
    presets=CLASSIFIER_PRESETS,
    space={**SPACE, "alpha": (0.2, 0.4, 1.0)},
)
@estimator
class DawidSkeneMixup(DeepLabels):
    """A classifier trained on mixed instances with mixed labels, which an aggregator gave.

    Attributes:
        labels_, probas_, confusion_matrices_, model_, history_, n_iter_, best_epoch_, rows_: see
            `DeepLabels`.

    References:
        Zhang et al. (2018), eq. 1; Dawid and Skene (1979).
    """

    requires_identities: ClassVar[bool] = True

    aggregator: str | Aggregator = "ds"
    labels: Literal["hard", "soft"] = "soft"
    alpha: Annotated[
        float, number(above=0), "parameter of the Beta distribution; near 0 nothing is mixed."
    ] = 1.0

    def _model(self, classifier: Network, data: TrainingData) -> Network:
        return MixupModel(
            classifier, data.features, len(self.classes_), self._augmentation(), alpha=self.alpha
        )
