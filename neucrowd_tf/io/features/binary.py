"""Features in Parquet and NPY files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features.ids import check_ids, like_ids, never_repeats, tell_row_numbers
from neucrowd_tf.io.features.numbers import MANY_ROWS, check_size, loses_variation, tell_fillings
from neucrowd_tf.io.files.arrays import read_npy
from neucrowd_tf.io.names.ids import as_name_array
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.headers import check_no_twins
from neucrowd_tf.io.tables.parquet import read_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_parquet(
    path: Path, layout: TableFormat, with_labels: bool = False
) -> tuple[pd.DataFrame, TableFormat]:
    """Reads a Parquet file, whose task ids become text; `layout` returns without the columns' names
    that it does not have, where it is beside labels.
    """
    frame = read_frame(path)
    frame.columns = [str(column).strip() for column in frame.columns]
    if "" in frame.columns:
        raise DataError(
            f"{path}: expected a name for each column, received an empty one for column"
            f" {list(frame.columns).index('') + 1}"
        )
    check_no_twins(path, list(frame.columns))
    if not len(frame):
        raise DataError(f"{path}: expected at least one row, received none")
    index = str(frame.index.name)
    if with_labels:
        layout = layout.among([index, *frame.columns])
    column = layout.roles([index, *frame.columns]).get("task")
    if column == index and index not in frame.columns:
        frame = frame.reset_index(names=index)
    if column is not None:
        values = _whole(frame[column]).astype(object)
        if any(isinstance(value, bytes) for value in values):  # text that nobody marked as such
            try:
                values = values.map(lambda v: v.decode() if isinstance(v, bytes) else v)
            except UnicodeDecodeError:
                raise DataError(
                    f"{path}: column {column!r}: expected task ids of text or numbers, received"
                    " bytes that are no UTF-8"
                ) from None
        frame[column] = values.map(str).where(values.notna(), "")
    return frame, layout


def _whole(column: pd.Series) -> pd.Series:
    """Returns ids that are floats for a missing one's sake (1.0) as the whole numbers they are."""
    if column.dtype.kind != "f":
        return column
    numbers = column.dropna()
    exact = ((numbers % 1 == 0) & (numbers.abs() < 1 << 53)).all()
    return column.astype("Int64") if exact else column


def read_npy_features(path: Path) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    array = read_npy(path)
    if array.dtype.kind == "b":
        array = array.astype(np.int8)
    if array.dtype.kind not in "fiu" or array.ndim < 2 or not array.size:
        raise DataError(
            f"{path}: expected an array of numbers with a row an instance, received {array.dtype}"
            f" of shape {array.shape}"
        )
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    if not np.isfinite(single).all():
        row, *column = np.argwhere(~np.isfinite(single))[0].tolist()
        raise DataError(
            f"{path}: row {row}, column {column[0] if len(column) == 1 else tuple(column)}:"
            f" expected a finite number, received {array[(row, *column)]}"
        )
    names = [str(i) for i in range(single.shape[-1])]
    if array.ndim == 2:
        _check_columns(array, single, names, path)
    return as_name_array([str(i) for i in range(len(single))]), single, names


def _check_columns(
    array: NDArray[Any], single: NDArray[np.float32], names: list[str], path: Path
) -> None:
    """Warns of columns of an array that float32 blurs, and of those that number the rows."""
    for place, name in enumerate(names):
        check_size(array[:, place], name, path)
    wide = array.dtype.itemsize > single.dtype.itemsize
    lost = [place for place in range(len(names)) if wide and loses_variation(array[:, place])]
    if lost:
        warnings.warn(
            f"{path}: {len(lost)} columns vary less than single precision shows at their size (the"
            f" first: {lost[0]}); subtract their means first",
            stacklevel=4,
        )
    unlike = {
        name: like_ids(array[:, k]) for k, name in enumerate(names) if never_repeats(array[:, k])
    }
    for name in tell_row_numbers(single, names, path, named=False):
        unlike.pop(name, None)
    check_ids(unlike, len(names), path, named=False)
    if len(single) >= MANY_ROWS:
        tell_fillings(single, names, path)
