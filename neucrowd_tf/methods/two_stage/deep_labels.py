"""Two stages with a network: labels from an aggregator, then a deep classifier."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from neucrowd_tf.declare.declarations import estimator
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Fields, Network
from neucrowd_tf.methods.crowd_layers.common.classifier import NetworkClassifier
from neucrowd_tf.methods.crowd_layers.common.imbalance import CLASS_WEIGHT, class_weight_of
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import (
    CLASSIFIER_PRESETS,
    CLASSIFIER_STRONGER,
    SPACE,
)
from neucrowd_tf.methods.two_stage.labels_first import Labels, LabelsFirst
from neucrowd_tf.training.estimator import TrainingData

# The baselines of section 3.2 of ICED, and of section 4.1 of DASC.
_ICED: Fields = {
    "hidden_units": (128, 64),
    "dropout": 0.0,
    "batch_size": 32,
    "epochs": 20,
    "l2": 0.0,
}
_DASC: Fields = {"presets": CLASSIFIER_PRESETS, "stronger": CLASSIFIER_STRONGER}


@estimator
class DeepLabels(LabelsFirst, NetworkClassifier):
    """An aggregator's labels and a Keras classifier trained on them.

    Attributes:
        labels_, probas_: `[N]` class codes and `[N, C]` probabilities that the aggregator gave to
            the training instances.
        confusion_matrices_: `[R, C true, C observed]`, the aggregator's; None for vote counts.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_, n_iter_, best_epoch_, rows_: see `NetworkClassifier`.
    """

    reads_batches: ClassVar[bool] = True

    base: Network = "dense"  # declared again: here it is not the first argument, so keyword-only
    class_weight: Annotated[
        Any, CLASS_WEIGHT, 'weights of labels by class, such as {"cat": 2.0}; others weigh 1.'
    ] = None
    labels: Labels = "hard"

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        targets = self._infer(data.annotations)
        network.model.set_targets(targets * class_weight_of(self.class_weight, self.classes_))


for _aggregator, _stage in (("mv", "majority vote"), ("ds", "Dawid-Skene")):
    register_method(
        f"{_aggregator}_dnn",
        summary=f"{_stage}, then a network of two hidden layers",
        defaults={**_ICED, "aggregator": _aggregator},
        requires_identities=_aggregator == "ds",
        space=SPACE,
    )(DeepLabels)
    register_method(
        f"{_aggregator}_dl",
        summary=f"{_stage}, then the base network of the crowd-layer models",
        defaults={"aggregator": _aggregator},
        requires_identities=_aggregator == "ds",
        space=SPACE,
        **_DASC,
    )(DeepLabels)


@register_method(
    "gold_dl",
    summary="the true labels and the base network of the crowd-layer models: an upper bound, not a"
    " crowd method",
    defaults={"aggregator": "mv"},
    uses_truth=True,
    space=SPACE,
    **_DASC,
)
@estimator
class GoldDeep(DeepLabels):
    """The classifier of `mv_dl` trained on true labels: those of one annotator, always right."""

    uses_truth: ClassVar[bool] = True
