"""Readers of a user's features: CSV, Parquet or NPY."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.column_names import is_truth, may_leak
from neucrowd_tf.io.files import read_bytes, read_npy
from neucrowd_tf.io.ids import as_name_array
from neucrowd_tf.io.names import plain, visible
from neucrowd_tf.io.tables import ALIASES, MANY_COLUMNS, PLAIN, CsvFile, TableFormat, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Under this standardising takes a column for constant (`training.standardise`).
SMALLEST_SCALE = 1e-7
# A column whose deviation is less than so many steps of float32 at its size loses its variation.
STEPS = 1000.0
MANY_ROWS = 10
_ID = re.compile(r"(?!p_)(.*[_\s])?(id|index|idx|no|nr|row)|unnamed: \d+", re.IGNORECASE)
_CAMEL_ID = re.compile(r".*[a-z](Id|ID|Index)")
# Numbers that programs and instruments write for none: nines, what the types hold, NetCDF's.
_NINES = (*(10.0**digits - 1 for digits in range(2, 8)), 999.25, 9999.25, 99.99, 999.9, 999.99)
_LARGEST = (1e20, 1e30, 9.96921e36, float(np.finfo(np.float32).max), 2.0**31, 2.0**31 - 1, 2.0**63)
FILLINGS = np.array([sign * one for sign in (1, -1) for one in _NINES + _LARGEST], np.float32)
# Names that no feature has: labels dressed up, and counts of votes.
_LABELS = re.compile(
    r"labels|classes|targets|label[-_\s]?(encoded|code|num|idx|name)|encoded[-_\s]?label"
    r"|votes[-_].+|gt"
)


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
    """Returns the tasks, rows and names of `read_feature_table`."""
    table = read_feature_table(path, layout)
    return table.tasks, table.rows, table.names


def read_feature_table(
    path: Path, layout: TableFormat = PLAIN, centre: Mapping[str, float] | None = None
) -> FeatureTable:
    """Reads `task` and numeric columns from a CSV or a Parquet file, or an array from an NPY file,
    whose tasks are numbered from 0.

    Args:
        path: the file.
        layout: how a CSV is written, what its column of tasks is called, what is left out.
        centre: what to subtract, by column; None subtracts the mean of columns that float32 could
            not tell apart otherwise (times in seconds, say), with a warning.

    Raises:
        DataError: a missing, misspelt or non-numeric column, one that holds labels or ids, an empty
            cell, NaN, infinity, or a task that is there twice.
        UsageError: a Parquet file, and no pyarrow to read it with.
    """
    if path.suffix == ".npy":
        return FeatureTable(*_npy_features(path))
    if path.suffix in (".parquet", ".pq"):
        return _table(_read_parquet(path, layout), path, layout, None, centre)
    csv = CsvFile.open(path, layout)
    # Numbers are parsed as numbers at full speed; ids stay text.
    task = layout.roles(csv.header).get("task")
    header = csv.frame(nrows=0).columns if len(csv.header) < MANY_COLUMNS else ()
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
    rows, found = _rows(frame, names, path, line, centre)
    if found and centre is None:
        name = next(iter(found))
        warnings.warn(
            f"{path}: {len(found)} columns vary less than single precision shows at their size and"
            f" are centred first (the first: {name!r}, at {found[name]:.9g})",
            stacklevel=3,
        )
    if len(ids) >= MANY_ROWS:
        _tell_ids(rows, names, path)
        _tell_fillings(rows, names, path)
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
    _check_features(names, path, layout)
    _check_twins(names, path)
    return names


def _rows(
    frame: pd.DataFrame,
    names: list[str],
    path: Path,
    line: Callable[[int], str],
    centre: Mapping[str, float] | None,
) -> tuple[NDArray[np.float32], dict[str, float]]:
    """Returns the columns as numbers `[N, d]`, and what was subtracted, by column."""
    rows = np.empty((len(frame), len(names)), dtype=np.float32)
    found: dict[str, float] = {}
    whole = None
    if len(names) > MANY_COLUMNS:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            whole = frame[names].to_numpy(dtype=object).astype(np.float64)
    for place, name in enumerate(names):
        values = _numbers(frame[name], path, line) if whole is None else whole[:, place]
        if centre is None:
            _check_size(values, name, path)
        if centre is None and _loses_variation(values):
            found[name] = float(np.round(values.mean()))
        elif centre is not None and name in centre:
            found[name] = float(centre[name])
        if name in found:
            values = values - np.asarray(found[name], dtype=values.dtype)
        rows[:, place] = values
    if centre is None:
        _tell_small(rows, names, path)
    if whole is not None and not np.isfinite(rows).all():
        name = names[int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])]
        _numbers(frame[name], path, line)
    return rows, found


def _check_features(names: list[str], path: Path, layout: TableFormat) -> None:
    """Raises DataError for columns whose names say that they are no features: labels, annotators, a
    second id.
    """
    roles = {alias.lower(): role for role in ALIASES for alias in ALIASES[role]}
    for name in names:
        bare = name.strip()
        role = roles.get(bare.lower()) or ("label" if _LABELS.fullmatch(bare.lower()) else None)
        if role is None and (_ID.fullmatch(bare) or _CAMEL_ID.fullmatch(bare)):
            role = "task"
        role = role or ("truth" if is_truth(name) else None)
        if role is not None:
            raise DataError(
                f"{path}: column {name!r}: expected a feature, received a column named as a"
                f" {role}'s; --ignore_columns={name} leaves it out, another name takes it for a"
                " feature"
            )
    if leaks := [name for name in names if may_leak(name)]:
        warnings.warn(
            f"{path}: {len(leaks)} columns are named as what may tell the label (the first:"
            f" {leaks[0]!r}) and are taken for features; --ignore_columns={leaks[0]} leaves it out",
            stacklevel=4,
        )


def _check_twins(names: list[str], path: Path) -> None:
    """Raises DataError for two columns whose names look the same, and warns of two that differ in
    capitals alone.
    """
    for look, tells in ((visible, False), (plain, True)):
        found: dict[str, str] = {}
        for name in names:
            other = found.setdefault(look(name), name)
            if other == name:
                continue
            said = f"{path}: column {name!r}: expected each column once, received"
            if not tells:
                raise DataError(f"{said} {name!a} beside {other!a}, which looks the same")
            warnings.warn(f"{said} {name!r} beside {other!r}; they are taken for two", stacklevel=4)
            break


def _tell_fillings(rows: NDArray[np.float32], names: list[str], path: Path) -> None:
    """Warns of columns whose least or largest number is one that often stands for none (-999),
    occurs more than once and is far from the others; and of columns that all hold one number.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    if (low == high).all():
        warnings.warn(
            f"{path}: expected features that differ between instances, received the same numbers in"
            f" all {len(rows)} rows",
            stacklevel=4,
        )
    for ends in (low, high):
        for place in np.flatnonzero(np.isin(ends, FILLINGS)):
            column = rows[:, place]
            here = column == ends[place]
            rest = np.abs(column[~here])
            if here.sum() > 1 and len(rest) and 3.0 * float(rest.max()) < abs(float(ends[place])):
                warnings.warn(
                    f"{path}: column {names[place]!r}: {here.sum()} cells are {ends[place]:g},"
                    " which often stands for none, and are taken for numbers",
                    stacklevel=4,
                )


