"""predictions.csv, a run's predictions of each test instance: writing and reading."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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
    rows = read_rows(path)
    header = rows[0] if rows else []
    if (
        header[:3] != ["task", "label", "predicted"]
        or len(header) < 5
        or any(not name.startswith("p_") for name in header[3:])
    ):
        raise DataError(
            f"{path}: expected the columns task, label, predicted, p_<class>..., received"
            f" {', '.join(header[:5])}"
        )
    names = [name.removeprefix("p_") for name in header[3:]]
    # A class that begins like a formula has an apostrophe in front of it in the cells, not in the
    # header.
    code = {
        spelling: index for index, name in enumerate(names) for spelling in (f"'{name}", name)
    } | {"": -1}
    labels = np.full(len(rows) - 1, -1, dtype=np.int64)
    probabilities = np.empty((len(rows) - 1, len(names)))
    for i, row in enumerate(rows[1:]):
        if len(row) != len(header) or not {row[1], row[2]} <= code.keys():
            raise DataError(
                f"{path}: row {i}: expected a task, known classes and {len(names)} probabilities,"
                f" received {', '.join(row)[:80]}"
            )
        labels[i] = code[row[1]]
        try:
            probabilities[i] = [float(cell) for cell in row[3:]]
        except ValueError:
            probabilities[i] = np.nan
        if not (probabilities[i] >= 0).all() or abs(probabilities[i].sum() - 1) > ROUNDED:
            raise DataError(
                f"{path}: row {i}: expected probabilities that sum to 1, received"
                f" {', '.join(row[3:])[:80]}"
            )
    tasks = tuple(row[0] for row in rows[1:])
    if len(set(tasks)) < len(tasks):
        twice = next(task for task, times in Counter(tasks).items() if times > 1)
        raise DataError(f"{path}: expected each task once, received {twice!r} again")
    return PredictionTable(tasks, np.asarray(names, dtype=object), labels, probabilities)
