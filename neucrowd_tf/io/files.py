"""Files and folders that appear whole or not at all: text, JSON and arrays."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError

LINE_FEED = b"\n"


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which takes its place when the block ends without an
    error.

    The data is flushed to the disk before the rename, so that a crash leaves the old file or the
    new one. An OSError (a full disk, a folder that cannot be written) goes through to the caller
    and leaves no temporary file behind.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{target.name}.", suffix=".part" + target.suffix, dir=target.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(
            0o666 & ~mask
        )  # mkstemp makes private files; results are as readable as any other
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yields a new folder, which takes the place of `path` when the block ends without an error."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    made, old = temporary / "new", temporary / "old"
    try:
        made.mkdir()
        yield made
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(made, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes a UTF-8 text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any, *, indent: int | None = 2) -> None:
    """Writes JSON atomically; NumPy scalars and arrays become numbers and lists, NaN becomes
    null."""
    write_text(path, to_json(value, indent=indent) + "\n")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Returns a value as JSON text; see `jsonable`."""
    return json.dumps(jsonable(value), indent=indent, ensure_ascii=False, allow_nan=False)


def jsonable(value: Any) -> Any:
    """Returns `value` in JSON's types."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def read_json(path: str | Path) -> Any:
    """Reads JSON; a file that is not JSON is a DataError that names it."""
    try:
        content = Path(path).read_bytes()
        return json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: expected JSON in UTF-8, received {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: expected JSON in UTF-8, received {not_text(content)}") from None
    except RecursionError:
        raise DataError(f"{path}: expected JSON, received one that is nested too deeply") from None


def save_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays as an uncompressed .npz atomically; object arrays are refused, so that reading
    never unpickles.
    """
    for key, array in arrays.items():
        if np.asarray(array).dtype == object:
            raise TypeError(f"array {key!r} holds Python objects, which would need pickle")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Reads what `save_arrays` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def not_text(content: bytes) -> str | None:
    """Returns what a file's bytes hold that text in UTF-8 does not, and in which line (from 1), or
    None."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16 (save it as UTF-8)"
    if content.startswith(b"PK\x03\x04"):
        return "a zip archive, such as a spreadsheet's own format (save it as CSV)"
    if content.startswith(b"PAR1"):
        return "a Parquet file (save it as CSV)"
    nul = content.find(b"\0")
    if nul >= 0:
        return f"a NUL byte in line {1 + content[:nul].count(LINE_FEED)}"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"other bytes in line {1 + content[: error.start].count(LINE_FEED)} ({error.reason})"
    return None
