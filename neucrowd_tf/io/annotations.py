"""Files of annotations in any layout: long, wide, votes, a matrix, or peerannot's JSON."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files import read_json
from neucrowd_tf.io.ids import as_name_array, typed_names
from neucrowd_tf.io.importers import detect, read_export
from neucrowd_tf.io.long_form import LabelTable, as_frame, read_long
from neucrowd_tf.io.tables import ALIASES, PLAIN, CsvFile, TableFormat, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = re.compile(r"-?\d+(\.0+)?")
COUNT = re.compile(r"(\d+(\.0+)?)?")
VOTES = "votes_"
MANY_ROWS = 10  # whose sums are not all the same by chance
EMPTY = ("", "nan", "NaN")
HEADER = (
    "where there are ids the first line names the columns: task,worker,label, or task and a column"
    " an annotator"
)


def read_labels(
    path: Path, num_tasks: int | None = None, layout: TableFormat = PLAIN
) -> LabelTable:
    """Reads annotations in any layout.

    The export of an annotation tool is recognised (:mod:`neucrowd_tf.io.importers`); a warning
    counts what it leaves out. Any other `.json` file is peerannot's `answers.json`; a `.npy` file
    a dense matrix with -1 for missing. A CSV is long (`task, worker, label` or their aliases), wide
    (`task` and one column an annotator, empty where there is no label; if no cell is empty, -1 is
    "no label"), counts of votes (`task` and a column `votes_<class>` for each class) where it is
    not known who voted, or a dense matrix of class codes with -1 for missing, with or without a
    header of annotators.

    Args:
        path: the file.
        num_tasks: how many rows a dense matrix must have; None takes any number.
        layout: how a CSV is written.

    Raises:
        DataError: whatever is wrong with the file.
    """
    if path.exists() and (tool := detect(path)) is not None:
        return _exported(path, tool)
    if not path.is_file():
        raise DataError(
            f"{path}: {'expected a file, received a folder' if path.is_dir() else 'no such file'}"
        )
    if path.suffix == ".json":
        return read_answers(path)
    if path.suffix == ".npy":
        try:
            matrix = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(
                f"{path}: expected a NumPy array of whole numbers, received {error}"
            ) from None
        return _dense(matrix, None, num_tasks, path)
    csv = CsvFile.open(path, layout)
    columns = csv.header
    csv.check_separator()
    if all(WHOLE.fullmatch(column) for column in columns):
        return _dense_csv(csv, num_tasks)
    roles = layout.roles(columns)
    others = [column for column in columns if column != roles.get("task")]
    if "task" in roles and others and all(column.startswith(VOTES) for column in others):
        return _votes(csv, layout)
    if {"worker", "label"} & set(roles) or ("task" in roles and _misspelt_long(columns)):
        return read_long(csv, layout)
    if "task" in roles:
        return _wide(csv, layout)
    return _dense_csv(csv, num_tasks)


def _exported(path: Path, tool: str) -> LabelTable:
    export = read_export(path, tool)
    if export.left_out:
        warnings.warn(f"{path}: {export.summary()}", stacklevel=2)
    frame = export.frame()
    return LabelTable(path, (frame["task"], frame["worker"], frame["label"]))


def _misspelt_long(columns: list[str]) -> bool:
    """Whether three columns look like `task,worker,label` with a slip: then the reader of that
    layout says which.
    """
    near = [
        difflib.get_close_matches(name, columns, n=1, cutoff=0.7)
        for role in ("worker", "label")
        for name in ALIASES[role]
    ]
    return len(columns) == 3 and any(near)


# ----------------------------------------------------------------- a row a task


def read_wide_frame(frame: Any) -> LabelTable:
    """Returns the triples of a frame with a row an instance and a column an annotator; whole floats
    become ints (NaN turns an integer column into floats).

    Raises:
        DataError: a repeated row or column name.
    """
    frame = as_frame(frame)
    for axis, what in ((frame.index, "row"), (frame.columns, "column")):
        if not axis.is_unique:
            raise DataError(
                f"wide frame: expected each {what} name once, received"
                f" {axis[axis.duplicated()][0]!r} again"
            )
    values = frame.to_numpy(dtype=object)
    rows, columns = np.nonzero(frame.notna().to_numpy())
    given = values[rows, columns].tolist()
    if all(isinstance(v, (float, np.floating)) and float(v).is_integer() for v in given):
        given = [int(v) for v in given]
    return LabelTable(
        "wide frame",
        (as_name_array(frame.index)[rows], as_name_array(frame.columns)[columns], given),
        instance_names=frame.index,
        annotator_names=frame.columns,
        by_task=True,
    )


def _cells(csv: CsvFile, layout: TableFormat) -> tuple[NDArray[Any], pd.DataFrame]:
    """Returns the task ids `[N]` and the other columns as text."""
    frame = csv.table()
    ids = task_ids(frame, csv.path, layout)
    return ids, frame.drop(columns=[layout.roles(list(frame.columns))["task"]])


def _wide(csv: CsvFile, layout: TableFormat) -> LabelTable:
    ids, cells = _cells(csv, layout)
    values = cells.to_numpy(dtype=object)
    missing = cells.isna().to_numpy() | np.isin(values.astype(str), EMPTY)
    if not missing.any():
        missing = values == "-1"
    rows, columns = np.nonzero(~missing)
    labels = values[rows, columns].tolist()
    if labels and all(
        WHOLE.fullmatch(label) for label in labels
    ):  # NaN turns a column of whole numbers into 1.0, 2.0
        labels = [int(label.split(".")[0]) for label in labels]
        _check_no_counts(np.array(labels), missing, list(cells.columns), csv.path)
    annotators = as_name_array(cells.columns.tolist())
    return LabelTable(
        csv.path,
        (ids[rows], annotators[columns], labels),
        instance_names=ids,
        annotator_names=annotators,
        by_task=True,
    )


def _check_no_counts(
    labels: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str], path: Path
) -> None:
    """Raises DataError for full rows of numbers with one sum, not all the same: a vote count a
    class whose columns do not say so.
    """
    if missing.any() or len(missing) < MANY_ROWS or len(set(labels.tolist())) == 1:
        return
    sums = labels.reshape(missing.shape).sum(axis=1)
    if (sums == sums[0]).all() and labels.min() >= 0:
        named = ", ".join(VOTES + name for name in columns[:3]) + (
            ", ..." if len(columns) > 3 else ""
        )
        raise DataError(
            f"{path}: expected a label in each cell, received numbers that sum to {sums[0]} in"
            f" every row, as counts of votes do; if they are, name the columns {named}, if not,"
            " write the labels as task,worker,label"
        )


def _votes(csv: CsvFile, layout: TableFormat) -> LabelTable:
    """Reads counts of votes: `task` and a column for each class, whose empty cells count as 0."""
    ids, cells = _cells(csv, layout)
    names = [str(column) for column in cells.columns]
    counts = np.zeros(cells.shape)
    for place, name in enumerate(names):
        texts = cells[name].fillna("").str.strip()
        bad = np.flatnonzero(~texts.str.fullmatch(COUNT).to_numpy())
        if len(bad):
            raise DataError(
                f"{csv.path}: row {bad[0]}, column {name!r}: expected a count of votes from 0,"
                " received"
                f" {texts.iloc[bad[0]]!r}"
            )
        counts[:, place] = texts.where(texts != "", "0").astype(float)
    classes = typed_names([name.removeprefix(VOTES) for name in names])
    return LabelTable(
        csv.path, counts=counts, instance_names=ids, class_names=classes, by_task=True
    )


def _dense_csv(csv: CsvFile, num_tasks: int | None) -> LabelTable:
    """Reads a matrix of codes. A first line of whole numbers is a row of the matrix, unless they
    differ and make one row too many.
    """
    columns = csv.header
    numeric = all(WHOLE.fullmatch(column) for column in columns)
    frame = csv.table(header=None) if numeric else csv.table()
    if (
        numeric
        and num_tasks is not None
        and len(frame) == num_tasks + 1
        and len(set(columns)) == len(columns)
    ):
        frame, numeric = frame.iloc[1:].reset_index(drop=True), False
    values = frame.to_numpy(dtype=object)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            if not (isinstance(cell, str) and WHOLE.fullmatch(cell.strip())):
                name = column if numeric else columns[column]
                where = f"{csv.path}: row {row}, column {name!r}"
                hint = "" if column else f"; {HEADER}"
                raise DataError(
                    f"{where}: expected a class code, or -1 for no label, received {cell!r}{hint}"
                )
    matrix = values.astype(np.float64).astype(np.int64)
    return _dense(matrix, None if numeric else columns, num_tasks, csv.path)


def _dense(
    matrix: NDArray[Any], annotators: list[str] | None, num_tasks: int | None, path: Path
) -> LabelTable:
    if num_tasks is not None and (matrix.ndim != 2 or len(matrix) != num_tasks):
        hint = f"; {HEADER}" if matrix.shape[1:] == (3,) and path.suffix != ".npy" else ""
        raise DataError(
            f"{path}: expected {num_tasks} rows, one for each row of the features table, received"
            f" shape {matrix.shape}{hint}"
        )
    return LabelTable(path, matrix=matrix, annotator_names=annotators, by_task=True)


# ----------------------------------------------------------------- JSON


def read_answers(source: str | Path | Mapping[str, Mapping[str, Hashable]]) -> LabelTable:
    """Returns the triples of peerannot's `{task: {worker: label}}`; a task without answers is
    named, without labels.

    Raises:
        DataError: not JSON, or not tasks that hold workers that hold labels.
    """
    answers = source if isinstance(source, Mapping) else read_json(source)
    where = "answers" if isinstance(source, Mapping) else source
    if not isinstance(answers, Mapping):
        raise DataError(f"{where}: expected an object of tasks, received {type(answers).__name__}")
    triples: list[tuple[Hashable, Hashable, Hashable]] = []
    for task, given in answers.items():
        if not isinstance(given, Mapping):
            raise DataError(
                f"{where}: task {task!r}: expected an object of workers and labels, received"
                f" {type(given).__name__}"
            )
        for worker, label in given.items():
            if label is None or not isinstance(label, Hashable):
                raise DataError(
                    f"{where}: task {task!r}, worker {worker!r}: expected a label, received"
                    f" {label!r}"
                )
            triples.append((task, worker, label))
    for triple in triples:
        for what, value in zip(ALIASES, triple, strict=True):
            if (
                isinstance(value, str)
                and not value.isascii()
                and any("\ud800" <= letter <= "\udfff" for letter in value)
            ):
                raise DataError(
                    f"{where}: expected text, received a {what} with half a surrogate pair:"
                    f" {value!r}"
                )
            if isinstance(value, str) and "\0" in value:
                raise DataError(
                    f"{where}: expected text, received a {what} with a NUL character: {value!r}"
                )
    tasks, workers, labels = (
        (list(column) for column in zip(*triples, strict=True)) if triples else ([], [], [])
    )
    return LabelTable(where, (tasks, workers, labels), instance_names=list(answers))
