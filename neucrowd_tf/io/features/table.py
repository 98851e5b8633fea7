"""Tables of features: CSV, Parquet or NPY."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features.binary import read_npy_features, read_parquet
from neucrowd_tf.io.features.columns import check_features, check_twins
from neucrowd_tf.io.features.ids import check_ids, like_ids, never_repeats, tell_row_numbers
from neucrowd_tf.io.features.numbers import (
    MANY_ROWS,
    check_size,
    finite_numbers,
    loses_variation,
    tell_fillings,
    tell_small,
    tell_thousands,
)
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.tables.csv_file import MANY_COLUMNS, CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.tasks import beside, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TRUTHS = {text: text[0] in "Tt" for text in ["True", "TRUE", "true", "False", "FALSE", "false"]}


@dataclasses.dataclass(frozen=True)
class FeatureTable:
    """A table of features.

    Attributes:
        tasks: `[N]` ids as text.
        rows: `[N, d]` float32 (an NPY file's may have more axes).
        names: the d columns' names.
        centre: what was subtracted, by column, where float32 could not hold the variation of the
            numbers as they are.
    """

    tasks: NDArray[Any]
    rows: NDArray[np.float32]
    names: list[str]
    centre: dict[str, float] = dataclasses.field(default_factory=dict)


def read_features(
    path: Path, layout: TableFormat = PLAIN
) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    """Returns the tasks, rows and names of `read_feature_table`, beside labels."""
    table = read_feature_table(path, layout, with_labels=True)
    return table.tasks, table.rows, table.names


def read_feature_table(
    path: Path,
    layout: TableFormat = PLAIN,
    centre: Mapping[str, float] | None = None,
    *,
    with_labels: bool = False,
) -> FeatureTable:
    """Reads `task` and numeric columns from a CSV or a Parquet file, or an array from an NPY file,
    whose tasks are numbered from 0.

    Args:
        path: the file.
        layout: how a CSV is written, what its column of tasks is called, what is left out.
        centre: what to subtract, by column; None subtracts the mean of columns that float32 could
            not tell apart otherwise (times in seconds, say), with a warning.
        with_labels: whether `layout` says how the labels beside are written, see `beside`.

    Raises:
        DataError: a missing, misspelt or non-numeric column, one that holds labels or ids, an empty
            cell, NaN, infinity, or a task that is there twice.
        UsageError: a Parquet file, and no pyarrow to read it with.
    """
    if ending(path) == ".npy":
        return FeatureTable(*read_npy_features(path))
    if ending(path) in (".parquet", ".pq"):
        frame, layout = read_parquet(path, layout, with_labels)
        return _table(frame, path, layout, None, centre)
    if with_labels:
        layout = beside(path, layout)
    csv = CsvFile.open(path, layout)
    # Numbers are parsed as numbers at full speed; ids stay text.
    task = layout.roles(csv.header).get("task")
    header = csv.frame(nrows=0).columns if not csv.wide else ()
    texts = [column for column in header if str(column).strip() == task]
    frame = csv.table(dtype=dict.fromkeys(texts, str), low_memory=False)
    return _table(frame, path, layout, csv, centre)


def _table(
    frame: pd.DataFrame,
    path: Path,
    layout: TableFormat,
    csv: CsvFile | None,
    centre: Mapping[str, float] | None,
) -> FeatureTable:
    ids = task_ids(frame, path, layout, csv)
    names = _feature_columns(frame, path, layout)
    line = (lambda row: f"row {row}") if csv is None else csv.line
    rows, found, unlike = _rows(frame, names, path, line, centre)
    if found and centre is None:
        name = next(iter(found))
        warnings.warn(
            f"{path}: {len(found)} columns vary less than single precision shows at their size and"
            f" are centred first (the first: {name!r}, at {found[name]:.9g})",
            stacklevel=3,
        )
    if csv is not None:
        tell_thousands(frame[names], csv.table, path)
    if len(ids) >= MANY_ROWS:
        for name in tell_row_numbers(rows, names, path):
            unlike.pop(name, None)
        tell_fillings(rows, names, path)
    check_ids(unlike, len(names), path)
    return FeatureTable(ids, rows, names, found)


def _feature_columns(frame: pd.DataFrame, path: Path, layout: TableFormat) -> list[str]:
    """Returns the columns beside that of the tasks and those that are left out."""
    task = layout.roles(list(frame.columns))["task"]
    for name in layout.ignored:
        if name not in frame.columns:
            raise UsageError(f"--ignore_columns: {path}: expected a column, received {name!r}")
        if name == task:
            raise UsageError(
                f"--ignore_columns: {path}: expected columns of features, received that of the"
                f" tasks, {name!r}"
            )
    left_out = {task, *layout.ignored}
    names = [str(column) for column in frame.columns if column not in left_out]
    if not names:
        raise DataError(
            f"{path}: expected at least one numeric column beside {task!r}, received none"
        )
    check_features(names, path, layout)
    check_twins(names, path)
    return names


def _cells(frame: pd.DataFrame) -> NDArray[Any]:
    """Returns the cells of very many columns, those of True and False alone as 1 and 0."""
    cells = frame.to_numpy(dtype=object, copy=True)
    for column in cells.T:
        if isinstance(column[0], str) and column[0] in _TRUTHS and _TRUTHS.keys() >= set(column):
            column[:] = [_TRUTHS[cell] for cell in column]
    return cells


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64] | None:
    """Returns cells as numbers, None where one is none, or is spelt as Python alone takes one
    (1_000, digits of other alphabets).
    """
    texts = "".join(cell for cell in cells.ravel() if isinstance(cell, str))
    if "_" not in texts and texts.isascii():
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return cells.astype(np.float64)
    return None


def _rows(
    frame: pd.DataFrame,
    names: list[str],
    path: Path,
    line: Callable[[int], str],
    centre: Mapping[str, float] | None,
) -> tuple[NDArray[np.float32], dict[str, float], dict[str, bool]]:
    """Returns the columns as numbers `[N, d]`, what was subtracted, by column, and which columns
    never repeat: whether they do so as ids. With a `centre`, which is of a table that was looked
    through, none.
    """
    rows = np.empty((len(frame), len(names)), dtype=np.float32)
    found: dict[str, float] = {}
    unlike: dict[str, bool] = {}
    cells = _cells(frame[names]) if len(names) > MANY_COLUMNS else None
    whole = None if cells is None else _numbers(cells)
    for place, name in enumerate(names):
        column = frame[name] if cells is None else pd.Series(cells[:, place], name=name)
        values = finite_numbers(column, path, line) if whole is None else whole[:, place]
        if centre is None:
            check_size(values, name, path)
            if never_repeats(values):
                unlike[name] = like_ids(values)
        if centre is None and loses_variation(values):
            found[name] = float(np.round(values.mean()))
        elif centre is not None and name in centre:
            found[name] = float(centre[name])
        if name in found:
            values = values - np.asarray(found[name], dtype=values.dtype)
        rows[:, place] = values
    if centre is None:
        tell_small(rows, names, path)
    if whole is not None and not np.isfinite(rows).all():
        name = names[int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])]
        finite_numbers(frame[name], path, line)
    return rows, found, unlike
