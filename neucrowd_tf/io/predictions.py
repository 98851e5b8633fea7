"""predictions.csv, a run's predictions of each test instance: writing and reading."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.declare.types import Array, Floats, Indices
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.tables.writing import columns_csv, text_cell
from neucrowd_tf.names import positions

TRUE = "true_label"
LIKELY = "likely_label"  # the class that is most probable by the crowd's labels
# How a file begins; the last is that of version 0.1.
HEADERS = [["task", name, "predicted"] for name in (TRUE, LIKELY, "label")]
ROUNDED = 0.02  # by which the sum of probabilities in bfloat16 may differ from 1


@dataclasses.dataclass(frozen=True, eq=False)
class PredictionTable:
    """Test instances as a run left them.

    Attributes:
        tasks: their names, as the file spells them.
        labels: `[M]` class codes, -1 for an empty cell.
        probabilities: `[M, C]`.
    """

    tasks: tuple[str, ...]
    labels: Indices
    probabilities: Floats


def predictions_csv(
    tasks: Array,
    labels: Indices,
    predicted: Indices,
    probabilities: Array,
    class_names: Array,
    column: str = TRUE,
) -> str:
    """Returns `task,true_label,predicted,p_<class>...`, in the dataset's order.

    Args:
        tasks: `[M]` names.
        labels: `[M]` class codes, -1 (an empty cell) where the label is not known.
        predicted: `[M]` class codes.
        probabilities: `[M, C]`.
        class_names: `[C]`.
        column: the labels' name: `TRUE`, or `LIKELY` if the crowd's most probable classes stand in.
    """
    names = np.append(class_names.astype(object), "")  # the last one is that of -1
    rows = [("task", tasks), (column, names[labels]), ("predicted", class_names[predicted])]
    return columns_csv([*rows, *probability_columns(class_names, probabilities)])


def probability_columns(class_names: Array, probabilities: Array) -> Iterator[tuple[str, Array]]:
    """Yields the title and the values of the column of each class."""
    for name, of_class in zip(class_names.tolist(), probabilities.T, strict=True):
        yield f"p_{name}", of_class


def read_predictions(path: Path) -> PredictionTable:
    """Returns a predictions.csv.

    Raises:
        DataError: no such file, or not one that a run wrote.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if not isinstance(table.index, pd.RangeIndex):
            raise ValueError("its rows have a cell too many")
        header = table.columns.tolist()
        if header[:3] not in HEADERS or not all(name.startswith("p_") for name in header[3:]):
            raise ValueError(f"its columns are {', '.join(header)}"[:80])
        names = table.columns[3:].str.removeprefix("p_")
        # The header has a class as it is; the cells have it as `text_cell` writes it.
        codes = positions(names) | positions(map(text_cell, names)) | {"": -1}
        labels = np.array(list(map(codes.__getitem__, table.iloc[:, 1])), dtype=np.int64)
        probabilities = table.iloc[:, 3:].to_numpy(dtype=float)
    except (OSError, ValueError, KeyError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}: not the predictions of a run ({one_line(error)})") from None
    sound = (probabilities >= 0).all(axis=1) & (abs(probabilities.sum(axis=1) - 1) <= ROUNDED)
    for bad, problem in (
        (~sound, "the probabilities are not numbers from 0 that sum to 1"),
        (~table["predicted"].isin([*codes]), "the predicted class has no probability"),
        (table["task"].duplicated(), "the task has occurred before"),
    ):
        if np.any(bad):
            row = int(np.argmax(bad)) + 1
            raise DataError(f"{path}: row {row}: {problem}. Write the file again.")
    return PredictionTable(tuple(table["task"]), labels, probabilities)
