"""Files and folders that appear whole or not at all: text, JSON and arrays."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DENIED, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE_FEED = b"\n"
GZIP = b"\x1f\x8b\x08"
FULL = (errno.ENOSPC, errno.EDQUOT)
DIGEST = "sha256"
MOST_BYTES = 1 << 32  # that a packed table may unpack to
# NumPy parses an array's header as Python source, and before 3.12 threads that do so at once can
# fail by "AST constructor recursion depth mismatch": a sound file would be called damaged.
ARRAY_HEADERS = threading.Lock()


def _check_target(path: Path) -> None:
    """Raises OSError for what no file may take the place of: a folder, a pipe, a device (/dev/null,
    where the user may write there); and for a name that is too long.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            said = "expected a file to write, received a name that is too long"
            raise OSError(error.errno, said, str(path)) from None
        return  # which writing will say more of
    if stat.S_ISDIR(mode):
        said = "expected a file to write, received a folder"
        raise IsADirectoryError(errno.EISDIR, said, str(path))
    if not stat.S_ISREG(mode):
        said = "expected a file to write, received a pipe or a device"
        raise OSError(errno.EINVAL, said, str(path))


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which takes its place when the block ends without an
    error.

    The data is flushed to the disk before the rename, so that a crash leaves the old file or the
    new one. An OSError (a full disk, a folder that cannot be written) goes through to the caller
    and leaves no temporary file behind.
    """
    target = Path(path)
    _check_target(target)
    try:
        with _replacing(target) as temporary:
            yield temporary
    except OSError as error:
        if error.errno in DENIED:  # the user knows nothing of a temporary name
            raise OSError(error.errno, error.strerror, str(target)) from None
        if error.errno not in FULL:
            raise
        what = os.strerror(error.errno)
        raise OSError(error.errno, f"{what}; free some and start again", str(target)) from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        said = "expected a folder to write to, received a file"
        raise NotADirectoryError(errno.ENOTDIR, said, str(folder)) from None


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    _make_folder(target.parent)
    parts = f".{target.name}.", ".part" + target.suffix
    try:
        handle, name = tempfile.mkstemp(prefix=parts[0], suffix=parts[1], dir=target.parent)
    except OSError as error:  # which names the temporary file
        raise OSError(error.errno, os.strerror(error.errno or 0), str(target)) from None
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
    _make_folder(target.parent)
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


def jsonable(value: Any, spelt: Callable[[Any], Any] = lambda value: value) -> Any:
    """Returns `value` in JSON's types; other objects as `spelt` has them."""
    if isinstance(value, dict):
        return {str(key): jsonable(item, spelt) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [jsonable(item, spelt) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist(), spelt)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else spelt(value)


def check_regular(path: Path, what: str = "a file", *, folders: bool = True) -> None:
    """Raises DataError for what can never be read to its end, or is not there: a pipe or a device,
    a folder (unless there may be `folders`), a name that is too long.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: expected {what}, received no path of one ({reason})") from None
    if stat.S_ISREG(mode) or (folders and stat.S_ISDIR(mode)):
        return
    other = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise DataError(f"{path}: expected {what}, received {other}")


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


def read_json(path: str | Path, *, each_key_once: bool = False) -> Any:
    """Reads JSON; a file that is not JSON is a DataError that names it.

    Args:
        path: the file.
        each_key_once: whether an object with a key that is there twice is refused, where JSON takes
            the last.
    """
    content = read_bytes(path, "JSON")
    try:
        return parse_json(content.decode("utf-8-sig"), str(path), each_key_once=each_key_once)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: expected JSON in UTF-8, received {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: expected JSON in UTF-8, received {not_text(content)}") from None


def parse_json(text: str, name: str, *, each_key_once: bool = False) -> Any:
    """Parses JSON.

    Raises:
        DataError: nested too deeply, a number of thousands of digits, or a key that is there twice.
        JSONDecodeError: no JSON.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(
                key for key, times in Counter(key for key, _ in pairs).items() if times > 1
            )
            raise DataError(f"{name}: expected each key once, received {twice!r} again")
        return found

    try:
        return json.loads(text, object_pairs_hook=once if each_key_once else None)
    except (json.JSONDecodeError, DataError):
        raise
    except RecursionError:
        raise DataError(f"{name}: expected JSON, received one nested too deeply") from None
    except ValueError:  # more digits than Python turns into a number
        raise DataError(
            f"{name}: expected JSON, received a number of thousands of digits"
        ) from None


def read_npy(path: str | Path) -> NDArray[Any]:
    """Reads one array from an NPY file, without pickle.

    Raises:
        DataError: another file, or one that claims to hold more than it does.
    """
    if not (content := read_bytes(path, "an NPY file")).startswith(b"\x93NUMPY"):
        other = "an archive of several arrays" if content.startswith(b"PK") else "another file"
        raise DataError(f"{path}: expected a NumPy array in an NPY file, received {other}")
    try:
        with ARRAY_HEADERS, np.errstate(all="ignore"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if (rest := len(content) - getattr(array, "offset", 0) - array.nbytes) and array.size:
                raise ValueError(f"one with {rest:,} more bytes behind it")
            return np.array(array)
    except Exception as error:  # a broken header ends in errors of many kinds
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: expected a NumPy array, received {reason}") from None


def save_arrays(
    path: str | Path, arrays: dict[str, np.ndarray], before: Path | None = None
) -> None:
    """Writes arrays as an uncompressed .npz atomically, with a digest of them all; object arrays
    are refused, so that reading never unpickles.

    Args:
        path: the file.
        arrays: what it holds.
        before: where the file that is there now goes.
    """
    for key, array in arrays.items():
        if np.asarray(array).dtype == object:
            raise TypeError(f"array {key!r} holds Python objects, which would need pickle")
    digest = np.frombuffer(_digest_of(arrays), dtype=np.uint8)
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays, **{DIGEST: digest})  # type: ignore[arg-type]
        if before is not None and Path(path).exists():
            before.unlink(missing_ok=True)
            Path(path).rename(before)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Reads what `save_arrays` wrote.

    Raises:
        DataError: a file that is damaged, or that something else wrote.
    """
    try:
        with ARRAY_HEADERS, np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        whole = arrays.pop(DIGEST).tobytes() == _digest_of(arrays)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception:  # a broken archive ends in errors of many kinds, and none says more
        whole = False
    if not whole:
        raise DataError(f"{path}: expected arrays as they were written, received a damaged file")
    return arrays


def _digest_of(arrays: dict[str, np.ndarray]) -> bytes:
    found = hashlib.sha256()
    for key in sorted(arrays):
        array = np.asarray(arrays[key])
        found.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def array_digest(array: np.ndarray) -> str:
    """Returns the SHA-256 of an array's type, shape and values."""
    return _digest_of({"": array}).hex()


def digest(path: str | Path) -> str:
    """Returns the SHA-256 of a file, or of all files in a folder with their names."""
    path = Path(path)
    found = hashlib.sha256()
    files = sorted(item for item in path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            found.update(b"" if file is path else os.fsencode(file.relative_to(path)) + b"\0")
            with file.open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()


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
