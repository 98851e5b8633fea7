"""Files as bytes, unpacked where they are gzip files, as text, and by their digest."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import itertools
import os
import stat
import zlib
from collections.abc import Collection
from pathlib import Path

from neucrowd_tf.errors import DataError

GZIP = b"\x1f\x8b\x08"
LINE_FEED = b"\n"
MOST_BYTES = 1 << 32  # that a packed table may unpack to


def ending(path: str | Path) -> str:
    """Returns what a file's name says it is, in small letters: `.csv` of `A.CSV` and `a.csv.gz`."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def check_regular(path: Path, what: str = "a file", *, folders: bool = True) -> None:
    """Raises DataError for what can never be read to its end, or is not there: a pipe or a device,
    a folder (unless there may be `folders`), a name that is too long.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: expected {what}, received no path of one ({reason})") from None
    folder, regular = stat.S_ISDIR(found.st_mode), stat.S_ISREG(found.st_mode)
    if (regular and (found.st_size or not _waits(path))) or (folders and folder):
        return
    other = "a file of the system's that never ends" if regular else "a pipe or a device"
    raise DataError(f"{path}: expected {what}, received {'a folder' if folder else other}")


def _waits(path: Path) -> bool:
    """Whether a file that is listed as empty waits for more when it is read, as /proc/kmsg does."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb", buffering=0) as stream:
            blocks = iter(lambda: stream.read(1 << 16), b"")
            return any(block is None for block in itertools.islice(blocks, 256))
    except OSError:  # who reads it says so
        return False


def check_tree(folder: Path) -> None:
    """Raises DataError as `check_regular` does for what is in a folder, or in one that a link in it
    leads to.
    """
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        for name in sorted(files):
            check_regular(Path(place) / name)


def read_bytes(path: str | Path, what: str = "a file") -> bytes:
    """Reads a regular file, unpacked where it is a gzip file.

    Raises:
        DataError: no such file, a folder, a pipe or a device, no permission, a name that is too
            long, or a `.gz` that is none.
    """
    path = Path(path)
    check_regular(path, what, folders=False)
    try:
        content = path.read_bytes()
    except PermissionError:
        raise DataError(
            f"{path}: expected a file that can be read, received no permission"
        ) from None
    except OSError as error:  # of the disk, or of a file that only looks like one
        raise DataError(f"{path}: expected {what}, received {error.strerror}") from None
    if content.startswith(GZIP):
        return _unpacked(path, content)
    if path.suffix == ".gz":
        raise DataError(
            f"{path}: expected a gzip file, as its name says, received another; without .gz in its"
            " name it is read as it is"
        )
    return content


def _unpacked(path: Path, content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            unpacked = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: expected a whole gzip file, received {error}") from None
    if len(unpacked) > MOST_BYTES:
        raise DataError(
            f"{path}: expected a gzip file of at most {MOST_BYTES >> 20:,} MB, received more"
        )
    return unpacked


def read_text(path: Path) -> str:
    """Reads a text in UTF-8.

    Raises:
        DataError: no such file, or other bytes.
    """
    return decode(read_bytes(path), str(path))


def decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}: line {line}: expected text in UTF-8, received other bytes"
        ) from None


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


def of_kinds(folder: Path, kinds: Collection[str]) -> list[Path]:
    """Returns what lies in a folder under a name of one of these endings and is not hidden, in the
    order of the names.
    """
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in kinds and not path.name.startswith(".")
    )


def digest(path: str | Path, kinds: Collection[str] | None = None) -> str:
    """Returns the SHA-256 of a file, or of all files in a folder with their names.

    Args:
        path: the file or the folder.
        kinds: endings of the files that count (see `of_kinds`); None for all.

    Raises:
        DataError: a file that never ends.
    """
    path = Path(path)
    found = hashlib.sha256()
    files = [path]
    if path.is_dir():
        files = sorted(path.rglob("*")) if kinds is None else of_kinds(path, kinds)
    for file in files:
        if file.is_file():
            check_regular(file)
            found.update(b"" if file is path else os.fsencode(file.relative_to(path)) + b"\0")
            with file.open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()
