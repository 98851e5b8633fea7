"""Arrays in files of our own, never unpickled."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import atomic_path

DIGEST = "sha256"
# NumPy parses an array's header as Python source, and before 3.12 threads that do so at once can
# fail by "AST constructor recursion depth mismatch": a sound file would be called damaged.
ARRAY_HEADERS = threading.Lock()


def save_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays as an uncompressed .npz atomically, with a digest of them all.

    Object arrays are rejected, so that reading never unpickles.
    """
    for key, array in arrays.items():
        if np.asarray(array).dtype == object:
            raise TypeError(f"array {key!r} holds Python objects, which would need pickle")
    digest = np.frombuffer(_digest_of(arrays), dtype=np.uint8)
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays, **{DIGEST: digest})  # type: ignore[arg-type]


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Reads what `save_arrays` wrote.

    Raises:
        DataError: a file that is damaged, or that something else wrote.
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: no file of arrays. Check the path.")
    try:
        with ARRAY_HEADERS, np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        intact = arrays.pop(DIGEST).tobytes() == _digest_of(arrays)
    except Exception:  # a broken archive ends in errors of many kinds, and none says more
        intact = False
    if not intact:
        raise DataError(f"{path}: the file is damaged. Remove it, and write it again.")
    return arrays


def array_digest(array: np.ndarray) -> str:
    """Returns the SHA-256 of an array's type, shape and values, which may be texts."""
    return _digest_of({"": array}).hex()


def _digest_of(arrays: dict[str, np.ndarray]) -> bytes:
    total = hashlib.sha256()
    for key in sorted(arrays):
        array = np.asarray(arrays[key])
        total.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        if array.dtype.kind in "OT":  # the memory holds addresses
            for item in array.ravel().tolist():
                text = str(item).encode("utf-8", "surrogatepass")
                total.update(f"{type(item).__name__} {len(text)} ".encode() + text)
        else:
            total.update(np.ascontiguousarray(array).data)
    return total.digest()
