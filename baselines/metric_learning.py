"""Two-stage representation learning: aggregated labels, then metric learning.

Labels come from majority vote, EM or GLAD.

Groups 2 and 3 of both papers' tables. All share NeuCrowd's encoder, budget, validation rule and
downstream classifier.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated

import keras
import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number, one_of, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Fields, Indices, Network
from neucrowd_tf.methods.two_stage.labels_first import AGGREGATORS
from neucrowd_tf.nn import losses
from neucrowd_tf.training.batches import uniform_batches
from neucrowd_tf.training.representation import (
    ENCODER_SPACE,
    EQUAL_PRESETS,
    SECOND_SEED,
    EmbeddingData,
    RepresentationEstimator,
)
from neucrowd_tf.training.tuplet_index import TupletIndex

from .metric_models import BatchModel, MarginModel, class_batches
from .relation_net import RelationModel

_SETTINGS = settings_in(Path(__file__).with_suffix(".toml"))
_OBJECTIVES: dict[str, Fields] = _SETTINGS["objectives"]
_BATCH_LOSSES = {
    "triplet_semi": losses.semihard_triplet_loss,
    "lifted": losses.lifted_structured_loss,
    "center": losses.triplet_center_loss,
}


@estimator
class MetricLearning(RepresentationEstimator):
    """An embedding trained by a metric-learning objective on aggregated labels.

    A logistic regression on the embedding classifies.

    Attributes:
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_, kept_: see
            `RepresentationEstimator`.

    References:
        NeuCrowd, section 4.2; RLL, section IV-B; the losses' own papers in `neucrowd_tf.nn.losses`.
    """

    objective: Annotated[
        str,
        one_of(*_OBJECTIVES),
        '"contrastive", "triplet", "triplet_semi", "lifted", "center" or "relation_net".',
    ] = dataclasses.field(default="triplet", kw_only=False)
    labels: Annotated[
        str,
        one_of(*AGGREGATORS),
        'source of the labels: "mv" (majority vote), "ds" or "ds_one_coin" (Dawid and'
        ' Skene\'s EM), "glad".',
    ] = "mv"
    margin: Annotated[
        float, number(least=0), 'of the loss; without meaning for "relation_net".'
    ] = 1.0
    normalise: Annotated[bool, "whether embeddings are scaled to length one."] = False
    shots: Annotated[
        int, whole(1), '"relation_net" only: support instances of each class in an episode.'
    ] = 5

    def _consensus(self, annotations: Annotations) -> Indices:
        aggregator = AGGREGATORS[self.labels](seed=self.seed).fit(annotations)
        return np.asarray(aggregator.labels_, dtype=np.int64)

    def _make_encoder(
        self, input_shape: tuple[int, ...], seed: int, name: str = "encoder"
    ) -> Network:
        encoder = super()._make_encoder(input_shape, seed, name)
        if not self.normalise:
            return encoder
        unit = keras.layers.UnitNormalization(name="unit_length")(encoder.output)
        return keras.Model(encoder.input, unit, name=name)

    def _model_and_batches(self, data: EmbeddingData) -> tuple[Network, Network]:
        """Returns a model with the objective's loss, and the batches it takes."""
        encoder = self._make_encoder(data.features.shape[1:], self.seed)
        if self.objective in ("contrastive", "triplet"):
            anchors = np.flatnonzero(np.bincount(data.labels) >= 2).tolist()
            index = TupletIndex(data.labels, 1, anchors, self.classes_.tolist())
            model = MarginModel(
                encoder, data.features, index, objective=self.objective, margin=self.margin
            )
            return model, uniform_batches(self.seed, self.batch_size, 3)
        seed = self.seed + SECOND_SEED
        batches = class_batches(self.seed, data.labels, self.batch_size)
        if self.objective == "relation_net":
            return RelationModel(encoder, data.features, shots=self.shots, seed=seed), batches
        loss = functools.partial(_BATCH_LOSSES[self.objective], margin=self.margin)
        centers = len(self.classes_) if self.objective == "center" else 0
        model = BatchModel(
            encoder, data.features, data.labels, loss=loss, centers=centers, seed=seed
        )
        return model, batches


for _objective, _fields in _OBJECTIVES.items():
    for _suffix, (_labels, _which) in _SETTINGS["labels"].items():
        register_method(
            _objective + _suffix,
            summary=f"{_fields['title']} on {_which}",
            defaults={"objective": _objective, "labels": _labels, **_fields.get("defaults", {})},
            requires_identities=_labels != "mv",
            presets=_fields.get("presets", EQUAL_PRESETS),
            space={**ENCODER_SPACE, **_SETTINGS["space"], **_fields.get("space", {})},
        )(MetricLearning)
