"""Two-stage representation learning: labels by majority vote, EM or GLAD, then an embedding by a
metric-learning objective.

Groups 2 and 3 of both papers' tables. All share NeuCrowd's encoder, budget, validation rule and
downstream classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.arguments import check_number, check_whole
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.representation import DEFAULT_CS, RepresentationEstimator
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.labels_first import AGGREGATORS, make_aggregator

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAMES = {
    "contrastive": "Siamese network with contrastive loss",
    "triplet": "triplet network",
    "triplet_semi": "triplet network with semi-hard negatives",
    "lifted": "lifted structured loss",
    "center": "triplet-center loss",
    "relation_net": "relation network, trained in episodes",
}
_LABELS = {
    "": ("mv", "majority-vote labels"),
    "_ds": ("ds", "Dawid and Skene's labels"),
    "_glad": ("glad", "GLAD's labels"),
}
# Square errors between 0 and 1 are small beside a penalty of 1e-2, under which the embedding dies
# on syn1: validation AUC of seeds 50-52 is .59 to .62 there, and .73 to .80 with 1e-5; on hotel
# (seeds 50-53) .88 with 1e-5, and .73 to .88 with 1e-3.
_DEFAULTS: dict[str, dict[str, Any]] = {"relation_net": {"l2": 1e-5}}
# Chosen by accuracy plus AUC on hotel's validation rows, margins among .2, 1 and 5.
_PRESETS: dict[str, dict[str, dict[str, Any]]] = {"contrastive": {"hotel": {"margin": 5.0}}}
_SPACE: dict[str, tuple[Any, ...]] = {
    "margin": (0.2, 0.5, 1.0, 2.0, 5.0),
    "l2": (1e-5, 1e-4, 1e-3, 1e-2),
    "hidden_units": ((64, 32), (128, 64), (32, 16)),
    "dropout": (0.0, 0.2, 0.4),
    "normalise": (False, True),
}


def _register(estimator: type[MetricLearning]) -> type[MetricLearning]:
    """Registers every objective with every source of labels."""
    for objective, what in _NAMES.items():
        for suffix, (labels, which) in _LABELS.items():
            space = (
                _SPACE
                if objective != "relation_net"
                else {**{k: v for k, v in _SPACE.items() if k != "margin"}, "shots": (1, 5, 10)}
            )
            register_method(
                objective + suffix,
                summary=f"{what} on {which}",
                defaults={"objective": objective, "labels": labels, **_DEFAULTS.get(objective, {})},
                requires_identities=labels != "mv",
                presets=_PRESETS.get(objective, {}),
                space=space,
                paper="Hao, Ding, Liu: NeuCrowd, section 4.2; RLL, section IV-B (groups 2 and 3)",
            )(estimator)
    return estimator


@_register
class MetricLearning(RepresentationEstimator):
    """An embedding network trained by a metric-learning objective on aggregated labels, and
    logistic regression on top.

    Args:
        objective: "contrastive", "triplet", "triplet_semi", "lifted", "center" or "relation_net".
        labels: where labels come from: "mv" (majority vote), "ds" or "ds_one_coin" (Dawid and
            Skene's EM), "glad".
        margin: of the loss; without meaning for "relation_net".
        normalise: whether embeddings are scaled to length one.
        shots: "relation_net" only: support instances of each class in an episode.
        relation_units: "relation_net" only: width of the relation network.
        encoder: a Keras model to use as embedding network in place of fully connected layers; it is
            copied, not trained itself.
        hidden_units, activation, dropout, l2, initializer: the fully connected layers.
        optimizer, learning_rate: by Keras' name.
        batch_size: a step's triplets ("contrastive", "triplet") or instances (the others).
        steps_per_epoch, epochs, patience, monitor: how long to train and which validation figure
            ("auc", "accuracy" or "log_loss") chooses the epoch.
        standardise: whether features are standardised on the training instances.
        Cs: what the downstream logistic regression's C is chosen from.
        validation_fraction: the share held out when `fit` gets no validation data.
        seed: draws everything that is random.

    Attributes:
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_: see `RepresentationEstimator`.

    References:
        NeuCrowd, section 4.2; RLL, section IV-B; the losses' own papers in `neucrowd_tf.nn.losses`.
    """

    def __init__(
        self,
        objective: Literal[
            "contrastive", "triplet", "triplet_semi", "lifted", "center", "relation_net"
        ] = "triplet",
        labels: Literal["mv", "ds", "ds_one_coin", "glad"] = "mv",
        margin: float = 1.0,
        normalise: bool = False,
        shots: int = 5,
        relation_units: int = 32,
        encoder: Any = None,
        hidden_units: Sequence[int] = (64, 32),
        activation: str = "sigmoid",
        dropout: float = 0.2,
        l2: float = 1e-2,
        initializer: Literal["glorot", "normal"] = "glorot",
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        steps_per_epoch: int = 20,
        epochs: int = 20,
        patience: int | None = None,
        monitor: Literal["auc", "accuracy", "log_loss"] = "auc",
        standardise: bool = True,
        Cs: Sequence[float] = DEFAULT_CS,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.objective = objective
        self.labels = labels
        self.margin = margin
        self.normalise = normalise
        self.shots = shots
        self.relation_units = relation_units
        self.encoder = encoder
        self.hidden_units = hidden_units  # type: ignore[assignment]
        self.activation = activation
        self.dropout = dropout
        self.l2 = l2
        self.initializer = initializer
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.steps_per_epoch = steps_per_epoch
        self.epochs = epochs
        self.patience = patience
        self.monitor = monitor
        self.standardise = standardise
        self.Cs = Cs  # type: ignore[assignment]
        self.validation_fraction = validation_fraction
        self.seed = seed

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.objective not in _NAMES:
            raise UsageError(
                f"objective: expected one of {', '.join(_NAMES)}, received {self.objective!r}"
            )
        if self.labels not in AGGREGATORS:
            raise UsageError(
                f"labels: expected one of {', '.join(AGGREGATORS)}, received {self.labels!r}"
            )
        check_number("margin", self.margin, least=0)
        check_whole("shots", self.shots)
        check_whole("relation_units", self.relation_units)

    def _labels(self, data: TrainingData, run: Run) -> NDArray[np.int64]:
        aggregator = make_aggregator(self.labels, self.seed, "random").fit(data.annotations)
        return np.asarray(aggregator.labels_, dtype=np.int64)

    def _make_encoder(self, input_shape: tuple[int, ...], seed: int, name: str = "encoder") -> Any:
        import keras

        encoder = super()._make_encoder(input_shape, seed, name)
        if not self.normalise:
            return encoder
        return keras.Model(
            encoder.input,
            keras.layers.UnitNormalization(name="unit_length")(encoder.output),
            name=name,
        )

    def _trainer(
        self, features: NDArray[np.float32], data: TrainingData, labels: NDArray[np.int64], run: Run
    ) -> tuple[Any, Any]:
        from neucrowd_tf.nn.encoders import make_optimizer

        encoder = self._make_encoder(features.shape[1:], self.seed)
        build: Callable[..., tuple[Any, Any]] = (
            self._triplets if self.objective in ("contrastive", "triplet") else self._whole_batches
        )
        model, batches = build(encoder, features, labels)
        optimizer = make_optimizer(self.optimizer, self.learning_rate)
        model.compile(
            optimizer=optimizer,
            steps_per_execution=run.steps_per_call(self.steps_per_epoch),
            jit_compile=False,
        )
        return model, batches

    def _triplets(
        self, encoder: Any, features: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> tuple[Any, Any]:
        from baselines.metric_models import TripletModel
        from neucrowd_tf.training.tuplets import TupletIndex, uniform_batches

        anchors = np.flatnonzero(np.bincount(labels) >= 2).tolist()
        index = TupletIndex(labels, 1, classes=anchors)
        return TripletModel(
            encoder, features, index, objective=self.objective, margin=self.margin
        ), uniform_batches(self.seed, self.batch_size, 3)

    def _whole_batches(
        self, encoder: Any, features: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> tuple[Any, Any]:
        from baselines.metric_models import BatchModel
        from baselines.relation_net import RelationModel
        from neucrowd_tf.nn.losses import (
            LiftedStructuredLoss,
            SemiHardTripletLoss,
            TripletCenterLoss,
        )
        from neucrowd_tf.training.class_batches import class_batches

        batches = class_batches(self.seed, labels, self.batch_size)
        if self.objective == "relation_net":
            return (
                RelationModel(
                    encoder,
                    features,
                    shots=self.shots,
                    units=self.relation_units,
                    seed=self.seed + 7919,
                ),
                batches,
            )
        losses = {
            "triplet_semi": SemiHardTripletLoss,
            "lifted": LiftedStructuredLoss,
            "center": TripletCenterLoss,
        }
        loss = losses[self.objective](margin=self.margin, reduction="none")
        return (
            BatchModel(
                encoder,
                features,
                labels,
                loss=loss,
                num_classes=len(self.classes_),
                seed=self.seed + 7919,
            ),
            batches,
        )
