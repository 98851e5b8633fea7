"""What the aggregators share: the scikit-learn contract, gold labels, and confusion counts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from neucrowd_tf.annotations import MISSING, Annotations, as_annotations
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

GoldLabels: TypeAlias = "Mapping[Hashable, Hashable] | pd.Series[Any] | ArrayLike | None"


class Aggregator(BaseEstimator):
    """Base of the truth-inference methods; results end in `_`.

    Attributes:
        labels_: `[N]` int64 class codes.
        probas_: `[N, C]` probability of each class.
        priors_: `[C]` class prior.
        errors_: `[R, C true class, C observed class]`; each row sums to one. None where it is not known who voted.
        skills_: `[R]` probability that an annotator is right; None where it is not known who voted.
        annotated_: `[N]` bool, whether an instance had a label (or a gold label). Those that had none get the prior as
            their probabilities, and its most probable class as their label.
        classes_: `[C]` the class names that the codes stand for.
        instance_names_, annotator_names_: `[N]` and `[R]`.
    """

    labels_: NDArray[np.int64]
    probas_: NDArray[np.float64]
    priors_: NDArray[np.float64]
    errors_: NDArray[np.float64] | None
    skills_: NDArray[np.float64] | None
    annotated_: NDArray[np.bool_]
    classes_: NDArray[Any]
    instance_names_: NDArray[Any]
    annotator_names_: NDArray[Any]

    def fit(self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None) -> Self:
        """Infers the labels of `annotations`; see the subclasses."""
        raise NotImplementedError

    def fit_predict(self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None) -> pd.Series[Any]:
        """Fits, and returns the labels (class names) as a Series indexed by task, as crowd-kit does."""
        self.fit(annotations, gold_labels)
        return pd.Series(self.classes_[self.labels_], index=pd.Index(self.instance_names_, name="task"), name="agg_label")

    def fit_predict_proba(self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None) -> pd.DataFrame:
        """Fits, and returns the probabilities with a row a task and a column a class, as crowd-kit does."""
        self.fit(annotations, gold_labels)
        return pd.DataFrame(self.probas_, index=pd.Index(self.instance_names_, name="task"), columns=pd.Index(self.classes_, name="label"))

    def _start(self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels) -> tuple[Annotations, NDArray[np.int64] | None]:
        """Checks the input, stores the names, and returns annotations and gold codes `[N]` (-1 unknown; None without any).

        Raises:
            DataError: there is not one annotation, or a gold label cannot be used.
        """
        crowd = as_annotations(annotations)
        if not crowd.num_annotations:
            raise DataError(f"{type(self).__name__}: expected at least one annotation, received none")
        gold = gold_codes(gold_labels, crowd)
        self.classes_ = crowd.class_names
        self.instance_names_ = crowd.instance_names
        self.annotator_names_ = crowd.annotator_names
        self.annotated_ = crowd.annotated if gold is None else crowd.annotated | (gold >= 0)
        return crowd, gold


def gold_codes(gold_labels: GoldLabels, annotations: Annotations) -> NDArray[np.int64] | None:
    """Returns gold labels as codes `[N]`, -1 where there is none, or None when no gold labels are given.

    Args:
        gold_labels: `{task: label}` or a Series indexed by task, both with the names that the annotations came with; or `[N]`
            class codes with -1 for unknown.

    Raises:
        DataError: a task or a label that the annotations do not have; the message names it.
    """
    if gold_labels is None:
        return None
    if not isinstance(gold_labels, (Mapping, pd.Series)):
        codes = np.asarray(gold_labels)
        if codes.shape != (annotations.num_instances,) or codes.dtype.kind not in "iu":
            raise DataError(
                "gold labels: expected {task: label}, a Series indexed by task, or integer class codes of shape "
                f"[{annotations.num_instances}] with -1 for unknown, received {codes.dtype} of shape {codes.shape}"
            )
        bad = np.flatnonzero((codes < MISSING) | (codes >= annotations.num_classes))
        if len(bad):
            raise DataError(f"gold labels: row {bad[0]}: expected a class code from -1 to {annotations.num_classes - 1}, received {codes[bad[0]]}")
        return codes.astype(np.int64)
    tasks = {name: code for code, name in enumerate(annotations.instance_names.tolist())}
    classes = {name: code for code, name in enumerate(annotations.class_names.tolist())}
    found = np.full(annotations.num_instances, MISSING, dtype=np.int64)
    for task, label in gold_labels.items():
        if task not in tasks:
            raise DataError(f"gold labels: expected tasks of the annotations, received task {task!r}")
        if label not in classes:
            shown = ", ".join(repr(name) for name in list(classes)[:8])
            raise DataError(f"gold labels: task {task!r}: expected one of the classes {shown}, received {label!r}")
        found[tasks[task]] = classes[label]
    return found


def apply_gold(probas: NDArray[np.float64], gold: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Sets the rows of `probas` `[N, C]` that have a gold label to certainty, in place, and returns it."""
    if gold is not None:
        rows = np.flatnonzero(gold >= 0)
        probas[rows] = 0.0
        probas[rows, gold[rows]] = 1.0
    return probas


def confusion_counts(annotations: Annotations, labels: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Returns `[R, C true, C observed]`: how often each annotator gave each label to instances whose label is taken as true.

    Args:
        labels: `[N]` class codes; -1 leaves an instance out.
    """
    size, num_classes = annotations.num_annotators, annotations.num_classes
    truth = np.asarray(labels)[annotations.instances]
    keys = (annotations.annotators.astype(np.int64) * num_classes + truth) * num_classes + annotations.labels
    counts = np.bincount(keys[truth >= 0], minlength=size * num_classes * num_classes)
    return counts.reshape(size, num_classes, num_classes).astype(np.float64)


def normalise_counts(counts: NDArray[np.float64], smoothing: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns error matrices from counts `[R, C, C]` plus pseudo-counts; a row without any evidence is uniform."""
    smoothed = counts + smoothing
    total = smoothed.sum(axis=-1, keepdims=True)
    return np.divide(smoothed, total, out=np.full_like(smoothed, 1.0 / smoothed.shape[-1]), where=total > 0)


def expected_skills(errors: NDArray[np.float64], priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]`, the probability that each annotator is right: sum over classes of prior times the diagonal."""
    skills: NDArray[np.float64] = np.einsum("rcc,c->r", errors, priors)
    return skills
