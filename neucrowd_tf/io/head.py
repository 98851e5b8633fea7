"""What a file looks like, from which a tool's export is recognised."""

from __future__ import annotations

import contextlib
import csv
import json
import operator
import zipfile
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Fields, Records
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.column_names import num_roles
from neucrowd_tf.io.files.json import parse_json
from neucrowd_tf.io.files.reading import (
    check_readable,
    check_regular,
    encoding_of,
    ending,
    open_bytes,
    read_text,
    visible,
)
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import (
    PARQUET,
    Table,
    as_records,
    column_names,
    first_record,
    parquet_records,
    read_table,
    separator_of,
    table_of_records,
)

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
        first: the first record of JSON: of a list, of lines, of the files of a folder, or an
            object's first value; None if it is not an object. Of Parquet with lists, objects or
            names of classes, its first row.
        keys: the keys of a JSON object at the top, () for a list or lines.
        names: the files of an archive or folder, with `/` between folders.
    """

    kind: Kind

    def __init__(self, path: Path, options: TableOptions = DEFAULTS) -> None:
        self.path = path
        self.options = options
        self.columns: tuple[str, ...] = ()
        self.first: Fields | None = None
        self.keys: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        if path.is_dir():
            self.kind = "folder"
            files = filter(Path.is_file, path.rglob("*"))
            self.names = visible(sorted(file.relative_to(path).as_posix() for file in files))
            self._look_at_members()
            return
        check_regular(path, folders=False)
        if ending(path) == ".npy":
            self.kind = "npy"
        elif ending(path) in PARQUET:
            self.kind = "parquet"
            self.first = first_record(path)
        elif not self._look_at_archive():
            self._look_at_text()

    def _look_at_archive(self) -> bool:
        """Sets kind and names of an archive of several files; returns whether it is one."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                self.names = visible(archive.namelist())
        except (zipfile.BadZipFile, OSError):
            return False  # if it is damaged, opening it gives the reason
        if starting_with(self.names, "xl/"):
            raise unreadable(self.path, "this is a spreadsheet", "Save it as CSV")
        if len(self.names) > 1:
            self.kind = "zip"
            self._look_at_members()
        return len(self.names) > 1

    def _look_at_members(self) -> None:
        """Sets the first record of the JSON in an archive or a folder."""
        with contextlib.suppress(DataError, StopIteration):
            self.first = next(self.records())[1]

    def _look_at_text(self) -> None:
        with open_bytes(self.path) as stream:
            start = stream.read(SAMPLE)
        check_readable(self.path, start)
        text = start.decode(encoding_of(start), "replace").lstrip()
        if text[:1] not in ("{", "[") or self.options.header == "none":
            self.kind = "table"
            line = text.split("\n", 1)[0].rstrip("\r")
            sign = separator_of(self.path, line, self.options)
            with contextlib.suppress(csv.Error, StopIteration):
                self.columns = column_names(next(csv.reader([line], delimiter=sign)))
            return
        line, _, further_lines = text.partition("\n")
        first = None
        with contextlib.suppress(ValueError, RecursionError):  # the line is no whole JSON
            first = json.loads(line)
        lines = ending(self.path) in LINES or (first is not None and further_lines.strip())
        if text[0] == "{" and lines:
            self.kind = "lines"
        else:
            self.kind = "json"
            values = self.value
            if isinstance(values, dict):
                self.keys = tuple(values)
                values = values.values()
            first = next(iter(values), None)
        if isinstance(first, dict):
            self.first = first

    @property
    def has_members(self) -> bool:
        """Whether it is of several files: an archive or a folder."""
        return self.kind in ("zip", "folder")

    @property
    def has_records(self) -> bool:
        """Whether the file is of records: JSON, as a whole or line by line, or nested Parquet."""
        return self.kind in ("json", "lines") or (self.kind == "parquet" and bool(self.first))

    @property
    def is_nested(self) -> bool:
        """Whether the records are no rows of a table."""
        if self.first is None:
            return True
        return bool(self.keys) or not {dict, list}.isdisjoint(map(type, self.first.values()))

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return read_text(self.path)

    @cached_property
    def value(self) -> Any:
        """JSON as a whole, or the list of records in it; see `unwrapped`.

        Raises:
            DataError: what is not JSON, with its place.
        """
        return unwrapped(parse_json(self.text, self.path))

    def table(self, *, strict: bool = True) -> Table:
        """Returns the table; flat records of JSON are one too. See `read_table`."""
        if self.has_records:
            return table_of_records(self.path, list(map(operator.itemgetter(1), self.records())))
        return read_table(self.path, self.options, strict=strict)

    def records(self) -> Records:
        """Yields the place ("record 2", "line 2") and each object of a list, of lines or alone.

        Those of an archive or a folder are in its files.

        Raises:
            DataError: what is not JSON, or is not an object.
        """
        if self.has_members:
            return self._records_of_members()
        if self.kind == "parquet":
            return parquet_records(self.path)
        if self.kind == "lines":
            return records_of_lines(self.text, self.path)
        return records_of(self.value, self.path)

    def keyed(self) -> Iterator[tuple[str, tuple[str, Any]]]:
        """Yields the place, and each key with its value, of the object at the top."""
        for key, value in self.value.items():
            yield f"item {key!r}", (key, value)

    def _records_of_members(self) -> Records:
        for name, text in self.members((".json", "")):
            value = parse_json(text, self.path / name)
            for place, record in records_of(value, self.path):
                yield f"{name}: {place}", record

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


def records_of(value: Any, path: Path) -> Records:
    """Yields the place ("record 2") and each object of a list of JSON, or the only one.

    Raises:
        DataError: a value that is not an object.
    """
    for number, record in enumerate(value if isinstance(value, list) else [value], 1):
        yield _with_object(path, f"record {number}", record)


def records_of_lines(text: str, path: Path) -> Records:
    """Yields the place ("line 2") and the object of each line of JSON.

    Raises:
        DataError: a line that is not an object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _with_object(path, f"line {number}", parse_json(line, path, number))


def _with_object(path: Path, place: str, value: Any) -> tuple[str, Fields]:
    if not isinstance(value, dict):
        raise broken(path, f"expected an object, received {type(value).__name__}", place)
    return place, value


# The keys under which programs write a list of records.
WRAPPERS = frozenset(
    ("data", "items", "results", "samples", "examples", "records", "rows", "annotations", "tasks",
     "runs", "feedback", "scores", "traces", "assessments")
)  # fmt: skip


def unwrapped(value: Any) -> Any:
    """Returns the list of records that an object of JSON holds, or the value as it is.

    It is one list under a usual name beside other values, or a data frame as pandas writes it: by
    columns, or as a table of columns, index and data.
    """
    if not isinstance(value, dict):
        return value
    if value.keys() in ({"columns", "index", "data"}, {"columns", "data"}):
        return as_records(value["columns"], value["data"])
    lists = [key for key, entries in value.items() if isinstance(entries, list) and entries]
    if len(lists) == 1 and lists[0] in WRAPPERS and isinstance(value[lists[0]][0], dict):
        return value[lists[0]]
    columns = list(value.values())
    if num_roles(value) < 2 or {*map(type, columns)} != {dict}:
        return value
    if set(map(frozenset, columns)) != {frozenset(columns[0])}:
        return value
    return as_records(value, zip(*map(dict.values, columns), strict=True))


def unknown_keys(head: Head) -> str:
    """Returns the keys of records of an unknown layout, in words."""
    keys = [repr(str(key)[:40]) for key in head.keys or head.first or ()]
    return f"its keys are {', '.join(keys[:8]) or 'none'}"
