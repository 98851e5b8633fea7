"""A feature's numbers, and what of them is told: what float32 loses, what stands for none."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.shell import ignore

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Under this standardising takes a column for constant (`training.standardise`).
SMALLEST_SCALE = 1e-7
# A column whose deviation is less than so many steps of float32 at its size loses its variation.
STEPS = 1000.0
MANY_ROWS = 10
# Numbers that programs and instruments write for none: nines, what the types hold, NetCDF's.
_NINES = (*(10.0**digits - 1 for digits in range(2, 8)), 999.25, 9999.25, 99.99, 999.9, 999.99)
_LARGEST = (1e20, 1e30, 9.96921e36, float(np.finfo(np.float32).max), 2.0**31, 2.0**31 - 1, 2.0**63)
FILLINGS = np.array([sign * one for sign in (1, -1) for one in _NINES + _LARGEST], np.float32)

_THOUSANDS = re.compile(r"[-+]?(0|[1-9]\d{0,2}(\.\d{3})?)")


def finite_numbers(column: pd.Series, path: Path, line: Callable[[int], str]) -> NDArray[Any]:
    """Returns a column's numbers in the precision they were read with; float32 holds them all.
    True and False, as pandas writes a class's columns, are 1 and 0.
    """
    if column.dtype.kind in "biu" and column.isna().any():  # of a nullable type; refused below
        column = column.astype(object)
    elif column.dtype.kind == "b":
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
        shown = repr(cell) if isinstance(cell, str) else str(cell)
        single_cell = pd.api.types.is_scalar(cell)  # not a list or an array, as Parquet has them
        empty = single_cell and (bool(pd.isna(cell)) or cell == "")
        ways = (
            f"; {'fill it in' if empty else 'write it as numbers'}, or"
            f" {ignore(column.name)} leaves the column out"
        )
        raise DataError(
            f"{path}: {line(int(bad[0]))}, column {column.name!r}: expected a finite number,"
            f" received {shown if cell is not None and shown != repr('') else 'an empty cell'}"
            f"{ways if empty or isinstance(cell, str) else ''}"
        )
    return values


def check_size(values: NDArray[Any], name: str, path: Path) -> None:
    """Raises DataError for a column whose numbers are all below what float32 holds in full."""
    size = max(abs(float(values.min())), abs(float(values.max())))
    if 0 < size < float(np.finfo(np.float32).tiny):
        raise DataError(
            f"{path}: column {name!r}: expected numbers that single precision tells apart, received"
            f" none above {size:.3g}; multiply them"
        )


def loses_variation(values: NDArray[Any]) -> bool:
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


def tell_small(rows: NDArray[np.float32], names: list[str], path: Path) -> None:
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


def tell_fillings(rows: NDArray[np.float32], names: list[str], path: Path) -> None:
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


def tell_thousands(frame: pd.DataFrame, texts: Callable[[], pd.DataFrame], path: Path) -> None:
    """Warns of columns whose points most likely stand between thousands (1.250 beside 980): there
    are whole numbers of at most three digits, and three digits behind each point, some of which end
    in a 0 that no program writes of decimals.

    Args:
        frame: the table, with columns of floats where there are points.
        texts: reads it as text, where a column may be one.
        path: the file.
    """
    spelt = None
    for name in [name for name in frame.columns if frame[name].dtype.kind == "f"]:
        values = frame[name].abs()
        whole = values % 1 == 0
        near = (values * 1000 % 1).round(6).isin((0, 1)).all()
        if not (near and 100 <= values[whole].max() < 1000 and values[~whole].min() >= 1):
            continue
        spelt = texts() if spelt is None else spelt
        cells = spelt[name].str.strip()
        point = cells.str.contains(".", regex=False)
        mixed = cells[point].str.endswith("0").any() and not point.all()
        if mixed and cells.str.fullmatch(_THOUSANDS).all():
            warnings.warn(
                f"{path}: column {name!r}: {point.sum()} cells have a point and three digits (the"
                f" first: {cells[point].iloc[0]}) beside whole numbers such as"
                f" {cells[~point].iloc[0]}, as thousands are written; they are read as decimals"
                " (write them without points if they are thousands)",
                stacklevel=4,
            )
