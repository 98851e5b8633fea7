"""The beginning of a file, from which a tool recognises its own exports."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import itertools
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import GZIP, check_regular, read_bytes
from neucrowd_tf.io.importers.archives import MOST_MEMBERS, open_archive
from neucrowd_tf.io.tables.headers import without_said

Kind: TypeAlias = Literal["json", "table", "zip", "folder", "other"]
HEAD = 1 << 20


@dataclasses.dataclass(frozen=True)
class Head:
    """The beginning of a file, from which a tool recognises its own exports.

    Attributes:
        path: the file or folder.
        kind: what it is.
        first: the first record of JSON, {} where there is none.
        columns: a table's header.
        separator: the sign between a table's columns.
        named: the columns that the user named for task, worker and label, by role.
        members: the names in an archive or a folder, with `/` between folders.
    """

    path: Path
    kind: Kind
    first: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    columns: tuple[str, ...] = ()
    separator: str = ","
    named: Mapping[str, str] = dataclasses.field(default_factory=dict)
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


def read_head(path: Path, separator: str | None = None) -> Head:
    """Looks at the beginning of a file.

    Args:
        path: a file or a folder.
        separator: the sign between a table's columns; None for tabs where there are any, else
            commas.

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
    text, said = without_said(text)
    line = re.split("[\r\n]", text, maxsplit=1)[0]  # old Macs end lines with "\r" alone
    if "\0" in line or not line.strip():
        return Head(path, "other")
    sign = separator or said or ("\t" if "\t" in line else ",")
    try:
        columns = next(csv.reader([line], delimiter=sign))
    except csv.Error:  # no tool's
        return Head(path, "other")
    header = tuple(column.strip() for column in columns)
    return Head(path, "table", columns=header, separator=sign)


def _first_record(text: str) -> Any:
    """Returns the first record of a list or of lines, None where it is not whole."""
    text = text.lstrip()
    start = len(text) - len(text[1:].lstrip()) if text.startswith("[") else 0
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        return None
