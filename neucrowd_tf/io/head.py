"""What a file looks like, from which a tool's export is recognised."""

from __future__ import annotations

import contextlib
import csv
import json
import zipfile
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.files.json import parse_json
from neucrowd_tf.io.files.reading import UTF16, ZIP, check_regular, ending, open_bytes, read_text
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import Table, read_table, separator_of, table_of_records

SAMPLE = 1 << 20  # bytes that are looked at
LINES = (".jsonl", ".ndjson")  # endings of JSON line by line, if there is one line only
MOST_MEMBER_BYTES = 1 << 30

Kind = Literal["table", "json", "lines", "npy", "parquet", "zip", "folder"]


class Head:
    """The beginning of a file, and ways to read the rest.

    Attributes:
        path: the file or folder.
        options: how tables are read.
        kind: what it is; "zip" is an archive of several files, "lines" JSON line by line.
        columns: the header of a table.
        first: the first record of JSON: of a list, of lines, or an object's first value; None if
            it is not an object.
        keys: the keys of a JSON object at the top, () for a list or lines.
        names: the files of an archive or folder, with `/` between folders.
    """

    kind: Kind

    def __init__(self, path: Path, options: TableOptions = DEFAULTS) -> None:
        self.path, self.options = path, options
        self.columns: tuple[str, ...] = ()
        self.first: dict[str, Any] | None = None
        self.keys: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        if path.is_dir():
            self.kind = "folder"
            files = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
            self.names = tuple(sorted(file.as_posix() for file in files))
            return
        check_regular(path, folders=False)
        if ending(path) == ".npy":
            self.kind = "npy"
        elif ending(path) in (".parquet", ".pq"):
            self.kind = "parquet"
        elif not self._look_at_archive():
            self._look_at_text()

    def _look_at_archive(self) -> bool:
        """Sets kind and names of an archive of several files; returns whether it is one."""
        with open_bytes(self.path, unzip=False) as stream:
            if stream.read(4) != ZIP:
                return False
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [item for item in archive.infolist() if not item.is_dir()]
        except (zipfile.BadZipFile, OSError):
            return False  # opening it gives the reason
        names = [item.filename for item in members]
        self.names = tuple(name for name in names if not name.startswith("__MACOSX/"))
        self.kind = "zip"
        return len(self.names) > 1

    def _look_at_text(self) -> None:
        with open_bytes(self.path) as stream:
            start = stream.read(SAMPLE)
        encoding = "utf-16" if start.startswith(UTF16) else "utf-8-sig"
        text = start.decode(encoding, "replace").lstrip()
        self.kind = "table"
        if text[:1] not in ("{", "[") or self.options.header == "none":
            line = text.split("\n", 1)[0].rstrip("\r")
            sign = separator_of(self.path, line, self.options)
            with contextlib.suppress(csv.Error, StopIteration):
                cells = next(csv.reader([line], delimiter=sign))
                self.columns = tuple(cell.strip() for cell in cells)
            return
        self.kind = "json"
        value, end = _decoded(text, 1 + len(text[1:]) - len(text[1:].lstrip()))
        if text[0] == "{":
            value, end = _decoded(text, 0)
            if end and (text[end:].strip() or ending(self.path) in LINES):
                self.kind = "lines"
            elif end == 0 or len(start) == SAMPLE:
                value = self.value()
            if self.kind == "json" and isinstance(value, dict):
                self.keys = tuple(value)
                value = next(iter(value.values()), None)
        elif not end and len(start) == SAMPLE:
            whole = self.value()
            value = whole[0] if whole else None
        self.first = value if isinstance(value, dict) else None

    @property
    def is_json(self) -> bool:
        """Whether the file is JSON, as a whole or line by line."""
        return self.kind in ("json", "lines")

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return read_text(self.path)

    def table(self, options: TableOptions | None = None, *, strict: bool = True) -> Table:
        """Returns the table; flat records of JSON are one too. See `read_table`."""
        if self.is_json:
            return table_of_records(self.path, self.records())
        return read_table(self.path, options or self.options, strict=strict)

    def value(self) -> Any:
        """Returns JSON as a whole.

        Raises:
            DataError: what is not JSON, with its place.
        """
        return parse(self.text, self.path)

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the place ("record 2", "line 2") and each object of a list, of lines or alone.

        Raises:
            DataError: what is not JSON, or is not an object.
        """
        return records(self.text, self.path, lines=self.kind == "lines")

    def members(self, endings: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yields name and text of each file of an archive or folder with one of these endings.

        Nothing is unpacked to the disk.

        Raises:
            DataError: a damaged archive, one that unpacks to too much, or other bytes than UTF-8.
        """
        names = [name for name in self.names if ending(name) in endings]
        if self.kind == "folder":
            for name in names:
                yield name, read_text(self.path / name)
            return
        try:
            with zipfile.ZipFile(self.path) as archive:
                sizes = sum(archive.getinfo(name).file_size for name in names)
                if sizes > MOST_MEMBER_BYTES:
                    problem = f"it unpacks to more than {MOST_MEMBER_BYTES >> 20:,} MB"
                    raise unreadable(self.path, problem, "Unpack it first")
                for name in names:
                    yield name, archive.read(name).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise error("encoding", self.path, name, encoding="UTF-8") from None
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as bad:
            problem = f"the archive cannot be read ({bad})"
            raise unreadable(self.path, problem, "Pack it again") from None


def records(text: str, path: Path, *, lines: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place ("record 2", "line 2") and each object of a list, of lines or alone.

    Raises:
        DataError: what is not JSON, or is not an object.
    """
    if lines:
        values: Iterator[tuple[str, Any]] = (
            (f"line {number}", parse(line, path, number))
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        )
    else:
        whole = parse(text, path)
        listed = whole if isinstance(whole, list) else [whole]
        values = ((f"record {number}", value) for number, value in enumerate(listed, 1))
    for place, value in values:
        if not isinstance(value, dict):
            raise broken(path, f"expected an object, received {type(value).__name__}", place)
        yield place, value


def parse(text: str, path: str | Path, line: int | None = None) -> Any:
    """Parses JSON.

    Args:
        text: the whole file, or one line of it.
        path: the file.
        line: the line's number.

    Raises:
        DataError: what is wrong, with its line.
    """
    try:
        return parse_json(text, str(path))
    except json.JSONDecodeError as bad:
        place = f"line {bad.lineno if line is None else line}"
        early = bad.pos >= len(text.rstrip()) or bad.msg.startswith("Unterminated")
        problem = "the JSON ends early" if early else f"this is not JSON ({bad.msg})"
        raise broken(path, problem, place) from None


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Returns the JSON value at a place of a text and its end; (None, 0) if it is not whole."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        return None, 0


def unknown(head: Head) -> DataError:
    """Returns the error for JSON of an unknown layout, with its keys."""
    keys = list(head.keys or head.first or ())[:8]
    shown = ", ".join(repr(str(key)[:40]) for key in keys) or "none"
    problem = f"its keys are {shown}"
    advice = "Convert it to a CSV with the columns task, worker and label"
    return error("unknown_layout", head.path, problem=problem, advice=advice)
