"""Files as bytes and as text: unpacked if they are packed, and by their digest."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import hashlib
import io
import itertools
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TextIO

from neucrowd_tf.declare.picking import Entry
from neucrowd_tf.io.checks import error, unreadable

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MOST_BYTES = 1 << 32  # that a packed file may unpack to
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
LONGEST_SIGN = 264  # bytes in which a format has its sign
# What else begins with these bytes: what it is, and what to do. A tar has its sign later.
FOREIGN: dict[bytes, tuple[str, str]] = {
    b"PK\x05\x06": ("an empty archive", "Pack it again"),
    b"7z\xbc\xaf\x27\x1c": ("an archive of 7-Zip", "Unpack it"),
    b"Rar!": ("a RAR archive", "Unpack it"),
    b"\xd0\xcf\x11\xe0": ("a document of Microsoft Office", "Save it as CSV"),
    b"%PDF": ("a PDF", "Export the table as CSV"),
    b"PAR1": ("a Parquet file", "Name it with the ending .parquet"),
    b"ARROW1": ("an Arrow file", "Write it as Parquet or CSV"),
    b"\x93NUMPY": ("an array of NumPy", "Name it with the ending .npy"),
    b"\x89HDF": ("an HDF5 file", "Write the table as CSV"),
    b"SQLite format 3": ("a database of SQLite", "Export the table as CSV"),
    b"\x80\x04": ("a pickle, which is never opened", "Write the table as CSV"),
    b"\x80\x05": ("a pickle, which is never opened", "Write the table as CSV"),
    b"\x89PNG": ("an image", "Name a file of labels"),
    b"\xff\xd8\xff": ("an image", "Name a file of labels"),
}


def _unpack_zstandard(stream: IO[bytes], path: Path) -> IO[bytes]:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        problem = "it is packed with Zstandard, which needs pyarrow here"
        raise unreadable(path, problem, "Unpack it, or pip install pyarrow") from None
    return pa.CompressedInputStream(stream, "zstd")  # type: ignore[no-any-return]


# The bytes that packed files begin with, and what unpacks them.
UNPACK: dict[bytes, Callable[[Any, Path], Any]] = {
    GZIP: lambda stream, _: gzip.GzipFile(fileobj=stream),
    b"BZh": lambda stream, _: bz2.BZ2File(stream),
    b"\xfd7zXZ\x00": lambda stream, _: lzma.LZMAFile(stream),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": _unpack_zstandard,
}


def encoding_of(start: bytes) -> str:
    """Returns the encoding of a text that begins with these bytes."""
    if start.startswith(UTF16):
        return "utf-16"
    return "utf-8-sig"


def check_readable(path: Path, start: bytes) -> None:
    """Raises DataError for bytes that are another format's, with what to do."""
    kinds = _of_sign(start, FOREIGN)
    if start[257:262] == b"ustar":
        kinds = [("a tar archive", "Unpack it and name one of its files")]
    has_other_bytes = any(start[::2]) and any(start[1::2])
    if len(start) > 3 and not has_other_bytes and not start.startswith(UTF16):
        kinds = [("text in UTF-16 without a mark", "Save the file as UTF-8")]
    for kind, advice in kinds:
        raise unreadable(path, f"this is {kind}", advice)


def _of_sign(start: bytes, kinds: Mapping[bytes, Entry]) -> list[Entry]:
    """Returns what stands for the sign with which bytes begin."""
    return [kind for sign, kind in kinds.items() if start.startswith(sign)]


def ending(path: str | Path) -> str:
    """Returns the ending of a file's name in lower case: `.csv` for `A.CSV` and `a.csv.gz`."""
    name = Path(path).name.lower()
    packed = next((end for end in PACKED if Path(name.removesuffix(end)).suffix), "")
    return Path(name.removesuffix(packed)).suffix


