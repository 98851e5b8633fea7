"""Readers of a user's own tables: truth, and annotations in any layout. Ids are compared as they
are spelt.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import Annotations, as_name_array
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.annotations import ALIASES, plain_integers
from neucrowd_tf.io.files import (
    check_commas,
    has_nul,
    not_text,
    read_csv,
    read_header,
    require_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WHOLE = re.compile(r"-?\d+(\.0+)?")
COUNT = re.compile(r"(\d+(\.0+)?)?")
VOTES = "votes_"
MOST_CLASSES = 50  # where there are fewer tasks than classes
MANY_ROWS = 10  # whose sums are not all the same by chance
EMPTY = ("", "nan", "NaN")
HEADER = (
    "where there are ids the first line names the columns: task,worker,label, or task and a column"
    " an annotator"
)


def read_text_table(path: Path, **options: Any) -> pd.DataFrame:
    """Reads a CSV whose cells are kept as text unless `options` say otherwise; headers lose
    surrounding spaces.

    Raises:
        DataError: no such file, no UTF-8, NUL bytes, no rows, rows longer than the header, or a
            column that is there twice.
    """
    if path.is_file() and has_nul(path):
        raise DataError(f"{path}: expected text in UTF-8, received {not_text(path)}")
    if "header" not in options:
        read_header(path)
    frame = read_csv(path, **{"dtype": str, "keep_default_na": False, **options})
    frame.columns = [str(column).strip() for column in frame.columns]
    nameless = [name for name in frame.columns if re.fullmatch(r"Unnamed: \d+", name)]
    if nameless:  # a row index that a frame was saved with, most likely
        raise DataError(
            f"{path}: expected a name for each column, received an empty header for column"
            f" {nameless[0].split()[1]}"
        )
    if not isinstance(frame.index, pd.RangeIndex):
        check_commas(path, frame.columns.tolist())
        raise DataError(
            f"{path}: expected {len(frame.columns)} fields in each row, as in the header, received"
            " more"
        )
    if not len(frame):
        raise DataError(f"{path}: expected at least one row below the header, received none")
    return frame


def alias(columns: Sequence[str], role: str) -> str | None:
    """Returns the column that plays `role` (task, worker or label) under any of its names, or
    None."""
    folded = {name.lower(): name for name in reversed(columns)}
    return next((folded[name.lower()] for name in ALIASES[role] if name.lower() in folded), None)


def task_ids(frame: pd.DataFrame, path: Path) -> NDArray[Any]:
    """Returns the task ids `[N]` as text; each must be there, once."""
    column = alias(list(frame.columns), "task")
    if column is None:
        require_columns(path, list(frame.columns), ["task"])
    ids = frame[column]
    bad = np.flatnonzero((ids.isna() | (ids == "")).to_numpy())
    if len(bad):
        raise DataError(
            f"{path}: row {bad[0]}, column {column!r}: expected a task id, received an empty cell"
        )
    twice = np.flatnonzero(ids.duplicated().to_numpy())
    if len(twice):
        raise DataError(
            f"{path}: row {twice[0]}, column {column!r}: expected each task once, received"
            f" {ids.iloc[twice[0]]!r} again"
        )
    return as_name_array(ids.tolist())


def typed_names(texts: Sequence[str]) -> NDArray[Any]:
    """Returns names as whole numbers where every text is how one is spelt, else as text."""
    return (
        np.array([int(text) for text in texts])
        if plain_integers(texts)
        else as_name_array(list(texts))
    )


def read_truth(
    path: Path, tasks: NDArray[Any], class_names: NDArray[Any], *, others: bool = False
) -> NDArray[np.int64]:
    """Reads `task,label`.

    Args:
        path: the CSV.
        tasks: `[N]` known task ids, as text.
        class_names: `[C]`; labels are compared with them as they are spelt.
        others: whether the file may have further tasks, which are then left out.

    Returns:
        `[N]` class codes in the order of `tasks`, -1 for tasks that the file does not have.

    Raises:
        DataError: a missing column, an unknown task, a task twice, an empty cell, or a label that
            is no class.
    """
    frame = read_text_table(path)
    ids = task_ids(frame, path)
    column = alias(list(frame.columns), "label")
    if column is None:
        require_columns(path, list(frame.columns), ["label"])
    position = {name: row for row, name in enumerate(tasks.tolist())}
    code = {str(name): number for number, name in enumerate(class_names.tolist())}
    truth = np.full(len(tasks), -1, dtype=np.int64)
    for row, (task, label) in enumerate(zip(ids.tolist(), frame[column].tolist(), strict=True)):
        if task not in position:
            if others:
                continue
            raise DataError(
                f"{path}: row {row}, column 'task': expected a task of the features table, received"
                f" {task!r}"
            )
        if label not in code:
            shown = ", ".join(repr(name) for name in list(code)[:8])
            hint = "" if label else "; leave out tasks whose label is unknown"
            where = f"{path}: row {row}, column {column!r}"
            raise DataError(
                f"{where}: expected one of the annotated classes {shown} (--classes names more),"
                f" received {label!r}{hint}"
            )
        truth[position[task]] = code[label]
    return truth


def read_annotations(path: Path, tasks: NDArray[Any] | None = None) -> Annotations:
    """Reads annotations of the given tasks, or of all that the file has, in any layout.

    A `.json` file is peerannot's `answers.json`; a `.npy` file a dense matrix with -1 for missing.
    A CSV is long (`task, worker, label` or their aliases), wide (`task` and one column an
    annotator, empty where there is no label; if no cell is empty, -1 is "no label"), counts of
    votes (`task` and a column `votes_<class>` for each class) where it is not known who voted, or a
    dense matrix of class codes with -1 for missing, with or without a header of annotators. A dense
    matrix has its rows in the order of the features table.

    Args:
        path: the file.
        tasks: `[N]` task ids of the features table, as text; None takes the file's own (a dense
            matrix has none: its rows are numbered from 0).

    Returns:
        annotations of N instances in the order of `tasks`.

    Raises:
        DataError: whatever is wrong with the file; a task that the features table does not have.
    """
    if not path.is_file():
        raise DataError(
            f"{path}: {'expected a file, received a folder' if path.is_dir() else 'no such file'}"
        )
    if path.suffix == ".json":
        return _align(Annotations.from_answers_json(path), tasks, path)
    if path.suffix == ".npy":
        try:
            matrix = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(
                f"{path}: expected a NumPy array of whole numbers, received {error}"
            ) from None
        return _dense(matrix, None, tasks, path)
    first = read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    columns = [str(cell).strip() for cell in first.iloc[0].tolist()]
    check_commas(path, columns)
    if all(WHOLE.fullmatch(column) for column in columns):
        return _dense_csv(path, columns, tasks)
    roles = {role for role in ALIASES if alias(columns, role)}
    if (
        "task" in roles
        and len(columns) > 1
        and all(column.startswith(VOTES) for column in columns if column != alias(columns, "task"))
    ):
        return _align(_vote_csv(path), tasks, path, wide=True)
    if roles & {"worker", "label"} or ("task" in roles and _misspelt_long(columns)):
        return _align(Annotations.from_csv(path), tasks, path)
    if "task" in roles:
        return _align(_wide_csv(path), tasks, path, wide=True)
    return _dense_csv(path, columns, tasks)


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


def _align(
    annotations: Annotations, tasks: NDArray[Any] | None, path: Path, wide: bool = False
) -> Annotations:
    """Returns the annotations over all of `tasks`, in their order; as they are where that is
    None."""
    _check_classes(annotations.num_classes, annotations.num_instances, path)
    plain: dict[str, str] = {}
    for name in map(str, annotations.class_names.tolist()):
        if plain.setdefault(name.strip(), name) != name:
            raise DataError(
                f"{path}: expected labels that differ in more than spaces, received"
                f" {plain[name.strip()]!r} and {name!r}"
            )
    if not annotations.num_annotations:
        raise DataError(f"{path}: expected at least one label, received none")
    if tasks is None:
        return annotations
    position = {name: row for row, name in enumerate(tasks.tolist())}
    names = [str(name) for name in annotations.instance_names.tolist()]
    mapped = np.array([position.get(name, -1) for name in names], dtype=np.int64)
    if (mapped < 0).any():
        code = int(np.flatnonzero(mapped < 0)[0])
        row = code if wide else next(iter(np.flatnonzero(annotations.instances == code)), None)
        where = "" if path.suffix == ".json" or row is None else f"row {row}, "
        hint = (
            ""
            if (mapped >= 0).any()
            else (
                "; no task is there, and those of the features are spelt like"
                f" {tasks.tolist()[0]!r}"
            )
        )
        raise DataError(
            f"{path}: {where}column 'task': expected a task of the features table, received"
            f" {names[code]!r}{hint}"
        )
    if not annotations.has_identities:
        counts = np.zeros((len(tasks), annotations.num_classes), dtype=np.int64)
        counts[mapped] = annotations.vote_counts()
        return Annotations.from_votes(
            counts, instance_names=tasks, class_names=annotations.class_names
        )
    return Annotations(
        mapped[annotations.instances],
        annotations.annotators,
        annotations.labels,
        instance_names=tasks,
        annotator_names=annotations.annotator_names,
        class_names=annotations.class_names,
    )


def _check_classes(classes: int, tasks: int, path: Path) -> None:
    """Raises DataError for labels that are no classes: a table of features, say, or ids."""
    if classes > max(MOST_CLASSES, tasks):
        raise DataError(
            f"{path}: expected labels from a set of classes, received {classes:,} different ones"
            f" for {tasks:,} tasks"
        )


def _wide_csv(path: Path) -> Annotations:
    frame = read_text_table(path)
    ids = task_ids(frame, path)
    cells = frame.drop(columns=[alias(list(frame.columns), "task")])
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
        _check_no_counts(np.array(labels), missing, list(cells.columns), path)
    annotators = as_name_array(cells.columns.tolist())
    return Annotations.from_arrays(
        ids[rows], annotators[columns], labels, instance_names=ids, annotator_names=annotators
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


def _vote_csv(path: Path) -> Annotations:
    """Reads counts of votes: `task` and a column for each class, whose empty cells count as 0."""
    frame = read_text_table(path)
    ids = task_ids(frame, path)
    cells = frame.drop(columns=[alias(list(frame.columns), "task")])
    names = [str(column) for column in cells.columns]
    counts = np.zeros(cells.shape)
    for place, name in enumerate(names):
        texts = cells[name].fillna("").str.strip()
        bad = np.flatnonzero(~texts.str.fullmatch(COUNT).to_numpy())
        if len(bad):
            raise DataError(
                f"{path}: row {bad[0]}, column {name!r}: expected a count of votes from 0, received"
                f" {texts.iloc[bad[0]]!r}"
            )
        counts[:, place] = texts.where(texts != "", "0").astype(float)
    classes = typed_names([name.removeprefix(VOTES) for name in names])
    return Annotations.from_votes(counts, instance_names=ids, class_names=classes)


def _dense_csv(path: Path, columns: list[str], tasks: NDArray[Any] | None) -> Annotations:
    """Reads a matrix of codes. A first line of whole numbers is a row of the matrix, unless they
    differ and make one row too many.
    """
    numeric = all(WHOLE.fullmatch(column) for column in columns)
    frame = read_text_table(path, header=None) if numeric else read_text_table(path)
    if (
        numeric
        and tasks is not None
        and len(frame) == len(tasks) + 1
        and len(set(columns)) == len(columns)
    ):
        frame, numeric = frame.iloc[1:].reset_index(drop=True), False
    values = frame.to_numpy(dtype=object)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            if not (isinstance(cell, str) and WHOLE.fullmatch(cell.strip())):
                name = column if numeric else columns[column]
                where = f"{path}: row {row}, column {name!r}"
                hint = "" if column else f"; {HEADER}"
                raise DataError(
                    f"{where}: expected a class code, or -1 for no label, received {cell!r}{hint}"
                )
    return _dense(
        values.astype(np.float64).astype(np.int64), None if numeric else columns, tasks, path
    )


def _dense(
    matrix: NDArray[Any], annotators: list[str] | None, tasks: NDArray[Any] | None, path: Path
) -> Annotations:
    if tasks is not None and (matrix.ndim != 2 or len(matrix) != len(tasks)):
        hint = f"; {HEADER}" if matrix.shape[1:] == (3,) and path.suffix != ".npy" else ""
        raise DataError(
            f"{path}: expected {len(tasks)} rows, one for each row of the features table, received"
            f" shape {matrix.shape}{hint}"
        )
    if (
        matrix.ndim == 2 and matrix.dtype.kind in "iu" and matrix.size
    ):  # codes are classes, all those below the largest
        _check_classes(int(matrix.max()) + 1, len(matrix), path)
    try:
        return Annotations.from_dense(matrix, instance_names=tasks, annotator_names=annotators)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
