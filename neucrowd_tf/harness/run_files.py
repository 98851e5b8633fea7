"""What a run leaves: predictions.csv, labels.csv and annotators.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.inferred_labels import HEADER, InferredLabels
from neucrowd_tf.io.csv_cells import number_cell, text_cell, to_csv
from neucrowd_tf.io.files import write_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


def write_predictions(
    path: Path,
    tasks: NDArray[Any],
    labels: NDArray[np.int64],
    probabilities: NDArray[Any],
    class_names: NDArray[Any],
) -> None:
    """Writes `task,label,predicted,p_<class>...`, a row a test instance in the dataset's order.

    Args:
        labels: `[M]` class codes, -1 (an empty cell) where the label is not known.
        probabilities: `[M, C]`; the predicted class is the most probable one.
    """
    names = [text_cell(name) for name in class_names.tolist()]
    predicted = probabilities.argmax(axis=1)
    rows = (
        [
            text_cell(task),
            "" if label < 0 else names[label],
            names[best],
            *(f"{p:.9g}" for p in row),
        ]
        for task, label, best, row in zip(
            tasks.tolist(), labels.tolist(), predicted.tolist(), probabilities.tolist(), strict=True
        )
    )
    write_text(
        path,
        to_csv(
            ["task", "label", "predicted", *(f"p_{name}" for name in class_names.tolist())], rows
        ),
    )


def write_labels(path: Path, inferred: InferredLabels) -> None:
    """Writes a row an instance: its inferred label and that label's probability (crowd and model
    together), how many labels it has, the votes, who gave them, and what the model alone says.
    """
    rows = (
        [number_cell(cell) if isinstance(cell, float) else text_cell(cell) for cell in row]
        for row in inferred.rows()
    )
    write_text(path, to_csv(list(HEADER), rows))


def write_annotators(
    path: Path, annotations: Annotations, predicted: NDArray[np.int64] | None, estimator: Any
) -> None:
    """Writes a row an annotator: how much they labelled and how far they agree; a header alone
    where it is not known who voted.

    Columns: `annotator,num_labels`; `agreement_consensus`, the share of their labels that are the
    majority's (ties count in part); `agreement_model`, the share that the fitted model predicts;
    `skill` and `recall_<class>` where the method estimates how good annotators are (the diagonal of
    their confusion matrices).

    Args:
        annotations: N training instances.
        predicted: `[N]` class codes that the model predicts for them.
        estimator: the fitted method; `annotator_accuracy_` `[R]` and `confusion_matrices_` `[R, C,
            C]` are used where it has them.
    """
    from neucrowd_tf.annotations import statistics

    header = ["annotator", "num_labels", "agreement_consensus", "agreement_model"]
    if not annotations.has_identities:
        write_text(path, to_csv(header, []))
        return
    size = annotations.num_annotators
    counts = annotations.labels_per_annotator()
    majority = statistics.majority_shares(annotations)[annotations.instances, annotations.labels]
    columns: list[NDArray[Any]] = [_mean_by_annotator(annotations, majority, counts)]
    agrees = (
        np.full(len(annotations.labels), np.nan)
        if predicted is None
        else predicted[annotations.instances] == annotations.labels
    )
    columns.append(_mean_by_annotator(annotations, agrees, counts))
    skill = getattr(estimator, "annotator_accuracy_", None)
    if skill is not None and np.shape(skill) == (size,):
        header.append("skill")
        columns.append(np.asarray(skill))
    matrices = getattr(estimator, "confusion_matrices_", None)
    if matrices is not None and np.shape(matrices) == (
        size,
        annotations.num_classes,
        annotations.num_classes,
    ):
        header += [f"recall_{name}" for name in annotations.class_names.tolist()]
        columns += list(np.einsum("rcc->cr", np.asarray(matrices)))
    rows = (
        [
            text_cell(name),
            str(int(counts[i])),
            *(number_cell(float(column[i])) for column in columns),
        ]
        for i, name in enumerate(annotations.annotator_names.tolist())
    )
    write_text(path, to_csv(header, rows))


def _mean_by_annotator(
    annotations: Annotations, values: NDArray[Any], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Returns `[R]` means of a value for each label; NaN for annotators without labels."""
    total = np.bincount(
        annotations.annotators,
        weights=np.asarray(values, dtype=np.float64),
        minlength=annotations.num_annotators,
    )
    return np.divide(total, counts, out=np.full(len(counts), np.nan), where=counts > 0)
