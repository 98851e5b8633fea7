"""The inferred label of every instance: the crowd's labels and a model's predictions together."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.cross_validation import annotated_parts, whole_crowd
from neucrowd_tf.io.tables.writing import cell, to_csv
from neucrowd_tf.labelling.belief import believe_with_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from neucrowd_tf.datasets import CrowdDataset

HEADER = (
    *("task", "label", "probability", "num_labels", "votes", "annotators"),
    *("model_label", "model_probability", "model_held_out"),
)
_VOTE = 1.0  # what a model counts for beside votes whose annotators are not known


@dataclasses.dataclass(frozen=True)
class InferredLabels:
    """Labels of all N instances of a dataset that have a place in its crowd: training rows, then
    those of validation and test with annotations.

    Attributes:
        crowd: their labels.
        probas: `[N, C]` of crowd and model together; `labels` the most probable classes.
        model: `[N, C]` the model's.
        held_out: `[N]` whether the model had not seen the instance's labels when it predicted it.
    """

    crowd: Annotations
    probas: NDArray[np.float64]
    model: NDArray[np.float64]
    held_out: NDArray[np.bool_]

    @property
    def labels(self) -> NDArray[np.int64]:
        return np.asarray(self.probas.argmax(axis=1))

    def rows(self) -> Iterator[list[Any]]:
        """Yields a row of `HEADER` an instance; votes and annotators by class, the commonest
        first.
        """
        crowd, names = self.crowd, [str(name) for name in self.crowd.class_names.tolist()]
        votes = crowd.vote_counts()
        who: list[dict[int, list[str]]] = [{} for _ in range(crowd.num_instances)]
        if crowd.has_identities:
            annotators = [str(name) for name in crowd.annotator_names.tolist()]
            given = (crowd.instances.tolist(), crowd.annotators.tolist(), crowd.labels.tolist())
            for instance, annotator, label in zip(*given, strict=True):
                who[instance].setdefault(label, []).append(annotators[annotator])
        best, model = self.labels, self.model.argmax(axis=1)
        for row, task in enumerate(crowd.instance_names.tolist()):
            order = [c for c in np.argsort(-votes[row], kind="stable").tolist() if votes[row, c]]
            yield [
                task,
                names[best[row]],
                float(self.probas[row, best[row]]),
                int(votes[row].sum()),
                "; ".join(f"{names[c]}: {votes[row, c]}" for c in order),
                "; ".join(f"{names[c]}: {', '.join(who[row][c])}" for c in order if c in who[row]),
                names[model[row]],
                float(self.model[row, model[row]]),
                "yes" if self.held_out[row] else "no",
            ]

    def csv(self) -> str:
        """Returns labels.csv."""
        return to_csv(HEADER, (map(cell, row) for row in self.rows()))


def held_out_predictions(
    dataset: CrowdDataset, estimator: Any, training: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns what a fitted method says of the instances of `whole_crowd` `[N, C]`, and where `[N]`
    it had not seen their labels: in the other splits, and where a fold held out a training instance
    (`auto` knows what it said then).

    Args:
        estimator: the fitted method.
        training: what it predicts for the training instances, a row each.
    """
    found = np.array(training, dtype=np.float64)
    held = np.zeros(len(found), dtype=bool)
    known, rows = getattr(estimator, "held_out_probas_", None), getattr(estimator, "rows_", None)
    if known is not None and rows is not None and len(rows) == len(known):
        sure = np.isfinite(known).all(axis=1)
        held[np.asarray(rows)[sure]] = True
        found[np.asarray(rows)[sure]] = np.asarray(known)[sure]
    splits = [part.features for part in annotated_parts(dataset) if len(part)]
    others = [np.asarray(estimator.predict_proba(features)) for features in splits]
    whole = np.concatenate([found, *others]).astype(np.float64)
    return whole, np.pad(held, (0, len(whole) - len(held)), constant_values=True)


def infer_labels(dataset: CrowdDataset, estimator: Any, training: NDArray[Any]) -> InferredLabels:
    """Combines a dataset's crowd and a method that was fitted to its training rows, for which it
    predicts `training` `[N, C]`: by `believe_with_model` where it is known who voted.
    """
    crowd = whole_crowd(dataset).observed()
    model, held = held_out_predictions(dataset, estimator, training)
    model /= model.sum(axis=1, keepdims=True)
    if crowd.has_identities:
        probas = believe_with_model(crowd, model).probas
    else:
        votes = crowd.vote_counts()
        probas = (votes + _VOTE * model) / (votes.sum(axis=1, keepdims=True) + _VOTE)
    return InferredLabels(crowd, probas, model, held)
