"""Cells of the CSVs that are written.

Numbers are exact, and no text is a formula for a spreadsheet.
"""

from __future__ import annotations

import csv
import itertools
import re
import types
import unicodedata
from collections.abc import Collection, Container, Iterable
from typing import Any

import numpy as np

from neucrowd_tf.declare.types import Texts

# Full-width signs too: spreadsheets in East Asian languages take them for the plain ones.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def text_cell(value: Any) -> str:
    """Returns an id or a label as a cell.

    Text that a spreadsheet would read as a formula gets a leading apostrophe. So does text that has
    one already, so that `=x` and `'=x` stay two ids.

    Half of a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark.
    """
    if _is_plain(value):
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    if not isinstance(value, str) or not text.lstrip("'").startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _is_plain(value: Any) -> bool:
    """Returns whether a value is its own cell: so are nearly all of a large table."""
    return type(value) is str and value.isascii() and value[:1].isalnum()


def bare_name(name: str) -> str:
    """Returns a name in Unicode's composed form, without outer spaces."""
    return unicodedata.normalize("NFC", name.strip())


def name_of(cell: str, names: Container[str]) -> str:
    """Returns the known name that a cell stands for (3.0 for 3), or the cell as it is."""
    bare = cell.removeprefix("'")
    forms = [cell, bare, re.sub(r"\.0+$", "", cell), bare_name(cell)]
    if text_cell(bare) == cell:
        forms.insert(0, bare)
    return next(filter(names.__contains__, forms), cell)


def number_cell(value: Any) -> str:
    """Returns a number to 9 significant digits, which preserve float32.

    None and NaN give an empty cell.
    """
    if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
        return ""
    if isinstance(value, (int, np.integer)):
        return str(value)
    return f"{value:.9g}"


def rounded_cell(value: float) -> str:
    """Returns a number to six decimals; see `number_cell`."""
    return number_cell(round(value, 6))


def cell(value: Any) -> str:
    """Returns a value as a cell: of a float by `number_cell`, of anything else by `text_cell`."""
    if isinstance(value, (float, np.floating)):
        return number_cell(float(value))
    return text_cell(value)


def to_csv(header: Texts, rows: Iterable[Iterable[str]]) -> str:
    """Returns a CSV as text; its lines end with a line feed alone.

    Python's writer quotes those characters that end its own lines, so that here it also quotes
    cells with a carriage return. One that is not quoted would end the row for whoever reads it.
    """
    lines: list[str] = []
    sink: Any = types.SimpleNamespace(write=lines.append)
    csv.writer(sink, lineterminator="\r\n").writerows(itertools.chain([header], rows))
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def columns_csv(columns: Iterable[tuple[str, Iterable[Any]]]) -> str:
    """Returns a CSV of columns of values, each with its header; see `cell`."""
    header: list[str] = []
    values: list[Collection[Any]] = []
    for title, column in columns:
        header.append(title)
        values.append(column if isinstance(column, np.ndarray) else list(column))
    lines = [",".join(header), *map(",".join, zip(*map(_cells, values), strict=True))]
    text = "\n".join(lines) + "\n"
    signs = list(map(text.count, ',\n"\r'))
    if len(header) > 1 and signs == [len(lines) * (len(header) - 1), len(lines), 0, 0]:
        return text  # no cell needs quotation marks; to look at each one takes much longer
    return to_csv(header, zip(*map(_cells, values), strict=True))


def _cells(values: Iterable[Any]) -> Iterable[str]:
    """Returns the cells of a column, of an array without a look at each value's type."""
    if not isinstance(values, np.ndarray):
        return map(cell, values)
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        texts = map("{:.9g}".format, values.tolist())
        if finite.all():
            return texts
        return np.where(finite, list(texts), "").tolist()
    if values.dtype.kind in "iu":
        return map(str, values.tolist())
    return [value if _is_plain(value) else cell(value) for value in values.tolist()]


def markdown_table(head: Texts, rows: Iterable[Iterable[str]]) -> list[str]:
    """Returns the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
