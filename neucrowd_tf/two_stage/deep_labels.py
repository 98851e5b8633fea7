"""Two stages with a network: infer one label an instance from the crowd, then train a deep
classifier on it as if it were true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from neucrowd_tf import aggregation
from neucrowd_tf.crowd_layers.network import ClassifierEstimator, Network
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.labels_first import make_aggregator

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DASC = "Shi, Li and Huang (2023), DASC, section 4.1"
_ICED = "ICED, section 3.2"
_PLAIN: Mapping[str, Any] = {
    "hidden_units": (128, 64),
    "dropout": 0.0,
    "batch_size": 32,
    "epochs": 20,
    "l2": 0.0,
}


@register_method(
    "ds_dnn",
    summary="Dawid-Skene, then a network of two hidden layers",
    defaults={**_PLAIN, "aggregator": "ds"},
    requires_identities=True,
    space=SPACE,
    paper=_ICED,
)
@register_method(
    "mv_dnn",
    summary="majority vote, then a network of two hidden layers",
    defaults={**_PLAIN, "aggregator": "mv"},
    space=SPACE,
    paper=_ICED,
)
@register_method(
    "ds_dl",
    summary="Dawid-Skene, then the base network of the crowd-layer models",
    defaults={"aggregator": "ds"},
    requires_identities=True,
    presets=PRESETS["crowd_layer"],
    space=SPACE,
    paper=_DASC,
)
@register_method(
    "mv_dl",
    summary="majority vote, then the base network of the crowd-layer models",
    defaults={"aggregator": "mv"},
    presets=PRESETS["crowd_layer"],
    space=SPACE,
    paper=_DASC,
)
class DeepLabels(ClassifierEstimator):
    """An aggregator's labels and a Keras classifier trained on them.

    Args:
        aggregator: "mv" (majority vote), "ds" (Dawid and Skene) or "glad"; or an unfitted
            aggregator.
        labels: "hard" trains on the most probable class, "soft" on the aggregator's probabilities.
        ties: what decides between classes with equally many votes: "random", "first" or "prior"
            (majority vote alone).
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise, augment,
        pretrained, weights, optimizer,
            learning_rate, batch_size, epochs, monitor, patience, validation_fraction, seed: as of
            `CrowdLayer`.

    Attributes:
        labels_, probas_: `[N]` class codes and `[N, C]` probabilities that the aggregator gave to
            the training instances.
        confusion_matrices_: `[R, C true, C observed]`, the aggregator's, or None where it is not
            known who voted.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_, n_iter_, best_epoch_, rows_: as of `CrowdLayer`.
    """

    labels_: NDArray[np.int64]
    probas_: NDArray[np.float64]
    confusion_matrices_: NDArray[np.float64] | None

    def __init__(
        self,
        aggregator: str | aggregation.Aggregator = "mv",
        *,
        labels: Literal["hard", "soft"] = "hard",
        ties: str = "random",
        base: str | Any | Callable[..., Any] = "dense",
        hidden_units: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.5,
        batch_norm: bool = False,
        l2: float = 5e-4,
        square_root: bool = False,
        standardise: bool = True,
        augment: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        epochs: int = 50,
        monitor: str | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.aggregator = aggregator
        self.labels = labels
        self.ties = ties
        self.base = base
        self.hidden_units = hidden_units
        self.activation = activation
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.l2 = l2
        self.square_root = square_root
        self.standardise = standardise
        self.augment = augment
        self.pretrained = pretrained
        self.weights = weights
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.monitor = monitor
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.seed = seed

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.labels not in ("hard", "soft"):
            raise UsageError(f"labels: expected 'hard' or 'soft', received {self.labels!r}")

    def _build(self, data: TrainingData) -> Network:
        import keras

        from neucrowd_tf.crowd_layers.bases import standardised
        from neucrowd_tf.crowd_layers.target_model import TargetModel

        base = self._make_base(data.features.shape[1:], len(self.classes_))
        classifier, layer = standardised(base, data.features.shape[1:], self.square_root)
        model = TargetModel(
            classifier, data.features, len(self.classes_), augment=self._augmentation()
        )
        whole = keras.Model(
            classifier.input, {"probabilities": classifier.output}, name="deep_labels"
        )
        return Network(model=model, whole=whole, base=base, standardise=layer)

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        from sklearn.base import clone

        stage = (
            make_aggregator(self.aggregator, self.seed, self.ties)
            if isinstance(self.aggregator, str)
            else clone(self.aggregator)
        )
        if not isinstance(stage, aggregation.MajorityVote):
            data.annotations.require_identities(f"{type(stage).__name__} with a network")
        stage.fit(data.annotations)
        self.labels_, self.probas_, self.confusion_matrices_ = (
            stage.labels_,
            stage.probas_,
            stage.errors_,
        )
        targets = (
            self.probas_ if self.labels == "soft" else np.eye(len(self.classes_))[self.labels_]
        )
        network.model.set_targets(targets)


@register_method(
    "gold_dl",
    summary=(
        "the true labels and the base network of the crowd-layer models: an upper bound, not a"
        " crowd method"
    ),
    defaults={"aggregator": "mv"},
    uses_truth=True,
    presets=PRESETS["crowd_layer"],
    space=SPACE,
    paper=_DASC,
)
class GoldLabels(DeepLabels):
    """The same classifier trained on true labels: what is attainable on the features, never a crowd
    method.

    `fit` is given the truth as the annotations of one annotator who is always right.
    """

    uses_truth: ClassVar[bool] = True

    def _fit(self, data: TrainingData, run: Run) -> None:
        if data.annotations.num_annotators != 1:
            received = data.annotations.num_annotators
            raise UsageError(
                "gold labels: expected the true labels as those of one annotator, received"
                f" {received} annotators"
            )
        super()._fit(data, run)
