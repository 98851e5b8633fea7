"""predictions.csv, a run's predictions of each test instance: writing and reading."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.commands.run_files import FINISHED
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import open_text
from neucrowd_tf.io.tables.writing import text_cell, to_csv

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDED = 0.02  # what probabilities in bfloat16 are off one together


@dataclasses.dataclass(frozen=True)
class PredictionTable:
    """Test instances as a run left them.

    Attributes:
        tasks: their names, as the file spells them.
        class_names: `[C]`.
        labels: `[M]` class codes, -1 for an empty cell.
        probabilities: `[M, C]`.
    """

    tasks: tuple[str, ...]
    class_names: NDArray[Any]
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def read_rows(path: Path) -> list[list[str]]:
    """Returns the lines of a CSV that a run wrote.

    Raises:
        DataError: no such file, or no text in UTF-8.
    """
    try:
        with open_text(path) as stream:
            return list(csv.reader(stream))
    except csv.Error as error:
        raise DataError(f"{path}: expected a CSV that a run wrote, received {error}") from None


def predictions_csv(
    tasks: NDArray[Any],
    labels: NDArray[np.int64],
    probabilities: NDArray[Any],
    class_names: NDArray[Any],
) -> str:
    """Returns `task,label,predicted,p_<class>...`, a row a test instance in the dataset's order.

    Args:
        tasks: `[M]` names.
        labels: `[M]` class codes, -1 (an empty cell) where the label is not known.
        probabilities: `[M, C]`; the predicted class is the most probable one.
        class_names: `[C]`.
    """
    names = [text_cell(name) for name in class_names.tolist()]
    columns = (tasks, labels, probabilities.argmax(axis=1), probabilities)
    rows = (
        [
            text_cell(task),
            "" if label < 0 else names[label],
            names[best],
            *(f"{p:.9g}" for p in row),
        ]
        for task, label, best, row in zip(*(column.tolist() for column in columns), strict=True)
    )
    shares = (f"p_{name}" for name in class_names.tolist())
    return to_csv(["task", "label", "predicted", *shares], rows)


def read_predictions(path: Path) -> PredictionTable:
    """Returns a predictions.csv.

    Raises:
        DataError: no such file, or not one that a run wrote.
    """
    header, *rows = read_rows(path) or [[]]
    names, tasks = [name.removeprefix("p_") for name in header[3:]], tuple(row[0] for row in rows)
    # A class that begins like a formula has an apostrophe in front of it in the cells, not in the
    # header.
    cells = ((cell, code) for code, name in enumerate(names) for cell in (f"'{name}", name))
    codes = dict(cells) | {"": -1}
    try:
        labels = np.array([codes[row[1]] for row in rows], dtype=np.int64)
        probabilities = np.array([row[3:] for row in rows], dtype=float).reshape(-1, len(names))
        wrong = header[:3] != ["task", "label", "predicted"] or len(set(tasks)) < len(tasks)
        wrong |= not (probabilities >= 0).all()
        wrong |= not (np.abs(probabilities.sum(axis=1) - 1) <= ROUNDED).all()
    except (ValueError, KeyError, IndexError):
        wrong = True
    if wrong:
        raise DataError(
            f"{path}: not the predictions of a run. To make the run again, remove the"
            f" {FINISHED} beside it and use --resume."
        )
    return PredictionTable(tasks, np.asarray(names, dtype=object), labels, probabilities)
