"""Features and texts of items: tables as CSV or Parquet, and arrays as NPY."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.annotations.tables import rescaling
from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Array, Floats, Texts
from neucrowd_tf.errors import UsageError, warn
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import is_gold
from neucrowd_tf.io.files.npy import read_npy
from neucrowd_tf.io.files.reading import ending, open_text
from neucrowd_tf.io.items import item_columns, item_ids, options_beside, read_beside
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import (
    PARQUET,
    Table,
    cell_text,
    head_of,
    open_parquet,
    read_table,
    separator_of,
)
from neucrowd_tf.names import among, as_name_array, roles_of, without

TEXTS = ("text", "sentence", "content", "comment", "document")
INDEX = "__index_level_"  # the index of a frame without a name, in Parquet
TRUTH_VALUES = {"true": 1.0, "false": 0.0}  # as pandas writes a class's columns


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureTable:
    """The features of N items.

    Attributes:
        items: `[N]` ids as text.
        rows: `[N, d]` float32, or float64 if float32 cannot hold a column; an NPY file may have
            more axes.
        names: the d columns' names.
    """

    items: Array
    rows: Array
    names: list[str]


def read_features(path: Path, options: TableOptions = DEFAULTS, ignore: Texts = ()) -> FeatureTable:
    """Reads a column of ids and columns of numbers from a CSV or Parquet file, or an NPY array.

    The items of an NPY file are numbered from 0.

    Args:
        path: the file.
        options: of which the column of items counts, if the file has it.
        ignore: columns that are no features.

    Raises:
        DataError: an item twice or without id, a number that is not finite, or a column that is
            named as a label or an annotator.
        UsageError: a column of `ignore` that does not exist, or Parquet without pyarrow.
    """
    if ending(path) == ".npy":
        return _read_array(path)
    options = options_beside(path, options)
    head = head_of(path, options, 1)
    item = item_columns(head, options)
    names = _feature_columns(head, item, ignore)
    options = dataclasses.replace(options, task_column=tuple(item))
    if ending(path) in PARQUET:
        table = _parquet_table(head, names)
    elif (fast := _by_pandas(path, options, names)) is not None:
        return fast
    else:
        table = read_table(path, options)
    items = item_ids(table, options)
    rows = np.empty((len(table), len(names)))
    for place, name in enumerate(names):
        rows[:, place] = _numbers(table, name)
    return FeatureTable(as_name_array(items), _held(rows), names)


def _held(rows: Array) -> Array:
    """Returns finite numbers in float32, if it holds them."""
    if rescaling(rows) is None:
        return rows.astype(np.float32)
    return rows.astype(np.float64)


def read_texts(path: Path, options: TableOptions = DEFAULTS) -> tuple[Array, Array]:
    """Reads a column of ids and one of texts; other columns are not read.

    Args:
        path: a CSV or Parquet file. The texts' column is the first of `TEXTS` that it has.
        options: as for `read_features`.

    Returns:
        ids `[N]` and texts `[N]` (str); an empty cell is an empty text.

    Raises:
        DataError: no such column, an item twice or without id, or no text in any row.
    """
    table, options = read_beside(path, options)
    items = item_ids(table, options)
    named = [column for column in table.columns if column.casefold() in TEXTS]
    if not named:
        columns = f"The columns are {', '.join(table.columns)}"
        advice = f"Name the texts' column {TEXTS[0]}."
        raise error("missing_role", path, roles="text", columns=columns, advice=advice)
    column = min(named, key=lambda name: TEXTS.index(name.casefold()))
    texts = table[column]
    if not any(map(str.strip, texts)):
        raise broken(path, f"all texts in column {column!r} are empty")
    return as_name_array(items), np.array(texts, dtype=object)


def _by_pandas(path: Path, options: TableOptions, names: list[str]) -> FeatureTable | None:
    """Reads a CSV of numbers much faster than the reader of rows does.

    Returns None if something is odd: the reader of rows then reads it, or says what is wrong.
    """
    import pandas as pd

    item = options.task_column
    try:
        with open_text(path) as stream:
            separator = separator_of(path, stream.readline(), options)
        with open_text(path) as stream:
            texts: Any = dict.fromkeys(item, str)
            frame = pd.read_csv(
                stream, sep=separator, low_memory=False, dtype=texts, keep_default_na=False
            )
            if not isinstance(frame.index, pd.RangeIndex):  # rows have a cell too many
                return None
            rows = frame[names].to_numpy(np.float64)
        items = item_ids(Table(path, item, frame[list(item)].to_numpy().T.tolist()), options)
    except (KeyError, OverflowError, ValueError):
        return None
    if np.isfinite(rows).all():
        return FeatureTable(as_name_array(items), _held(rows), names)
    return None


def _parquet_table(head: Table, features: Texts) -> Table:
    """Returns a Parquet file as a table whose columns of numbers are arrays."""
    cells: list[Any] = []
    for name, column in zip(head.columns, open_parquet(head.path).columns, strict=True):
        values = column.to_numpy()
        if name in features and values.dtype.kind in "fiub":
            cells.append(values)
        else:
            plain = column.to_pylist() if values.dtype.kind == "O" else values.tolist()
            cells.append(list(map(cell_text, plain)))
    return Table(head.path, head.columns, cells)


def _feature_columns(table: Table, item: Texts, ignore: Texts) -> list[str]:
    """Returns the columns of features.

    Raises:
        DataError: none, or one that is named as a label or an annotator.
        UsageError: a column to ignore that is not there.
    """
    for name in ignore:
        if name not in table.columns or name in item:
            raise UsageError(f"--ignore_columns: {table.path}: no column of features {name!r}")
    numbered = map("column {}".format, range(1, len(table.columns) + 1))
    names = without(table.columns, (*item, *ignore))
    if nameless := among(names, {*numbered, *starting_with(names, INDEX)}):
        warn(f"{table.path}: {nameless[0]} has no name and is not read.", stacklevel=3)
        names = without(names, nameless)
    roles = roles_of(names)
    kinds = {
        "an annotator": roles["worker"],
        "a label": roles["label"],
        "true labels": filter(is_gold, names),
    }
    for kind, named in kinds.items():
        for name in named:
            problem = f"column {name!r} is named as {kind}"
            advice = f"Leave it out with --ignore_columns={shlex.quote(name)}, or rename it"
            raise error("leak", table.path, problem=problem, advice=advice)
    if not names:
        raise broken(table.path, f"{item[0]!r} is the only column")
    return names


def _numbers(table: Table, name: str) -> Floats:
    """Returns a column as numbers.

    Raises:
        DataError: a cell that is not a finite number, with its line.
    """
    cells: Any = table[name]
    numeric = isinstance(cells, np.ndarray)
    values = np.asarray(cells if numeric else [*map(_number, cells)], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        advice = f"Correct it, or leave the column out with --ignore_columns={shlex.quote(name)}"
        details = {"column": name, "value": cell_text(cells[row]), "advice": advice}
        raise error("bad_feature", table.path, table.place(row), **details)
    return values


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (ValueError, TypeError):
        return TRUTH_VALUES.get(str(cell).strip().lower(), np.nan)


def _read_array(path: Path) -> FeatureTable:
    """Reads an NPY file with a row per item."""
    array = read_npy(path)
    if array.dtype.kind not in "fiub" or array.ndim < 2 or not array.size:
        problem = f"expected numbers with a row per item, received {array.dtype} of {array.shape}"
        raise broken(path, problem)
    if not np.isfinite(array).all():
        row, *column = np.argwhere(~np.isfinite(array))[0].tolist()
        position = column[0] if len(column) == 1 else tuple(column)
        details = {"column": position, "value": str(array[(row, *column)]), "advice": "Correct it"}
        raise error("bad_feature", path, f"row {row}", **details)
    items = as_name_array(list(map(str, range(len(array)))))
    return FeatureTable(items, _held(array), list(map(str, range(array.shape[-1]))))
