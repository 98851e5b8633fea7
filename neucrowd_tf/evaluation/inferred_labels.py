"""labels.csv: each instance's label, inferred from the crowd's labels and a model's predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from neucrowd_tf.aggregation.base import Codes, apply_gold, with_gold
from neucrowd_tf.aggregation.families import PEOPLE, Sources
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import top_classes
from neucrowd_tf.annotations.votes import decided, scale_of
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare.types import Array, Estimator, Floats, Indices, Mask
from neucrowd_tf.evaluation.cached_consensus import certainty_without_gold, inferred
from neucrowd_tf.evaluation.cross_validation import annotated_parts, whole_crowd
from neucrowd_tf.evaluation.without_truth import joint_probas
from neucrowd_tf.io.predictions import probability_columns
from neucrowd_tf.io.tables.writing import columns_csv


@dataclasses.dataclass(frozen=True, eq=False)
class InferredLabels:
    """Inferred labels of a dataset's annotated instances.

    These are all N training instances, then the annotated ones of validation and test.

    Attributes:
        crowd: their annotations.
        probas: `[N, C]` of crowd and model together.
        model: `[N, C]` the model's.
        held_out: `[N]` whether the model predicted the instance without having seen its labels.
        num_tied: `[N]` how many classes tie for the label; 1 without a tie.
        labels, model_labels: `[N]` the classes that `probas` and `model` predict.
    """

    crowd: Annotations
    probas: Floats
    model: Floats
    held_out: Mask
    num_tied: Indices
    labels: Indices
    model_labels: Indices

    def columns(self) -> dict[str, Iterable[Any]]:
        """Returns the columns of labels.csv; votes are listed by class, the commonest first."""
        names = self.crowd.class_names.astype(str).astype(object)
        votes = self.crowd.vote_counts()
        rows = np.arange(len(self.probas))
        listed = []
        for counts, order in zip(votes, np.argsort(-votes, axis=1, kind="stable"), strict=True):
            listed.append("; ".join(f"{names[c]}: {counts[c]}" for c in order if counts[c]))
        return {
            "task": self.crowd.instance_names,
            "label": names[self.labels],
            "probability": self.probas[rows, self.labels],
            "num_labels": votes.sum(axis=1),
            "num_tied": self.num_tied,
            "votes": listed,
            "model_label": names[self.model_labels],
            "model_probability": self.model[rows, self.model_labels],
            "model_held_out": np.where(self.held_out, "yes", "no"),
        }

    def csv(self) -> str:
        """Returns labels.csv."""
        return columns_csv(self.columns().items())

    def held_out_csv(self) -> str:
        """Returns oof.csv: the model's probabilities of the instances that it has not learned."""
        tasks = self.crowd.instance_names[self.held_out]
        probas = probability_columns(self.crowd.class_names, self.model[self.held_out])
        return columns_csv([("task", tasks), *probas])


def held_out_predictions(
    dataset: CrowdDataset, estimator: Estimator, training: Array
) -> tuple[Floats, Mask]:
    """Returns a method's predictions of `whole_crowd`'s instances, held out where possible.

    Predictions are held out in the other splits, and for training instances if the method keeps
    `held_out_probas_` of its folds, as `auto` does.

    Args:
        dataset: that the method was fitted to.
        estimator: the fitted method.
        training: `[N, C]` its predictions for the training instances.

    Returns:
        Predictions `[N, C]`, and `[N]` which are held out.
    """
    probas = np.array(training, dtype=np.float64)
    held_out = np.zeros(len(probas), dtype=bool)
    folds = getattr(estimator, "held_out_probas_", None)
    rows = getattr(estimator, "rows_", None)
    if folds is not None and rows is not None and len(rows) == len(folds):
        predicted = np.isfinite(folds).all(axis=1)
        predicted_rows = np.asarray(rows)[predicted]
        held_out[predicted_rows] = True
        probas[predicted_rows] = np.asarray(folds)[predicted]
    every = [probas]
    for split in annotated_parts(dataset):
        if len(split):
            every.append(np.asarray(estimator.predict_proba(split.features)))
    predictions = np.concatenate(every).astype(np.float64)
    return predictions, np.pad(held_out, (0, len(predictions) - len(probas)), constant_values=True)


def infer_labels(
    dataset: CrowdDataset,
    estimator: Estimator,
    training: Array,
    gold: Codes | None = None,
    sources: Sources = PEOPLE,
) -> InferredLabels:
    """Infers labels from a dataset's crowd and a method that was fitted to its training rows.

    Labels are the consensus of the crowd. Predictions count for instances that the method has not
    learned: where they are held out, and where the crowd gave no labels. Gold labels, if any,
    decide how crowd and model are weighed, see `joint_probas`.

    Args:
        dataset: that the method was fitted to.
        estimator: the fitted method.
        training: `[N, C]` its predictions for the training instances.
        gold: class codes of `whole_crowd`'s instances, -1 if unknown; they are certain.
        sources: which annotators are models, or count once.
    """
    crowd = whole_crowd(dataset).observed()
    model, held_out = held_out_predictions(dataset, estimator, training)
    model /= model.sum(axis=1, keepdims=True)
    held_out |= ~crowd.annotated
    scale = scale_of(estimator)
    consensus = inferred(crowd, gold, sources, scale).certainty
    probas = consensus.probas.copy()
    num_tied = consensus.num_tied.copy()
    rows = np.flatnonzero(held_out)
    if len(rows):
        certainty = certainty_without_gold(crowd, gold, sources, scale)
        known = None if gold is None else gold[rows]
        probas[rows] = joint_probas(certainty, rows, model[rows], known)
        num_tied[rows] = 1
        if scale != "ordinal":
            num_tied[rows] = top_classes(probas[rows]).sum(axis=1)
    labels = probas.argmax(axis=1)
    labels[rows] = decided(probas[rows], scale)
    labels = with_gold(labels, gold)
    apply_gold(probas, gold)
    if gold is not None:
        num_tied[gold >= 0] = 1
    return InferredLabels(crowd, probas, model, held_out, num_tied, labels, decided(model, scale))
