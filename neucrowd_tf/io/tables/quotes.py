"""Quotes that are not meant: between two of them, rows become one cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError

_ENDS = re.compile(r"\r\n|\r|\n")


WAY_OUT = "; --exact_names takes them for one cell"


def check_swallowed(
    path: str | Path, lines: Callable[[], Any], separator: str, way_out: str = WAY_OUT
) -> None:
    """Raises DataError for a table with `swallowed_rows`."""
    if found := swallowed_rows(lines, separator):
        raise DataError(
            f"{path}: line {found[0]}: expected a closing quote, received none up to line"
            f" {found[1]}, behind what look like rows{way_out}"
        )


def swallowed_rows(lines: Callable[[], Any], separator: str) -> tuple[int, int] | None:
    """Returns the first and the last line of a quoted cell that holds what look like rows.

    Such a cell has line breaks; the lines in it have as many separators as the header has, its last
    one as many as stand before its column, no space behind the first, and begin with what looks
    like other rows' first cell. Prose of several lines does not.

    Args:
        lines: opens a `csv.reader`; called again where a cell has line breaks as rows would have.
        separator: the sign between columns.
    """
    found = list(_suspects(lines(), separator))
    if not found:
        return None
    rows = iter(lines())
    width = len(next(rows))
    firsts = [cells[0] for cells in rows if cells]
    kinds, taken = set(map(_kind, firsts)), set(firsts)
    for first, last, names in found:
        # With two columns each task is there once.
        if kinds.issuperset(map(_kind, names)) and (width > 2 or taken.isdisjoint(names)):
            return first, last
    return None


def _suspects(lines: Any, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yields the lines of cells with as many separators as rows have, and where these begin."""
    wanted = before = 0
    for cells in lines:
        start, before = before, lines.line_num
        if not wanted:
            wanted = len(cells) - 1
        elif before - start > 1:
            line = start + 1
            for place, cell in enumerate(cells):
                _, *rest = _ENDS.split(cell)
                end = line + len(rest)
                if names := _as_rows(rest, place, wanted, separator):
                    yield line, end, names
                line = end


def _as_rows(rest: list[str], place: int, wanted: int, separator: str) -> list[str]:
    """Returns the first cells of the lines behind a cell's first, [] where they are no rows."""
    *whole, last = rest or [""]
    whole = [line for line in whole if line]
    if any(line.count(separator) != wanted for line in whole):
        return []
    if last.count(separator) == place and place:
        whole.append(last)
    parts = [line.split(separator, 1) for line in whole]
    return [] if any(part[1][:1] == " " for part in parts) else [name for name, _ in parts]


def _kind(name: str) -> frozenset[str]:
    """Returns which kinds of signs a name is made of."""
    kinds = ("9" if sign.isdigit() else "a" if sign.isalpha() else sign for sign in name)
    return frozenset(kinds)
