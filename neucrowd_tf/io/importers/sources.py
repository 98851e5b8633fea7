"""The files that tools write: JSON as a list or line by line, tables, and archives, read safely."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files import GZIP, check_regular, parse_json, read_bytes
from neucrowd_tf.io.names import same_header
from neucrowd_tf.io.quotes import check_swallowed

Kind: TypeAlias = Literal["json", "table", "zip", "folder", "other"]
HEAD = 1 << 20
# What an archive may unpack to; nothing is written to the disk, so names cannot point anywhere.
MOST_BYTES = 1 << 30
MOST_MEMBERS = 200_000


@dataclasses.dataclass(frozen=True)
class Head:
    """The beginning of a file, from which a tool recognises its own exports.

    Attributes:
        path: the file or folder.
        kind: what it is.
        first: the first record of JSON, {} where there is none.
        columns: a table's header.
        members: the names in an archive or a folder, with `/` between folders.
    """

    path: Path
    kind: Kind
    first: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    columns: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def shown(self) -> str:
        """Returns what was seen, in words."""
        names = {"json": tuple(self.first), "table": self.columns}.get(self.kind, self.members)
        what = {
            "json": "its first record has",
            "table": "line 1 has the columns",
            "zip": "an archive of",
            "folder": "a folder of",
        }.get(self.kind, "line 1 is no header;")
        listed = ", ".join(repr(str(name)[:40]) for name in names[:6]) or "nothing that has a name"
        return f"{what} {listed}{', ...' * (len(names) > 6)}"


def read_head(path: Path) -> Head:
    """Looks at the beginning of a file.

    Raises:
        DataError: no such file.
    """
    if path.is_dir():
        files = list(itertools.islice(path.rglob("*"), MOST_MEMBERS + 1))
        if len(files) > MOST_MEMBERS:
            raise DataError(
                f"{path}: expected a folder of at most {MOST_MEMBERS:,} files, received more"
            )
        names = sorted(file.relative_to(path).as_posix() for file in files if file.is_file())
        return Head(path, "folder", members=tuple(names))
    check_regular(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(HEAD)
        if packed := start.startswith(GZIP):
            with gzip.open(path) as unpacked:
                start = unpacked.read(HEAD)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return Head(path, "other")  # its reader says what is wrong
    except PermissionError:
        raise
    except OSError as error:  # of the disk, or of a file that only looks like one
        raise DataError(f"{path}: expected a file, received {error.strerror}") from None
    if start.startswith(b"PK\x03\x04"):
        try:
            with open_archive(path) as archive:
                return Head(path, "zip", members=tuple(archive.namelist()))
        except DataError:
            return Head(path, "zip")  # no tool's, as it is
    text = start.decode("utf-8-sig", errors="replace")
    if text.lstrip()[:1] in ("[", "{"):
        first = _first_record(text)
        if first is None and len(start) == HEAD:
            whole = read_bytes(path) if packed else path.read_bytes()
            first = _first_record(whole.decode("utf-8-sig", errors="replace"))
        return Head(path, "json", first=first if isinstance(first, dict) else {})
    line = text.split("\n", 1)[0].rstrip("\r")
    if "\0" in line or not line.strip():
        return Head(path, "other")
    try:
        columns = next(csv.reader([line], delimiter="\t" if "\t" in line else ","))
    except csv.Error:  # no tool's
        return Head(path, "other")
    return Head(path, "table", columns=tuple(column.strip() for column in columns))


def _first_record(text: str) -> Any:
    """Returns the first record of a list or of lines, None where it is not whole."""
    text = text.lstrip()
    start = len(text) - len(text[1:].lstrip()) if text.startswith("[") else 0
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        return None


def read_text(path: Path) -> str:
    """Reads a text in UTF-8.

    Raises:
        DataError: no such file, or other bytes.
    """
    return _decode(read_bytes(path), str(path))


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}: line {line}: expected text in UTF-8, received other bytes"
        ) from None


def records(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place ("record 2" of a list, "line 2" of JSON Lines) and each object.

    Args:
        text: the file's content.
        name: what to call it in errors.

    Raises:
        DataError: what is no JSON or no object, with its place.
    """
    stripped = text.lstrip()
    if stripped.startswith("["):
        values: list[tuple[str, Any]] = [
            (f"record {number}", value) for number, value in enumerate(parse(text, name), 1)
        ]
    elif stripped.startswith("{") and _is_one_object(stripped):
        values = [("record 1" if "\n" in stripped.rstrip() else "line 1", parse(text, name))]
    else:
        values = [
            (f"line {number}", parse(line, name, number))
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    for place, value in values:
        if not isinstance(value, dict):
            raise DataError(f"{name}: {place}: expected an object, received {type(value).__name__}")
        yield place, value


def _is_one_object(text: str) -> bool:
    """Whether one object fills the text."""
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return False
    return not text[end:].strip()


def parse(text: str, name: str, line: int | None = None) -> Any:
    """Parses JSON.

    Args:
        text: the whole file, or one line of it.
        name: what to call it in errors.
        line: the line's number.

    Raises:
        DataError: what is wrong and where; a text that ends early says so.
    """
    try:
        return parse_json(text, name, each_key_once=True)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno if line is None else line}"
        early = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        what = "one that ends early (is the file cut off?)" if early else f"{error.msg.lower()}"
        raise DataError(
            f"{name}: {at}: expected JSON, received {what}, column {error.colno}"
        ) from None


