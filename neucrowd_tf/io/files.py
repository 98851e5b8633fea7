"""Files that appear whole or not at all, and tables whose errors name the file, the row and the
column.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(
            0o666 & ~mask
        )  # mkstemp makes private files; results are as readable as any other
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes a UTF-8 text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON atomically; NumPy scalars and arrays become numbers and lists, NaN becomes
    null."""
    write_text(
        path, json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


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
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: expected JSON in UTF-8, received {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: expected JSON in UTF-8, received {not_text(path)}") from None
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


def has_nul(path: str | Path) -> bool:
    """Whether a file holds a NUL byte, which readers of CSVs take for all sorts of things."""
    with Path(path).open("rb") as stream:
        return any(b"\0" in block for block in iter(lambda: stream.read(1 << 24), b""))


def not_text(path: str | Path) -> str | None:
    """Returns what a file holds that text in UTF-8 does not, and in which line (from 1), or
    None."""
    content = Path(path).read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16 (save it as UTF-8)"
    if content.startswith(b"PK\x03\x04"):
        return "a zip archive, such as a spreadsheet's own format (save it as CSV)"
    if content.startswith(b"PAR1"):
        return "a Parquet file (save it as CSV)"
    nul = content.find(b"\0")
    if nul >= 0:
        return f"a NUL byte in line {content.count(LINE_FEED, 0, nul) + 1}"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return (
            f"other bytes in line {content.count(LINE_FEED, 0, error.start) + 1} ({error.reason})"
        )
    return None


def check_commas(path: str | Path, columns: Sequence[str]) -> None:
    """Raises DataError when a header looks like columns that something else than commas
    separates."""
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if len(columns) == 1 and sign in str(columns[0]).strip():
            raise DataError(f"{path}: expected columns separated by commas, received {name}")


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """Reads a CSV in UTF-8; whatever is wrong with the file as a file is one DataError that names
    it.
    """
    try:
        return pd.read_csv(path, encoding="utf-8", **options)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: expected a CSV file, received a folder") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: expected a header and rows, received an empty file") from None
    except pd.errors.ParserError as error:
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            check_commas(
                path, stream.readline().split(",")
            )  # numbers like 1,5 make rows of different lengths
        what = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise DataError(
            f"{path}: expected a CSV, received one that cannot be read: {what}"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: expected text in UTF-8, received {not_text(path) or error.reason}"
        ) from None
    except PermissionError:
        raise DataError(
            f"{path}: expected a file that can be read, received no permission"
        ) from None


def read_header(path: str | Path) -> list[str]:
    """Returns a CSV's column names without surrounding spaces.

    Raises:
        DataError: a name that is there twice, which pandas would rename.
    """
    header = (
        read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].str.strip()
    )
    twice = header[header.duplicated() & (header != "")].tolist()
    if twice:
        raise DataError(f"{path}: expected each column once, received {twice[0]!r} again")
    return [str(name) for name in header]


def require_columns(path: str | Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises DataError when a column is missing, with the closest name that is there."""
    import difflib

    check_commas(path, found)
    for name in wanted:
        if name not in found:
            close = difflib.get_close_matches(name, [str(column) for column in found], n=1)
            hint = f" ({close[0]!r} comes close: rename it if it is that)" if close else ""
            shown = ", ".join(repr(str(column)) for column in list(found)[:8]) + (
                ", ..." if len(found) > 8 else ""
            )
            raise DataError(f"{path}: expected a column {name!r}, received columns {shown}{hint}")
