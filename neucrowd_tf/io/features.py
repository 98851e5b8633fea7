"""Readers of a user's features: CSV, Parquet or NPY."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.ids import as_name_array
from neucrowd_tf.io.tables import PLAIN, CsvFile, TableFormat, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_features(
    path: Path, layout: TableFormat = PLAIN
) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    """Reads `task` and numeric columns from a CSV or a Parquet file, or an array from an NPY file,
    whose tasks are numbered from 0.

    Args:
        path: the file.
        layout: how a CSV is written, and what its column of tasks is called.

    Returns:
        task ids `[N]` as text, features `[N, d]` (an NPY file's may have more axes) float32, and
        the feature columns' names.

    Raises:
        DataError: a missing, misspelt or non-numeric column, an empty cell, NaN, infinity, or a
            task that is there twice.
        UsageError: a Parquet file, and no pyarrow to read it with.
    """
    if path.suffix == ".npy":
        return _npy_features(path)
    if path.suffix in (".parquet", ".pq"):
        return _table(_read_parquet(path, layout), path, layout)
    csv = CsvFile.open(path, layout)
    # Numbers are parsed as numbers at full speed; ids stay text.
    header = csv.frame(nrows=0).columns
    task = layout.roles([str(column).strip() for column in header]).get("task")
    texts = [column for column in header if str(column).strip() == task]
    frame = csv.table(dtype=dict.fromkeys(texts, str), low_memory=False)
    return _table(frame, path, layout)


def _table(
    frame: pd.DataFrame, path: Path, layout: TableFormat
) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    ids = task_ids(frame, path, layout)
    task = layout.roles(list(frame.columns))["task"]
    names = [str(column) for column in frame.columns if column != task]
    if not names:
        raise DataError(
            f"{path}: expected at least one numeric column beside {task!r}, received none"
        )
    columns = [_numbers(frame[name], path) for name in names]
    return ids, np.stack(columns, axis=1), names


def _read_parquet(path: Path, layout: TableFormat) -> pd.DataFrame:
    """Reads a Parquet file; the task ids become text."""
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise UsageError(
            f"{path}: expected pyarrow to read Parquet, received none: pip install"
            " 'neucrowd-tf[parquet]'"
        ) from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a Parquet file, received {' '.join(str(error).split())[:200]}"
        ) from None
    frame.columns = [str(column).strip() for column in frame.columns]
    if not len(frame):
        raise DataError(f"{path}: expected at least one row, received none")
    column = layout.roles(list(frame.columns)).get("task")
    if column is None and "task" in layout.roles([str(frame.index.name)]):
        frame = frame.reset_index()
        column = str(frame.columns[0])
    if column is not None:
        values = frame[column].astype(object)
        frame[column] = values.map(str).where(values.notna(), "")
    return frame


def _npy_features(path: Path) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path}: expected a NumPy array of numbers, received {error}") from None
    if (
        not isinstance(array, np.ndarray)
        or array.dtype.kind not in "fiu"
        or array.ndim < 2
        or not array.size
    ):
        kind = (
            f"{array.dtype} of shape {array.shape}"
            if isinstance(array, np.ndarray)
            else "an archive of several"
        )
        raise DataError(
            f"{path}: expected an array of numbers with a row an instance, received {kind}"
        )
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    if not np.isfinite(single).all():
        row, *column = np.argwhere(~np.isfinite(single))[0].tolist()
        raise DataError(
            f"{path}: row {row}, column {column[0] if len(column) == 1 else tuple(column)}:"
            " expected a finite number"
        )
    names = [str(i) for i in range(single.shape[-1])]
    return as_name_array([str(i) for i in range(len(single))]), single, names


def _numbers(column: pd.Series, path: Path) -> NDArray[np.float32]:
    values = (
        column.to_numpy()
        if column.dtype.kind in "iuf"
        else pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    )
    with np.errstate(over="ignore"):  # a number too large for float32 is infinite, and said below
        single = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single)) if column.dtype.kind != "b" else np.arange(1)
    if len(bad):
        cell = column.iloc[bad[0]]
        shown = (
            "an empty cell"
            if cell is None or (isinstance(cell, str) and cell == "")
            else repr(cell)
            if isinstance(cell, str)
            else str(cell)
        )
        raise DataError(
            f"{path}: row {bad[0]}, column {column.name!r}: expected a finite number, received"
            f" {shown}"
        )
    return single
