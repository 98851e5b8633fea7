"""Readers of the array files that several datasets are published as.

Every problem is one DataError that names the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_npy(path: Path, *, rank: int | None = None) -> NDArray[Any]:
    """Reads a NumPy file without unpickling.

    Args:
        path: the file.
        rank: how many dimensions it must have.

    Raises:
        DataError: no such file, no array, the wrong rank, or numbers that are not finite.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path}: expected a NumPy array, received {error}") from None
    if array.dtype.kind not in "iuf" or (rank is not None and array.ndim != rank):
        raise DataError(
            f"{path}: expected numbers in {rank or 'some'} dimensions, received {array.dtype} of"
            f" shape {array.shape}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise DataError(
            f"{path}: position {where}: expected a finite number, received {array[where]}"
        )
    return array


def read_numbers(path: Path) -> NDArray[np.float64]:
    """Reads a text file of numbers separated by spaces, `[rows, columns]`.

    One column gives `[rows, 1]`.
    """
    try:
        return np.loadtxt(path, ndmin=2)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected numbers separated by spaces, received {error}") from None


def as_codes(
    values: NDArray[Any], num_classes: int, path: Path, *, missing: bool = False
) -> NDArray[np.int64]:
    """Returns class codes as int64.

    They must be whole numbers from 0 (-1 with `missing`) to `num_classes - 1`.
    """
    codes = (
        values.astype(np.int64)
        if values.size and np.isfinite(values).all()
        else np.full(values.shape, -2)
    )
    low = -1 if missing else 0
    bad = np.argwhere((codes != values) | (codes < low) | (codes >= num_classes))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise DataError(
            f"{path}: position {where}: expected a class code from {low} to {num_classes - 1},"
            f" received {values[where]}"
        )
    return codes


def same_length(path: Path, received: int, expected: int, content: str) -> None:
    """Raises DataError when a file has another number of rows than the file it belongs to."""
    if received != expected:
        raise DataError(f"{path}: expected {expected} {content}, received {received}")
