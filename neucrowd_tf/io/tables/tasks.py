"""Tables with a row a task: the tasks' ids, and true labels."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import read_bytes
from neucrowd_tf.io.names.ids import as_name_array
from neucrowd_tf.io.names.missing import is_marker, missing_flag
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import SAMPLE
from neucrowd_tf.io.tables.writing import name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def beside(path: Path, layout: TableFormat) -> TableFormat:
    """Returns how a CSV beside the labels is written: as the user says of these, but for a
    separator or columns that it does not have.
    """
    if layout.separator is not None:
        first = re.split(rb"[\r\n]", read_bytes(path, "a CSV file")[:SAMPLE], maxsplit=1)[0]
        if layout.separator.encode() not in first:
            layout = dataclasses.replace(layout, separator=None)
    if layout.task is layout.worker is layout.label is None:
        return layout
    return layout.among(CsvFile.open(path, layout).header)


def task_ids(
    frame: pd.DataFrame, path: Path, layout: TableFormat = PLAIN, csv: CsvFile | None = None
) -> NDArray[Any]:
    """Returns the task ids `[N]` as text; each must be there, once. A column `id` beside questions,
    which may be the tasks' texts, is told of.
    """
    (column,) = layout.require(path, list(frame.columns), "task")
    other = next((name for name in frame.columns if str(name).lower() == "id"), None)
    if layout.task is None and str(column).lower() == "question" and other is not None:
        warnings.warn(
            f"{path}: columns {column!r} and {other!r} are both named as a task's; {column!r} is"
            " taken, --task_column says which",
            stacklevel=3,
        )
    ids = frame[column]
    once = "expected each task once, received {!r} again"
    for found, said in (
        (ids.isna() | (ids == ""), "expected a task id, received an empty cell"),
        (ids.duplicated(), once),
        (
            ids.str.strip().duplicated() & (not layout.exact_names),
            f"{once} but for spaces; --exact_names takes them for two",
        ),
    ):
        if found.any():
            row = int(found.to_numpy().argmax())
            line = f"row {row}" if csv is None else csv.line(row)
            raise DataError(f"{path}: {line}, column {column!r}: {said.format(ids.iloc[row])}")
    return as_name_array(ids.tolist())


def read_truth(
    path: Path,
    tasks: NDArray[Any],
    class_names: NDArray[Any],
    *,
    others: bool = False,
    layout: TableFormat = PLAIN,
) -> NDArray[np.int64]:
    """Reads `task,label`.

    Args:
        path: the CSV.
        tasks: `[N]` known task ids, as text.
        class_names: `[C]`; labels are compared with them as they are spelt.
        others: whether the file may have further tasks, which are then left out and counted.
        layout: how the labels are written; what names a separator or a column that the file has
            counts here too.

    Returns:
        `[N]` class codes in the order of `tasks`, -1 for tasks that the file does not have, or
        whose label is one that the user says stands for none.

    Raises:
        DataError: a missing column, an unknown task, a task twice, an empty cell, or a label that
            is no class.
    """
    layout = beside(path, layout)
    csv = CsvFile.open(path, layout)
    frame = csv.table()
    ids = task_ids(frame, path, layout, csv)
    (column,) = layout.require(path, list(frame.columns), "label")
    known = pd.Index(tasks)
    rows = known.get_indexer(pd.Index([name_of(name, known) for name in ids.tolist()]))
    code = {str(name): number for number, name in enumerate(class_names.tolist())}
    truth = np.full(len(tasks), -1, dtype=np.int64)
    labels = [name_of(label, code) for label in frame[column].tolist()]
    without, lost = 0, np.flatnonzero(rows < 0)
    if others and 0 < len(lost) < len(rows):
        warnings.warn(
            f"{path}: labels of {len(lost)} tasks are left out, which are none of the {len(tasks)}"
            f" here (the first: {csv.line(lost[0])}, {ids[lost[0]]!r})",
            stacklevel=3,
        )
    for row, (place, label) in enumerate(zip(rows.tolist(), labels, strict=True)):
        if label.strip() in (layout.missing or ()):
            without += 1
            continue
        if place < 0:
            if others and len(lost) < len(rows):
                continue
            here, hint = f"one of the {len(tasks)} tasks here", ""
            if not others:
                here = "a task of the features table"
                hint = "; --dataset=table --unmatched=drop leaves such labels out"
            raise DataError(
                f"{path}: {csv.line(row)}, column 'task': expected {here}, received"
                f" {ids[row]!r}{hint}"
            )
        if label not in code:
            raise DataError(
                f"{path}: {csv.line(row)}, column {column!r}: expected one of the annotated"
                f" {no_class(label, code, layout.missing)}"
            )
        truth[place] = code[label]
    tell_without(path, without)
    return truth


def no_class(label: str, classes: Iterable[str], missing: Sequence[str] | None) -> str:
    """Returns how an error goes on about a true label that is none of the classes."""
    shown = ", ".join(repr(name) for name in list(classes)[:8])
    none = is_marker(label)
    more = "" if none else " (--classes names more)"
    hint = f"; {missing_flag(missing, label)} leaves out tasks whose label is unknown" * none
    return f"classes {shown}{more}, received {label!r}{hint}"


def tell_without(path: Path, count: int) -> None:
    """Warns of how many true labels --missing leaves out."""
    if count:
        warnings.warn(
            f"{path}: {count} tasks without a label are left out (--missing)", stacklevel=3
        )