def _tell_ids(
    rows: NDArray[np.float32],
    names: list[str],
    path: Path,
    hint: str = "; --ignore_columns={} leaves it out",
) -> None:
    """Warns of columns that count the rows, as ids do, in steps of one or of another number."""
    if len(rows) < MANY_ROWS:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest
        spans = np.ptp(rows, axis=0)
        whole = np.flatnonzero((spans > 0) & (spans % (len(rows) - 1) == 0))
    steps = np.diff(np.sort(rows[:, whole], axis=0), axis=0)
    counting = (steps == steps[:1]).all(axis=0)
    for place in whole[counting]:
        warnings.warn(
            f"{path}: column {names[place]!r} numbers the rows, as an id does, and is taken for"
            f" a feature{hint.format(names[place])}",
            stacklevel=4,
        )


def _loses_variation(values: NDArray[Any]) -> bool:
    """Whether float32 blurs a column: its steps there are no small part of its deviation."""
    if len(values) < 2:
        return False
    size = float(np.abs(values.astype(np.float64)).max())
    with np.errstate(over="ignore"):
        step = float(np.spacing(np.float32(size)))
        moved = values - values[0]  # whole numbers above 2^53 too keep their differences
    deviation = float(np.std(moved.astype(np.float64)))
    if not np.isfinite(step) or not deviation:
        return False
    return deviation < STEPS * step