def check_regular(path: Path, kind: str = "a file", *, folders: bool = True) -> None:
    """Raises DataError for a path that is not there or never ends: a pipe, a device.

    Args:
        path: the path.
        kind: what is expected there, for the message.
        folders: whether it may be a folder.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if str(path) == "-":
            problem = "standard input cannot be read: files are read more than once"
            raise unreadable(path, problem, "Write it to a file, and name that") from None
        raise unreadable(path, "no such file", "Check the path") from None
    except (OSError, ValueError) as reason:
        problem = f"this is not the path of {kind} ({getattr(reason, 'strerror', reason)})"
        raise unreadable(path, problem, "Check the path") from None
    if not folders and path.suffix.lower() in SPREADSHEETS:
        raise unreadable(path, "this is a spreadsheet", "Save it as CSV")
    folder = stat.S_ISDIR(status.st_mode)
    if stat.S_ISREG(status.st_mode) or (folders and folder):
        return
    other = "folder" if folder else "device"
    raise unreadable(path, f"this is a {other}", f"Name {kind}")


DAMAGED = (
    gzip.BadGzipFile,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,
)


class _Limited(io.RawIOBase):
    """The bytes of a packed file, at most `MOST_BYTES` of them."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path
        self._left = MOST_BYTES

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Reads into a buffer."""
        block = self._stream.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            problem = f"it unpacks to more than {MOST_BYTES >> 20:,} MB"
            raise unreadable(self._path, problem, "Unpack it first")
        buffer[: len(block)] = block
        return len(block)


@contextlib.contextmanager
def open_bytes(
    path: str | Path, kind: str = "a file", *, unzip: bool = True
) -> Iterator[IO[bytes]]:
    """Opens a regular file, unpacked if it is packed (`UNPACK`) or a zip archive of one file.

    Raises:
        DataError: no such file, a folder or a device, a damaged archive, or one of several files.
        OSError: no permission, or an error of the disk.
    """
    path = Path(path)
    check_regular(path, kind, folders=False)
    try:
        with contextlib.ExitStack() as opened:
            stream: IO[bytes] = opened.enter_context(path.open("rb"))
            start = stream.read(LONGEST_SIGN)
            stream.seek(0)
            for unpack in _of_sign(start, UNPACK):
                stream = io.BufferedReader(_Limited(unpack(stream, path), path))  # type: ignore[arg-type]
            if start.startswith(ZIP) and unzip:
                archive = opened.enter_context(zipfile.ZipFile(stream))
                names = archive.namelist()
                members = visible(names) or tuple(filter(re.compile(r"[^/]\Z").search, names))
                if len(members) != 1:
                    problem = f"the archive has {len(members)} files"
                    raise unreadable(path, problem, "Unpack it and name one of them")
                member = opened.enter_context(archive.open(members[0]))
                stream = io.BufferedReader(_Limited(member, path))  # type: ignore[arg-type]
            yield stream
    except DAMAGED as bad:
        raise unreadable(path, f"the archive is damaged ({bad})", "Copy or pack it again") from None
    except RuntimeError as bad:
        if "password" not in str(bad):
            raise
        raise unreadable(path, "the archive needs a password", "Unpack it first") from None


_UNSEEN = re.compile(r"^__MACOSX/|(^|/)\.[^/]*$|/$")


def visible(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of files that are neither folders, hidden nor a system's own."""
    return tuple(itertools.filterfalse(_UNSEEN.search, names))


def read_bytes(path: str | Path, kind: str = "a file") -> bytes:
    """Reads a regular file, unpacked if it is gzip.

    Raises:
        DataError: see `open_bytes`.
    """
    with open_bytes(path, kind, unzip=False) as stream:
        return stream.read()


@contextlib.contextmanager
def open_text(path: str | Path) -> Iterator[TextIO]:
    """Opens a text in UTF-8, or in UTF-16 with a mark; packed as for `open_bytes`.

    Raises:
        DataError: see `open_bytes`; other bytes.
    """
    with open_bytes(path) as stream:
        buffered: Any = stream
        if not hasattr(buffered, "peek"):
            buffered = io.BufferedReader(buffered)
        start = buffered.peek(LONGEST_SIGN)[:LONGEST_SIGN]
        check_readable(Path(path), start)
        encoding = encoding_of(start)
        text = io.TextIOWrapper(buffered, encoding, newline="")
        try:
            yield text
        except UnicodeDecodeError:
            name = encoding.upper().removesuffix("-SIG")
            raise error("encoding", path, encoding=name) from None
        finally:
            with contextlib.suppress(ValueError):
                text.detach()


def read_text(path: str | Path) -> str:
    """Reads a whole text; see `open_text`."""
    with open_text(path) as stream:
        return stream.read()


def of_kinds(folder: Path, kinds: Collection[str]) -> list[Path]:
    """Returns the files of a folder with one of these endings that are not hidden, sorted."""
    files = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in kinds and not path.name.startswith("."):
            files.append(path)
    return files


def digest(path: str | Path, kinds: Collection[str] | None = None) -> str:
    """Returns the SHA-256 of a file, or of all files in a folder with their names.

    Args:
        path: the file or the folder.
        kinds: endings of the files that count (see `of_kinds`); None for all.

    Raises:
        DataError: a file that never ends.
    """
    path = Path(path)
    total = hashlib.sha256()
    files = [path]
    if path.is_dir():
        files = sorted(path.rglob("*")) if kinds is None else of_kinds(path, kinds)
    for file in files:
        if file.is_file():
            check_regular(file)
            total.update(b"" if file is path else os.fsencode(file.relative_to(path)) + b"\0")
            with file.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()
