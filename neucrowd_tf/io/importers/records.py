"""Records of JSON, in a list or line by line, and rows of tables, each with its place;
and what was chosen in one.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.json import parse_json
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.names.spelling import same_header
from neucrowd_tf.io.tables.headers import check_no_twins, without_said
from neucrowd_tf.io.tables.quotes import check_swallowed


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
    text, said = without_said(read_text(path))
    separator = said or separator

    def lines() -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)

    reader = lines()
    last = 0
    if '"' in text:
        with contextlib.suppress(csv.Error):  # which is met again below
            check_swallowed(path, lines, separator, "")
    try:
        header = [cell.strip() for cell in next(reader, [])]
        check_no_twins(path, header)
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
