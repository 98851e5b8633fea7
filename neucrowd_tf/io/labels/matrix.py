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
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.labels.cells import EMPTY, check_header_names, is_named, without_nameless
from neucrowd_tf.io.labels.checks.ids import (
    AS_LABELS,
    HEADER,
    check_few_ids,
    check_no_ids,
    check_size,
    tell_few_triples,
)
from neucrowd_tf.io.labels.checks.like_counts import MANY_ROWS, check_no_counts
from neucrowd_tf.io.labels.checks.wide_names import check_columns
from neucrowd_tf.io.labels.checks.wide_values import tell_turned
from neucrowd_tf.io.labels.table import MINUS_ONE, LabelTable, tell_missing
from neucrowd_tf.io.names.missing import missing_flag
from neucrowd_tf.io.tables.column_names import is_people
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 3  # rows
MOST_CODE = 1 << 53  # above which numbers in files are not exact
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d\d?)?")


def is_code(cell: str) -> bool:
    """Whether a cell is a whole number, in NumPy's way of writing one (1.2e+01) too."""
    return _NUMBER.fullmatch(cell) is not None and float(cell).is_integer()


def is_row(cells: list[str]) -> bool:
    """Whether a line is a row of a matrix: whole numbers, blanks and NaN."""
    return any(map(is_code, cells)) and all(c in EMPTY or is_code(c) for c in cells)


def read_matrix(csv: CsvFile, num_tasks: int | None, layout: TableFormat) -> LabelTable:
    """Reads a matrix of codes. A first line of whole numbers is a row of the matrix, unless they
    differ and make one row too many, or are a header's.
    """
    columns = csv.header
    lost = layout.missing or ()
    _check_no_frame(csv)
    lost_here = is_named(np.array([columns], dtype=object), lost)[0] | np.isin(columns, EMPTY)
    numeric = all(map(is_code, np.array(columns, dtype=object)[~lost_here]))
    if not numeric:
        _check_first_line(csv)
    frame = csv.table(header=None) if numeric else without_nameless(csv.table(), csv, layout)
    columns = columns if numeric else list(frame.columns)
    if numeric and not lost_here.any() and _is_header(csv, frame, num_tasks):
        frame, numeric = frame.iloc[1:].reset_index(drop=True), False
    if not numeric:
        check_columns(columns, csv, layout)
        check_header_names(columns, "annotator", csv, layout)
    values = frame.to_numpy(dtype=object)
    named = is_named(values, lost)
    missing = named | pd.isna(values) | np.isin(values.astype(str), EMPTY)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            code = isinstance(cell, str) and is_code(cell.strip())
            if not missing[row, column] and not (code and abs(float(cell)) < MOST_CODE):
                name = column + 1 if numeric else repr(columns[column])
                where = f"{csv.path}: {csv.line(row, header=not numeric)}, column {name}"
                flag = missing_flag(layout.missing, cell)
                # Where no cell of a column is a code, it is no annotator's.
                known = pd.unique(values[:, column])
                codes = any(isinstance(c, str) and is_code(c.strip()) for c in known)
                hint = f"; {flag} takes it for none" if column and codes else f"; {HEADER}"
                raise DataError(
                    f"{where}: expected a class code, or -1 for no label, received {cell!r}{hint}"
                )
    tell_lost(named & (values != MINUS_ONE), csv.path)
    matrix = np.where(missing, MINUS_ONE, values).astype(np.float64).astype(np.int64)
    annotators = None if numeric else columns
    if not numeric and not layout.classes:
        _check_no_people(columns, matrix, csv)
    return matrix_table(
        matrix, annotators, num_tasks, csv.path, lambda row: csv.line(row, not numeric), layout
    )