def _check_size(values: NDArray[Any], name: str, path: Path) -> None:
    """Raises DataError for a column whose numbers are all below what float32 holds in full."""
    size = max(abs(float(values.min())), abs(float(values.max())))
    if 0 < size < float(np.finfo(np.float32).tiny):
        raise DataError(
            f"{path}: column {name!r}: expected numbers that single precision tells apart, received"
            f" none above {size:.3g}; multiply them"
        )


def _tell_small(rows: NDArray[np.float32], names: list[str], path: Path) -> None:
    """Tells of columns in units so small that standardising takes their variation for rounding."""
    if len(rows) < 2:
        return
    least, most = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    small = np.flatnonzero((most > least) & (most - least <= 10 * SMALLEST_SCALE))
    lost = [k for k in small if np.std(rows[:, k].astype(np.float64)) <= SMALLEST_SCALE]
    if lost:
        warnings.warn(
            f"{path}: {len(lost)} columns vary by no more than {SMALLEST_SCALE:g} (the first:"
            f" {names[lost[0]]!r}), which methods that standardise take for rounding; multiply"
            " them",
            stacklevel=5,
        )


def _read_parquet(path: Path, layout: TableFormat) -> pd.DataFrame:
    """Reads a Parquet file; the task ids become text."""
    content = read_bytes(path, "a Parquet file")
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise UsageError(
            f"{path}: expected pyarrow to read Parquet, received none: pip install"
            " 'neucrowd-tf[parquet]'"
        ) from None
    except Exception as error:  # a damaged file ends in errors of many kinds
        raise DataError(
            f"{path}: expected a Parquet file, received {' '.join(str(error).split())[:200]}"
        ) from None
    frame.columns = [str(column).strip() for column in frame.columns]
    twice = [name for name, times in Counter(frame.columns).items() if times > 1]
    if "" in frame.columns:
        raise DataError(
            f"{path}: expected a name for each column, received an empty one for column"
            f" {list(frame.columns).index('') + 1}"
        )
    if twice:
        raise DataError(f"{path}: expected each column once, received {twice[0]!r} again")
    if not len(frame):
        raise DataError(f"{path}: expected at least one row, received none")
    column = layout.roles(list(frame.columns)).get("task")
    if column is None and "task" in layout.roles([str(frame.index.name)]):
        frame = frame.reset_index()
        column = str(frame.columns[0])
    if column is not None:
        values = frame[column].astype(object)
        if any(isinstance(value, bytes) for value in values):  # text that nobody marked as such
            try:
                values = values.map(lambda v: v.decode() if isinstance(v, bytes) else v)
            except UnicodeDecodeError:
                raise DataError(
                    f"{path}: column {column!r}: expected task ids of text or numbers, received"
                    " bytes that are no UTF-8"
                ) from None
        frame[column] = values.map(str).where(values.notna(), "")
    return frame


def _npy_features(path: Path) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
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
        _check_size(array[:, place], name, path)
    wide = array.dtype.itemsize > single.dtype.itemsize
    lost = [place for place in range(len(names)) if wide and _loses_variation(array[:, place])]
    if lost:
        warnings.warn(
            f"{path}: {len(lost)} columns vary less than single precision shows at their size (the"
            f" first: {lost[0]}); subtract their means first",
            stacklevel=4,
        )
    _tell_ids(single, names, path, "")
    if len(single) >= MANY_ROWS:
        _tell_fillings(single, names, path)


def _numbers(column: pd.Series, path: Path, line: Callable[[int], str]) -> NDArray[Any]:
    """Returns a column's numbers in the precision they were read with; float32 holds them all.
    True and False, as pandas writes a class's columns, are 1 and 0.
    """
    if column.dtype.kind == "b":
        column = column.astype(np.int64)
    elif column.dtype.kind == "u":  # differences may be negative
        column = column.astype(np.int64 if column.max() < 1 << 63 else np.float64)
    values = (
        column.to_numpy()
        if column.dtype.kind in "iuf"
        else pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    )
    if isinstance(column.iloc[0], bytes):  # which would be read as text
        values = np.full(len(values), np.nan)
    with np.errstate(over="ignore"):  # a number too large for float32 is infinite, and said below
        single = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single))
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
            f"{path}: {line(int(bad[0]))}, column {column.name!r}: expected a finite number,"
            f" received {shown}"
        )
    return values
