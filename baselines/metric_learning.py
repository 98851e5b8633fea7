"""Two-stage representation learning: aggregated labels, then metric learning.

Labels come from majority vote, EM or GLAD.

Groups 2 and 3 of both papers' tables. All share NeuCrowd's encoder, budget, validation rule and
downstream classifier.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any

import keras
import numpy as np
from numpy.typing import NDArray

from baselines.metric_models import BatchModel, MarginModel, class_batches
from baselines.relation_net import RelationModel
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import estimator, number, one_of, whole
from neucrowd_tf.nn import losses
from neucrowd_tf.registration import register_method
from neucrowd_tf.training.batches import uniform_batches
from neucrowd_tf.training.representation import (
    ENCODER_SPACE,
    EQUAL_PRESETS,
    SECOND_SEED,
    EmbeddingData,
    RepresentationEstimator,
)
from neucrowd_tf.training.tuplet_index import TupletIndex
from neucrowd_tf.two_stage.labels_first import AGGREGATORS

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
# Hotel's margin is chosen by accuracy plus AUC on its validation rows, among .2, 1 and 5. The
# relation network's penalty is small everywhere.
_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "contrastive": {**EQUAL_PRESETS, "hotel": {"margin": 5.0}},
    "relation_net": {},
}
_MARGINS = {"margin": (0.2, 0.5, 1.0, 2.0, 5.0)}
_SPACE: dict[str, tuple[Any, ...]] = {
    **ENCODER_SPACE,
    "l2": (1e-5, 1e-4, 1e-3, 1e-2),
    "normalise": (False, True),
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
        one_of(*_NAMES),
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

    def _consensus(self, annotations: Annotations) -> NDArray[np.int64]:
        aggregator = AGGREGATORS[self.labels](seed=self.seed).fit(annotations)
        return np.asarray(aggregator.labels_, dtype=np.int64)

    def _make_encoder(self, input_shape: tuple[int, ...], seed: int, name: str = "encoder") -> Any:
        encoder = super()._make_encoder(input_shape, seed, name)
        if not self.normalise:
            return encoder
        unit = keras.layers.UnitNormalization(name="unit_length")(encoder.output)
        return keras.Model(encoder.input, unit, name=name)

    def _network(self, data: EmbeddingData) -> tuple[Any, Any]:
        """Returns a model with the objective's loss, and the batches it takes."""
        encoder = self._make_encoder(data.features.shape[1:], self.seed)
        if self.objective in ("contrastive", "triplet"):
            anchors = np.flatnonzero(np.bincount(data.labels) >= 2).tolist()
            index = TupletIndex(data.labels, 1, classes=anchors)
            model: Any = MarginModel(
                encoder, data.features, index, objective=self.objective, margin=self.margin
            )
            return model, uniform_batches(self.seed, self.batch_size, 3)
        seed = self.seed + SECOND_SEED
        batches = class_batches(self.seed, data.labels, self.batch_size)
        if self.objective == "relation_net":
            return RelationModel(encoder, data.features, shots=self.shots, seed=seed), batches
        kinds = {
            "triplet_semi": losses.semihard_triplet_loss,
            "lifted": losses.lifted_structured_loss,
            "center": losses.triplet_center_loss,
        }
        loss = functools.partial(kinds[self.objective], margin=self.margin)
        centers = len(self.classes_) if self.objective == "center" else 0
        model = BatchModel(
            encoder, data.features, data.labels, loss=loss, centers=centers, seed=seed
        )
        return model, batches


for _objective, _what in _NAMES.items():
    for _suffix, (_labels, _which) in _LABELS.items():
        register_method(
            _objective + _suffix,
            summary=f"{_what} on {_which}",
            defaults={"objective": _objective, "labels": _labels, **_DEFAULTS.get(_objective, {})},
            requires_identities=_labels != "mv",
            presets=_PRESETS.get(_objective, EQUAL_PRESETS),
            space={**_MARGINS, **_SPACE}
            if _objective != "relation_net"
            else {**_SPACE, "shots": (1, 5, 10)},
        )(MetricLearning)