def _check_no_frame(csv: CsvFile) -> None:
    """Raises DataError for a matrix that was saved as a frame with its index: below an empty cell a
    number of its own in each row, and the columns' numbers above.
    """
    first, *rest = (cell.strip() for cell in csv.header)
    if (
        first
        or len(rest) < 2
        or not any(rest == [str(begin + place) for place in range(len(rest))] for begin in (0, 1))
    ):
        return
    index = csv.table(header=None).iloc[1:, 0]
    if len(index) > 1 and index.is_unique:
        raise DataError(
            f"{csv.path}: line 1: expected class codes, received an empty cell and the columns'"
            " numbers, as in a matrix that was saved with its index; save it without index and"
            " header (index=False, header=False), or name the columns: task and one an annotator"
        )


def _check_first_line(csv: CsvFile) -> None:
    """Raises DataError for a first line of codes and a number that is none (`inf`, one of hundreds
    of digits), which is no header.
    """
    rest = [
        (place, cell.strip())
        for place, cell in enumerate(csv.header, 1)
        if not is_code(cell.strip()) and cell.strip() not in EMPTY
    ]
    if len(rest) < len(csv.header) and rest and all(_is_endless(cell) for _, cell in rest):
        place, cell = rest[0]
        raise DataError(
            f"{csv.path}: line 1, column {place}: expected a class code, or -1 for no label,"
            f" received {cell[:40]!r}; {HEADER}"
        )


def _is_endless(cell: str) -> bool:
    try:
        return np.isinf(float(cell))
    except ValueError:
        return False


def _check_no_people(columns: list[str], matrix: NDArray[np.int64], csv: CsvFile) -> None:
    """Raises DataError for a first column that says who gave a row's labels: it is named so, and
    its numbers rise from row to row.
    """
    first = matrix[:, 0]
    if (
        len(first) >= FEW
        and len(columns) > 2
        and is_people(columns[0])
        and (np.diff(first) > 0).all()
    ):
        raise DataError(
            f"{csv.path}: column {columns[0]!r}: expected a row a task and a column an annotator,"
            " received what looks like a row an annotator; turn the table round, with a column"
            " task and one for each annotator; --classes=... takes it for labels"
        )


def tell_lost(missing: NDArray[np.bool_], path: Path) -> None:
    """Tells of cells that --missing leaves out."""
    if missing.any():
        tell_missing(path, int(missing.sum()), "cells")


def _is_header(csv: CsvFile, frame: pd.DataFrame, num_tasks: int | None) -> bool:
    """Whether a first line of whole numbers from 0 is a header: they differ and make one row too
    many, or, where nobody says how many rows there are, they number the columns, as in a matrix
    that was saved as a frame. Which it is taken for is told then.

    Raises:
        DataError: other numbers that all differ, some of them nowhere else.
    """
    first = [int(float(cell)) for cell in csv.header]
    if len(set(first)) < len(first) or min(first) < 0:
        return False
    if num_tasks is not None:
        return len(frame) == num_tasks + 1
    if len(first) < 2 or len(frame) < 3:
        return False
    rest = set(frame.iloc[1:].to_numpy().ravel().tolist())
    from_one = first == [*range(1, len(first) + 1)] and len(first) > 2
    counting = first == [*range(len(first))] or from_one
    elsewhere = set(frame.iloc[0].tolist()) <= rest
    if counting:
        what = (
            "labels; take it out if it is a header"
            if elsewhere
            else "a header, the columns' numbers"
        )
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


