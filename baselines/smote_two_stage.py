"""Methods `mv_smote` and `ds_smote`: inferred labels, SMOTE in the input space, a network.

Chawla et al. (2002), SMOTE; ICED, section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number, whole
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Integers, Network
from neucrowd_tf.errors import warn
from neucrowd_tf.methods.iced.synthesis import balancing_counts, synthesise
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from neucrowd_tf.methods.two_stage.labels_first import LabelsFirst
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.networks import BASES, Kinds, network_of
from neucrowd_tf.training.run import Run

_SPACE: dict[str, tuple[Any, ...]] = {
    "k": (3, 5, 10),
    "epochs": (5, 10, 20),
    "hidden_units": ((128, 64), (64, 32)),
}
_PLAIN: Fields = {"hidden_units": (128, 64), "dropout": 0.0, "l2": 0.0}


def smote(
    features: Array, labels: Integers, num_classes: int, *, k: int, seed: int
) -> tuple[Array, Indices]:
    """Returns features and labels in which synthetic instances balance the classes.

    Every class with two instances or more becomes as large as the largest. The real instances come
    first, in their order. If a class has k instances or fewer, its k is one less than its size.

    Args:
        features: `[N, d]`.
        labels: `[N]` class codes.
        num_classes: C.
        k: neighbours between which instances are synthesised.
        seed: of the draws.

    Returns:
        features `[N + S, d]` and labels `[N + S]`.
    """
    counts = balancing_counts(labels, num_classes)
    blocks = [features]
    codes = [labels.astype(np.int64)]
    for code in np.flatnonzero(counts):
        rows = np.flatnonzero(labels == code)
        size = int(counts[code])
        rng = np.random.default_rng([seed, 0x53, int(code)])
        near = min(k, len(rows) - 1)
        weights = np.ones(len(features))
        new = synthesise(features, rows, size, weights, rng, k=near, interpolation="uniform")
        blocks.append(new.embeddings.astype(features.dtype))
        codes.append(np.full(size, code, dtype=np.int64))
    return np.concatenate(blocks), np.concatenate(codes)


@register_method(
    "ds_smote",
    summary="Dawid-Skene, then SMOTE in the input space, then a network",
    defaults={"aggregator": "ds", **_PLAIN},
    requires_identities=True,
    space=_SPACE,
)
@register_method(
    "mv_smote",
    summary="majority vote, then SMOTE in the input space, then a network",
    defaults={"aggregator": "mv", **_PLAIN},
    space=_SPACE,
)
@estimator
class SmoteTwoStage(LabelsFirst):
    """An aggregator's labels, synthetic instances of the rarer classes, and a network.

    Attributes:
        classifier_: the fitted `DeepLabels`.
        labels_, probas_: `[N]` and `[N, C]`, the aggregator's. confusion_matrices_: `[R, C, C]`,
            likewise, or None.
        num_synthetic_: how many instances were added.

    References:
        ICED, section 4.2.
    """

    nested: ClassVar[Mapping[str, Kinds]] = {"base": BASES}

    k: Annotated[int, whole(), "number of SMOTE's neighbours."] = 5
    base: Annotated[Any, network_of(BASES), "the classifier's network, as for `DeepLabels`."] = (
        "dense"
    )
    learning_rate: Annotated[float, number(above=0), "of the network."] = 1e-3
    batch_size: Annotated[int, whole(), "of the network."] = 32
    epochs: Annotated[int, whole(), "of the network."] = 20
    standardise: Annotated[
        bool, "whether SMOTE's distances and the network are on standardised features."
    ] = True

    def _fit(self, data: TrainingData, run: Run) -> None:
        self._infer(data.annotations)
        self._warn()
        flat = data.features.reshape(len(data.features), -1)
        mean = np.float32(0)
        scale = np.float32(1)
        if self.standardise:
            mean = flat.mean(axis=0)
            scale = np.maximum(flat.std(axis=0), 1e-6)
        z, codes = smote(
            (flat - mean) / scale, self.labels_, len(self.classes_), k=self.k, seed=self.seed
        )
        synthetic = (z[len(flat) :] * scale + mean).astype(np.float32)
        self.num_synthetic_ = len(synthetic)
        features = np.concatenate([data.features, synthetic.reshape(-1, *data.features.shape[1:])])
        inferred = Annotations.from_dense(codes[:, None], class_names=self.classes_)
        shared = ("base", "learning_rate", "batch_size", "epochs", "standardise", "seed")
        network = DeepLabels("mv", **attributes_of(self, shared))
        self.classifier_ = network.fit(features, inferred, data.named_validation, run=run)

    def _warn(self) -> None:
        counts = np.bincount(self.labels_, minlength=len(self.classes_))
        few = list(map(repr, self.classes_[counts < 2].tolist()))
        if few:
            warn(
                f"SMOTE: fewer than two instances to synthesise from: class {', '.join(few)}",
                UserWarning,
                stacklevel=4,
            )

    def _predict_proba(self, features: Floats32) -> Array:
        return self.classifier_._predict_proba(features)

    def _inference_model(self) -> Network:
        return self.classifier_.inference_model()
