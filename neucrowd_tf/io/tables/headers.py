"""A table's header: what separates its columns, what they may be called, which there must be."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import re
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.errors import DataError

ALIASES: dict[str, tuple[str, ...]] = {
    "task": ("task", "question", "taskId", "task_id", "instance", "item", "id"),
    "worker": ("worker", "annotator", "performer", "workerId", "worker_id", "annotator_id"),
    "label": ("label", "answer", "class", "response"),
}
SAMPLE = 1 << 16  # bytes that say what separates the columns
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
MOST_NAMES = 500  # that are looked through for one that comes close
_SAID = re.compile(r'"?sep=([\x01-\x7f])"?[ \t,;|]*\r?\n', re.IGNORECASE)
_TWICE = re.compile(r"\.[1-9]\d*$")
_FURTHER = re.compile(r"(?:second|third|other|another|2nd|3rd)[\s_.-]*(.+)")
_NUMBERED = re.compile(r"(.+?)(?:[\s_.-]*\d+|[\s_.-]+[b-z])")


def without_said(text: str) -> tuple[str, str | None]:
    """Returns a text without Excel's first line `sep=;`, which it does not show, and the sign that
    this names; None where there is none.
    """
    said = _SAID.match(text)
    return (text, None) if said is None else (text[said.end() :], said[1])


def separator_of(start: bytes) -> str:
    """Returns what separates the columns of a file that starts so: commas, or tabs where the first
    line has no comma, or where rows have the header's length with tabs and not with commas.
    """
    start = start.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # old Macs' ends too
    first = start.partition(b"\n")[0]
    if b"\t" not in first:
        return ","
    if b"," not in first:
        return "\t"
    text = start[: start.rfind(b"\n") + 1].decode("utf-8-sig", "replace")
    alike = []
    with contextlib.suppress(csv.Error):
        for sign in ",\t":
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign) if row]
            alike.append(len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])})
    return "\t" if alike == [False, True] else ","


def check_commas(source: str | Path, columns: Sequence[str], separator: str = ",") -> None:
    """Raises DataError when a header looks like columns that another sign than `separator`
    separates.
    """
    for sign, name in {**SEPARATORS, ",": "commas"}.items():
        if sign != separator and len(columns) == 1 and sign in str(columns[0]).strip():
            wanted = {**SEPARATORS, ",": "commas"}.get(separator, repr(separator))
            raise DataError(
                f"{source}: expected columns separated by {wanted}, received {name} (--separator"
                " says which)"
            )


def require_columns(
    path: str | Path, found: Sequence[str], wanted: Sequence[str], way: str = ""
) -> None:
    """Raises DataError when a column is missing, with the closest name that is there and the way
    out.
    """
    check_commas(path, found)
    for name in wanted:
        if name not in found:
            close = difflib.get_close_matches(
                name, [str(column) for column in found[:MOST_NAMES]], n=1
            )
            hint = f" ({close[0]!r} comes close: rename it if it is that)" if close else ""
            shown = ", ".join(repr(str(column)) for column in list(found)[:8]) + (
                ", ..." if len(found) > 8 else ""
            )
            raise DataError(
                f"{path}: expected a column {name!r}, received columns {shown}{hint}{way}"
            )


def also_named(role: str, found: dict[str, str], columns: Sequence[str]) -> list[str]:
    """Returns further columns that are named as a role's, also as pandas names a second one of a
    name (`label.1`); a bare `id` is many things.
    """
    folded = {alias.lower() for alias in ALIASES[role]} - {"id"}
    rest = [name for name in columns if name not in found.values()]
    alike = [name for name in rest if _TWICE.sub("", str(name).strip().lower()) in folded]
    return [*alike, *(name for name in further(role, found, columns) if name not in alike)]


def further(role: str, found: dict[str, str], columns: Sequence[str]) -> list[str]:
    """Returns columns that are named as a second one of a role's: `worker2`, `label_b`,
    `second_answer`, `label.1`.
    """
    folded = {alias.lower() for alias in ALIASES[role]} - {"id"}
    names = []
    for name in columns:
        small = str(name).strip().lower()
        number, word = _NUMBERED.fullmatch(small), _FURTHER.fullmatch(small)
        of_own = number is not None and number[1] == found[role].strip().lower()
        if name not in found.values() and (of_own or (word is not None and word[1] in folded)):
            names.append(name)
    return names


def check_no_twins(path: str | Path, names: Sequence[str]) -> None:
    """Raises DataError for a column's name that is there twice, the spaces around it aside, which
    pandas would rename.
    """
    known: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if name and known.setdefault(name, place) != place:
            raise DataError(
                f"{path}: columns {known[name]} and {place}: expected each column once, received"
                f" {name!r} again (spaces around a name do not count); rename one of them"
            )
