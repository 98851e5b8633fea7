"""SMOTE after truth inference: the inferred labels taken as true, rare classes filled up in the
input space, then a classifier.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf import aggregation
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.arguments import (
    Constraint,
    argument,
    estimator,
    fitted,
    flag,
    number,
    one_of,
    whole,
    widths,
)
from neucrowd_tf.errors import UsageError
from neucrowd_tf.iced.synthesis import balancing_counts, synthesise
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.labels_first import AGGREGATOR, LabelsFirst

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPACE: dict[str, tuple[Any, ...]] = {
    "k": (3, 5, 10),
    "classifier": ("network", "linear"),
    "epochs": (5, 10, 20),
    "hidden_units": ((128, 64), (64, 32)),
}
_PAPER = "Chawla et al. (2002), SMOTE; ICED, section 4.2"


def smote(
    features: NDArray[Any],
    labels: NDArray[np.integer[Any]],
    num_classes: int,
    *,
    k: int = 5,
    backend: str = "own",
    seed: int = 0,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Returns features `[N + S, d]` and labels `[N + S]` in which every class with two instances or
    more is as large as the largest.

    The real instances come first, in their order. Where a class has k instances or fewer, its k is
    one less than its size.

    Args:
        backend: "own" (`neucrowd_tf.iced.synthesis`) or "imblearn" (imbalanced-learn, which has to
            be installed).

    Raises:
        UsageError: another backend, or imbalanced-learn is not there.
    """
    if backend not in ("own", "imblearn"):
        raise UsageError(f"backend: expected 'own' or 'imblearn', received {backend!r}")
    counts = balancing_counts(labels, num_classes)
    made, codes = [features], [labels.astype(np.int64)]
    for code in np.flatnonzero(counts):
        rows = np.flatnonzero(labels == code)
        size, near = int(counts[code]), min(k, len(rows) - 1)
        if backend == "own":
            rng = np.random.default_rng([seed, 0x53, int(code)])
            new = synthesise(
                features, rows, size, np.ones(len(features)), rng, k=near, interpolation="uniform"
            ).embeddings
        else:
            new = _imbalanced_learn(features, rows, size, near, seed + int(code))
        made.append(new.astype(features.dtype))
        codes.append(np.full(size, code, dtype=np.int64))
    return np.concatenate(made), np.concatenate(codes)


def _imbalanced_learn(
    features: NDArray[Any], rows: NDArray[np.int64], size: int, k: int, seed: int
) -> NDArray[Any]:
    """Returns `size` instances that imbalanced-learn makes of one class; the others stand for one
    large class.
    """
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError:
        raise UsageError(
            "backend 'imblearn': expected imbalanced-learn to be installed, received no such"
            " package"
        ) from None
    own = np.zeros(len(features), dtype=np.int64)
    own[rows] = 1
    resampled, _ = SMOTE(
        sampling_strategy={1: len(rows) + size}, k_neighbors=k, random_state=seed
    ).fit_resample(features, own)
    new: NDArray[Any] = resampled[len(features) :]
    return new


_estimator = Constraint(
    "an estimator of this library", lambda value: isinstance(value, CrowdEstimator)
)


@register_method(
    "ds_smote",
    summary="Dawid-Skene, then SMOTE in the input space, then a network",
    defaults={"aggregator": "ds"},
    requires_identities=True,
    space=_SPACE,
    paper=_PAPER,
)
@register_method(
    "mv_smote",
    summary="majority vote, then SMOTE in the input space, then a network",
    defaults={"aggregator": "mv"},
    space=_SPACE,
    paper=_PAPER,
)
@estimator
class SmoteTwoStage(LabelsFirst):
    """An aggregator's labels, synthetic instances of the rarer classes, and a classifier trained on
    both.

    Attributes:
        classifier_: the fitted classifier.
        labels_, probas_: `[N]` and `[N, C]`, the aggregator's. confusion_matrices_: `[R, C, C]`,
            likewise, or None.
        num_synthetic_: how many instances were added.
    """

    classifier_: CrowdEstimator = fitted()

    aggregator: str | aggregation.Aggregator = argument(
        "mv",
        AGGREGATOR,
        '"mv" (majority vote), "ds" (Dawid and Skene) or "glad"; or an unfitted aggregator.',
        positional=True,
    )
    classifier: str | CrowdEstimator = argument(
        "network",
        one_of("network", "linear") | _estimator,
        '"network" (fully connected layers, as `mv_dnn`\'s), "linear" (logistic regression, as'
        " `mv_lr`'s; no TensorFlow needed), or an unfitted estimator of this library, which is"
        " trained on one annotator who gives the inferred labels.",
    )
    k: int = argument(5, whole(), "neighbours of SMOTE.")
    backend: str = argument(
        "own", one_of("own", "imblearn"), 'of SMOTE, "own" or "imblearn" (imbalanced-learn).'
    )
    hidden_units: Sequence[int] = argument((128, 64), widths, "of the network.")
    dropout: float = argument(0.0, number(least=0, below=1), "of the network.")
    l2: float = argument(0.0, number(least=0), "of the network.")
    learning_rate: float = argument(1e-3, number(above=0), "of the network.")
    batch_size: int = argument(32, whole(), "of the network.")
    epochs: int = argument(20, whole(), "of the network.")
    standardise: bool = argument(
        True, flag, "whether SMOTE's distances and the network are on standardised features."
    )
    seed: int = argument(0, whole(0), "draws everything that is random.")

    def _fit(self, data: TrainingData, run: Run) -> None:
        self._infer(data.annotations, "SMOTE")
        self._warn()
        flat = data.features.reshape(len(data.features), -1)
        mean, scale = (
            (flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-6))
            if self.standardise
            else (np.float32(0), np.float32(1))
        )
        z, codes = smote(
            (flat - mean) / scale,
            self.labels_,
            len(self.classes_),
            k=self.k,
            backend=self.backend,
            seed=self.seed,
        )
        made = (z[len(flat) :] * scale + mean).astype(np.float32)
        self.num_synthetic_ = len(made)
        features = np.concatenate([data.features, made.reshape(-1, *data.features.shape[1:])])
        inferred = Annotations.from_dense(codes[:, None], class_names=self.classes_)
        held = data.named_validation
        self.classifier_ = self._classifier().fit(features, inferred, held, run=run)

    def _warn(self) -> None:
        counts = np.bincount(self.labels_, minlength=len(self.classes_))
        few = [
            repr(name)
            for name, count in zip(self.classes_.tolist(), counts, strict=True)
            if count < 2
        ]
        if few:
            warnings.warn(
                f"SMOTE: fewer than two instances to synthesise from: class {', '.join(few)}",
                UserWarning,
                stacklevel=4,
            )

    def _classifier(self) -> CrowdEstimator:
        from sklearn.base import clone

        if self.classifier == "linear":
            from neucrowd_tf.two_stage.labels_first import TwoStageClassifier

            return TwoStageClassifier("mv", seed=self.seed)
        if self.classifier == "network":
            from neucrowd_tf.two_stage.deep_labels import DeepLabels

            return DeepLabels(
                "mv",
                base={"hidden_units": self.hidden_units, "dropout": self.dropout, "l2": self.l2},
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                epochs=self.epochs,
                standardise=self.standardise,
                seed=self.seed,
            )
        made: CrowdEstimator = clone(self.classifier)
        return made

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self.classifier_._predict_proba(features)

    def inference_model(self) -> Any:
        return self.classifier_.inference_model()