def matrix_table(
    matrix: NDArray[Any],
    annotators: list[str] | None,
    num_tasks: int | None,
    path: Path,
    line: Callable[[int], str],
    layout: TableFormat = PLAIN,
) -> LabelTable:
    """Returns a matrix of codes as it is, checked.

    Args:
        matrix: what the file holds.
        annotators: their names, where the file says them.
        num_tasks: how many rows it must have; None takes any number.
        path: the file.
        line: says where in the file row i is.
        layout: which numbers stand for no label, where a file of numbers has them.
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
    if layout.missing and matrix.dtype.kind in "if":
        matrix = _without_missing(matrix, layout.missing, path)
    if matrix.dtype.kind == "f":
        matrix = matrix.astype(np.float64)  # half precision holds no MOST_CODE
        for row, column in np.argwhere(~(np.abs(matrix) < MOST_CODE))[:1]:
            flag = missing_flag(layout.missing, "nan")
            hint = f"; {flag} takes it for none" if np.isnan(matrix[row, column]) else ""
            raise DataError(
                f"{path}: {line(row)}, column {column}: expected a class code, or -1 for no label,"
                f" received {matrix[row, column]}{hint}"
            )
        if (matrix == np.floor(matrix)).all():
            matrix = matrix.astype(np.int64)
    if num_tasks is not None and len(matrix) != num_tasks:
        hint = f"; {HEADER}" if matrix.shape[1:] == (3,) and ending(path) != ".npy" else ""
        raise DataError(
            f"{path}: expected {num_tasks} rows, one for each row of the features table, received"
            f" shape {matrix.shape}{hint}"
        )
    if num_tasks is None:
        tell_turned(len(matrix), matrix.shape[1], path)
    if not layout.classes and matrix.dtype.kind in "iuf":
        whole = matrix.dtype.kind == "i"
        if whole and len(matrix) >= MANY_ROWS:
            check_no_ids(matrix, path)
        _check_no_sums(matrix, annotators or [], path, line)
        if whole and len(matrix) < MANY_ROWS:
            check_few_ids(matrix, path)
            tell_few_triples(matrix, path)
        if whole:
            check_size(matrix, path, line)
    return LabelTable(path, matrix=matrix, annotator_names=annotators, by_task=True, line=line)


def _without_missing(matrix: NDArray[Any], missing: tuple[str, ...], path: Path) -> NDArray[Any]:
    """Returns a matrix with -1 where it has a number that --missing names, or NaN."""
    named = pd.to_numeric(pd.Series(missing, dtype=object), errors="coerce").to_numpy(float)
    lost = np.isin(matrix, named[np.isfinite(named)])
    if "nan" in (text.lower() for text in missing):
        lost |= np.isnan(matrix)
    tell_lost(lost & (matrix != -1), path)
    return np.where(lost, matrix.dtype.type(-1), matrix)


def _check_no_sums(
    matrix: NDArray[Any], annotators: list[str], path: Path, line: Callable[[int], str]
) -> None:
    """Raises DataError for numbers that look like a vote count a class, for a last row or column
    that holds the sums of the others, and for a first one that counts the rows.
    """
    missing = matrix < 0
    codes = np.where(missing, 0, matrix).astype(np.int64)
    rows, width = codes.shape
    check_no_counts(codes, missing, annotators, path)
    if width < 3 or missing.any() or codes[:-1].max(initial=0) == 0:
        return
    shown = (lambda column: column) if ending(path) == ".npy" else (lambda column: column + 1)
    total = rows > FEW and (codes[:, -1] == codes[:, :-1].sum(axis=1)).all()
    if total and codes[:, -1].max() > codes[:, :-1].max():
        raise DataError(
            f"{path}: column {shown(width - 1)}: expected class codes, received the sums of the"
            f" other columns; take the column out{AS_LABELS}"
        )
    if (codes[-1] == codes[:-1].sum(axis=0)).all() and codes[-1].max() > codes[:-1].max():
        raise DataError(
            f"{path}: {line(rows - 1)}: expected class codes, received the sums of the other rows;"
            f" take the line out{AS_LABELS}"
        )
    counting = rows > 3 and any((codes[:, 0] == np.arange(rows) + k).all() for k in (0, 1))
    if counting and codes[:, 0].max() > 2 * codes[:, 1:].max() + 1:
        raise DataError(
            f"{path}: column {shown(0)}: expected class codes, received the rows' numbers;"
            f" {HEADER}{AS_LABELS}"
        )
