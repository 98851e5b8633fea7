"""A user's NPY file, never unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.declare.types import Array
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import ARRAY_HEADERS
from neucrowd_tf.io.files.reading import read_bytes


def read_npy(path: str | Path, most: int | None = None) -> Array:
    """Reads one array from an NPY file, without pickle.

    Args:
        path: the file.
        most: how many numbers there may be.

    Raises:
        DataError: another file, or one that claims to hold more than it does, or holds too much.
    """
    if not (content := read_bytes(path, "an NPY file")).startswith(b"\x93NUMPY"):
        other = "an archive of several arrays" if content[:2] == b"PK" else "another file"
        raise DataError(f"{path}: expected a NumPy array in an NPY file, received {other}")
    try:
        with ARRAY_HEADERS, np.errstate(all="ignore"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if not array.nbytes and max(array.shape, default=0):
                raise ValueError(f"one of shape {array.shape} without values")
            if most is not None and array.size > most:
                raise ValueError(f"{array.size:,} numbers, more than {most:,}")
            if (extra := len(content) - getattr(array, "offset", 0) - array.nbytes) and array.size:
                raise ValueError(f"one that {extra:,} further bytes follow")
            return np.array(array)
    except Exception as error:  # a broken header ends in errors of many kinds
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: expected a NumPy array, received {reason}") from None
