"""predictions.csv: what a run says of each test instance."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = "predictions.csv"


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


def read_predictions(path: Path) -> PredictionTable:
    """Returns a predictions.csv.

    Raises:
        DataError: no such file, or not one that a run wrote.
    """
    if not path.is_file():
        raise DataError(f"{path}: expected the predictions of a run, received no such file")
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
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
        if len(row) != len(header) or row[1] not in code:
            raise DataError(
                f"{path}: row {i}: expected a known class and {len(names)} probabilities, received"
                f" {row[1]!r} and {len(row) - 3} cells"
            )
        labels[i] = code[row[1]]
        try:
            probabilities[i] = [float(cell) for cell in row[3:]]
        except ValueError:
            raise DataError(
                f"{path}: row {i}: expected probabilities, received {', '.join(row[3:])[:80]}"
            ) from None
    tasks = tuple(row[0] for row in rows[1:])
    return PredictionTable(tasks, np.asarray(names, dtype=object), labels, probabilities)