def rows(path: Path, separator: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the place (a spreadsheet's row, the header being 1) and the cells of each row that is
    not empty.

    Raises:
        DataError: a row with more or fewer cells than the header, the header again, a column twice,
            or a quote that is not closed.
    """
    text = read_text(path)

    def lines() -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)

    reader = lines()
    last = 0
    if '"' in text:
        with contextlib.suppress(csv.Error):  # which is met again below
            check_swallowed(path, lines, separator, "")
    try:
        header = [cell.strip() for cell in next(reader, [])]
        twice = [name for name in header if name and header.count(name) > 1]
        if twice:
            raise DataError(f"{path}: expected each column once, received {twice[0]!r} again")
        last = reader.line_num
        for number, cells in enumerate(reader, 2):
            last = reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise DataError(
                    f"{path}: row {number}: expected {len(header)} cells, as in the header,"
                    f" received {len(cells)}"
                )
            if len(header) > 1 and all(map(same_header, header, cells)):
                raise DataError(
                    f"{path}: row {number}: expected cells, received the header again (several"
                    " files in one?)"
                )
            yield f"row {number}", dict(zip(header, cells, strict=True))
    except csv.Error as error:
        where = f"{path}: line {last + 1}"
        raise DataError(f"{where}: expected a table, received {error}") from None


def open_archive(path: Path) -> zipfile.ZipFile:
    """Opens a zip archive.

    Raises:
        DataError: one that is broken, or holds too much.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise DataError(f"{path}: expected a zip archive, received {error}") from None
    members = archive.infolist()
    if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_BYTES:
        archive.close()
        raise DataError(
            f"{path}: expected an archive of at most {MOST_MEMBERS:,} files and"
            f" {MOST_BYTES >> 20:,} MB, received more"
        )
    return archive


def members(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[PurePosixPath, str]]:
    """Yields the name and the text of each file with one of the endings in an archive or a folder,
    by name; what an operating system adds is passed over.

    Nothing is unpacked onto the disk, and no more is read than the archive's index promised.

    Raises:
        DataError: an archive that is broken, locked or too large, or a file that is no text.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            name = PurePosixPath(file.relative_to(path).as_posix())
            if file.is_file() and file.suffix in endings and not _hidden(name):
                yield name, read_text(file)
        return
    with open_archive(path) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            name = PurePosixPath(member.filename)
            if member.is_dir() or name.suffix not in endings or _hidden(name):
                continue
            where = f"{path}: {name}"
            try:
                with archive.open(member) as stream:
                    content = stream.read(member.file_size + 1)
            except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError) as error:
                raise DataError(f"{where}: expected a whole file, received {error}") from None
            if len(content) > member.file_size:
                raise DataError(f"{where}: expected {member.file_size} bytes, received more")
            yield name, _decode(content, where)


def _hidden(name: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.parts)


def choices_of(value: Any) -> list[Any] | None:
    """Returns what was chosen, from the ways in which forms say it: a value, a list of them,
    `{"label": value}`, `{"labels": [...]}`, or a truth value for each option; None where it is no
    choice (a box, a nested form).
    """
    if value is None or value == "":
        return []
    if isinstance(value, (str, int, float)):
        return [value]
    if isinstance(value, list):
        return value if all(isinstance(item, (str, int, float)) for item in value) else None
    if not isinstance(value, dict):
        return None
    for key in ("label", "labels", "choices"):
        if key in value:
            return choices_of(value[key])
    if value and all(isinstance(item, bool) for item in value.values()):
        return [option for option, chosen in value.items() if chosen]
    return None
