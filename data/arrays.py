"""Readers of the array files that several datasets are published as.

Every problem is one DataError that names the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations.tables import as_single, check_features
from neucrowd_tf.declare.types import Array, Floats, Floats32, Indices
from neucrowd_tf.errors import DataError


def read_numbers(path: Path) -> Floats:
    """Reads a text file of numbers separated by spaces, `[rows, columns]`.

    One column gives `[rows, 1]`.
    """
    try:
        return np.loadtxt(path, ndmin=2)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected numbers separated by spaces, received {error}") from None


def checked_features(values: object, path: Path) -> Floats32:
    """Returns a file's features `[N, ...]` as float32, in which the published values were measured.

    Raises:
        DataError: as `check_features`; or a number that float32 does not reach.
    """
    return as_single(check_features(values, str(path)), str(path))


def check_each(path: Path, values: ArrayLike, valid: ArrayLike, expected: str) -> None:
    """Raises DataError with the first of a file's values that is not valid.

    Args:
        path: the file.
        values: what it has.
        valid: of the same shape, whether each value may be there.
        expected: what is expected instead.
    """
    invalid = np.argwhere(~np.asarray(valid))
    if len(invalid):
        index = tuple(invalid[0].tolist())
        position = ", ".join(map(str, index))
        received = np.asarray(values)[index]
        raise DataError(f"{path}: row {position}: expected {expected}, received {received}")


def row_names(title: str, size: int) -> Array:
    """Returns names of rows that have none, such as "test-0"."""
    return np.array(list(map(f"{title}-{{}}".format, range(size))), dtype=object)


def as_codes(values: Array, num_classes: int, path: Path, *, least: int = 0) -> Indices:
    """Returns class codes as int64: whole numbers from `least` to `num_classes - 1`."""
    valid = np.isin(values, np.arange(least, num_classes))
    check_each(path, values, valid, f"a class code from {least} to {num_classes - 1}")
    return values.astype(np.int64)
