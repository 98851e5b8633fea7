"""Annotations as a matrix: a row an instance, a column an annotator, codes and -1 for no label."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.long_form import LabelTable
from neucrowd_tf.io.names import is_truth
from neucrowd_tf.io.tables import CsvFile, TableFormat
from neucrowd_tf.io.wide_form import MANY_ROWS, check_header_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = re.compile(r"-?\d+(\.0+)?")
HEADER = (
    "where there are ids the first line names the columns: task,worker,label (--task_column,"
    " --worker_column and --label_column say what they are called), or task and a column an"
    " annotator"
)


def read_matrix(csv: CsvFile, num_tasks: int | None, layout: TableFormat) -> LabelTable:
    """Reads a matrix of codes. A first line of whole numbers is a row of the matrix, unless they
    differ and make one row too many, or are a header's.
    """
    columns = csv.header
    numeric = all(WHOLE.fullmatch(column) for column in columns)
    frame = csv.table(header=None) if numeric else csv.table()
    if numeric and _is_header(csv, frame, num_tasks):
        frame, numeric = frame.iloc[1:].reset_index(drop=True), False
    if not numeric:
        _check_header(columns, csv, layout)
    values = frame.to_numpy(dtype=object)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            if not (isinstance(cell, str) and WHOLE.fullmatch(cell.strip())):
                name = column if numeric else columns[column]
                where = f"{csv.path}: {csv.line(row, header=not numeric)}, column {name!r}"
                hint = "" if column else f"; {HEADER}"
                raise DataError(
                    f"{where}: expected a class code, or -1 for no label, received {cell!r}{hint}"
                )
    matrix = values.astype(np.float64).astype(np.int64)
    named = None if numeric else columns
    return matrix_table(matrix, named, num_tasks, csv.path, lambda row: csv.line(row, not numeric))


def _is_header(csv: CsvFile, frame: pd.DataFrame, num_tasks: int | None) -> bool:
    """Whether a first line of whole numbers is a header: they differ and make one row too many, or,
    where nobody says how many rows there are, they number the columns, as in a matrix that was
    saved as a frame. Which it is taken for is told then.

    Raises:
        DataError: other numbers that all differ, some of them nowhere else.
    """
    first = [int(float(cell)) for cell in csv.header]
    if len(set(first)) < len(first):
        return False
    if num_tasks is not None:
        return len(frame) == num_tasks + 1
    if len(first) < 2 or len(frame) < 3:
        return False
    rest = set(frame.iloc[1:].to_numpy().ravel().tolist())
    counting = first == [*range(len(first))]
    elsewhere = set(frame.iloc[0].tolist()) <= rest
    if counting:
        what = "labels" if elsewhere else "a header, the columns' numbers"
        warnings.warn(
            f"{csv.path}: {csv.line(0, header=False)}: {csv.separator.join(csv.header)[:60]} is"
            f" taken for {what}",
            stacklevel=5,
        )
    elif not elsewhere:
        raise DataError(
            f"{csv.path}: {csv.line(0, header=False)}: expected class codes, or annotators' names"
            f" that are no numbers, received {csv.separator.join(csv.header)[:60]}, some of which"
            " are in no other line"
        )
    return counting and not elsewhere


def _check_header(names: list[str], csv: CsvFile, layout: TableFormat) -> None:
    """Checks the annotators that a matrix' first line names."""
    where = f"{csv.path}: {csv.line(0, header=False)}"
    for name in names:
        if is_truth(name):
            raise DataError(
                f"{where}, column {name!r}: expected an annotator's labels, received a column named"
                " as a true label's; take it out, or rename it if it is an annotator's"
            )
    check_header_names(names, "annotator", csv, layout)


def matrix_table(
    matrix: NDArray[Any],
    annotators: list[str] | None,
    num_tasks: int | None,
    path: Path,
    line: Callable[[int], str],
) -> LabelTable:
    """Returns a matrix of codes as it is, checked.

    Args:
        matrix: what the file holds.
        annotators: their names, where the file says them.
        num_tasks: how many rows it must have; None takes any number.
        path: the file.
        line: says where in the file row i is.
    """
    if matrix.ndim != 2:
        raise DataError(
            f"{path}: expected a row an instance and a column an annotator, received shape"
            f" {matrix.shape}"
        )
    if matrix.dtype.kind == "u" and matrix.max(initial=0) < 1 << 63:
        matrix = matrix.astype(np.int64)  # -1, for no label, is none of its numbers
    elif matrix.dtype.kind == "u":
        raise DataError(f"{path}: expected class codes, received {matrix.max()}")
    if num_tasks is not None and len(matrix) != num_tasks:
        hint = f"; {HEADER}" if matrix.shape[1:] == (3,) and path.suffix != ".npy" else ""
        raise DataError(
            f"{path}: expected {num_tasks} rows, one for each row of the features table, received"
            f" shape {matrix.shape}{hint}"
        )
    if len(matrix) >= MANY_ROWS and matrix.dtype.kind in "iu":
        _check_no_ids(matrix, path)
    return LabelTable(path, matrix=matrix, annotator_names=annotators, by_task=True, line=line)


def _check_no_ids(matrix: NDArray[Any], path: Path) -> None:
    """Raises DataError for columns that are no annotator's: a number of its own in each row, or the
    tasks and workers of triples.
    """
    for column in range(matrix.shape[1]):
        if len(np.unique(matrix[:, column])) == len(matrix) and matrix.shape[1] > 1:
            raise DataError(
                f"{path}: column {column}: expected class codes, received a different number in"
                f" each row, as ids of tasks are; {HEADER}"
            )
    if matrix.shape[1] == 3 and (matrix >= 0).all():
        pairs = len(np.unique(matrix[:, :2], axis=0))
        if pairs == len(matrix):
            raise DataError(
                f"{path}: expected class codes, received three columns whose first two are never"
                f" the same, as tasks and workers; {HEADER}"
            )
