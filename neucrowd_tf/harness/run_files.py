"""What a run leaves: predictions.csv, labels.csv and annotators.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.annotator_table import annotators_csv
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
    """Writes a row an annotator; see `annotators_csv`. A header alone where it is not known who
    voted.
    """
    write_text(path, annotators_csv(annotations, predicted, estimator))
