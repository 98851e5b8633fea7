"""A CSV as a file: opened once, and an error names the file, the row and the column."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import not_text, read_bytes
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import SAMPLE, check_commas, check_no_twins, separator_of
from neucrowd_tf.io.tables.quotes import check_swallowed

LONGEST_HEADER = 1 << 21
LONGEST_LINE = 1 << 26
MOST_FIELD = 1 << 30
MANY_COLUMNS = 2000
_SAYS = re.compile(rb"(?:\xef\xbb\xbf)?\"?sep=([\x01-\x7f])\"?[ \t,;|]*\r?\n", re.IGNORECASE)


def _check_lines(path: str | Path, content: bytes) -> None:
    """Raises DataError for a line that is longer than any table's, before it is looked through."""
    first = 0
    while len(content) - first > LONGEST_LINE:
        within = first, first + LONGEST_LINE
        last = max(content.rfind(b"\n", *within), content.rfind(b"\r", *within))
        if last < 0:
            line = content.count(b"\n", 0, first) + 1
            raise DataError(
                f"{path}: line {line}: expected at most {LONGEST_LINE >> 20} MB in a line, received"
                " more"
            )
        first = last + 1


@dataclasses.dataclass(frozen=True)
class CsvFile:
    """A CSV in UTF-8, its bytes read once."""

    path: Path
    content: bytes
    separator: str

    @classmethod
    def open(cls, path: str | Path, layout: TableFormat = PLAIN) -> CsvFile:
        """Reads a file.

        Raises:
            DataError: no such file, no regular one, no permission, a first line that is no header,
                a line without an end, or NUL bytes.
        """
        content = read_bytes(path, "a CSV file")
        _check_lines(path, content)
        if b"\0" in content:
            raise DataError(f"{path}: expected text in UTF-8, received {not_text(content)}")
        # pandas passes over the first separator behind a lone CR at the beginning of a line.
        content = re.sub(rb"\n\r(?!\n)", b"\n\n", content)
        separator = layout.separator
        if said := _SAYS.match(content):  # Excel's own line, which it does not show
            content = content[said.end() :]
            separator = separator or said[1].decode()
        file = cls(Path(path), content, separator or separator_of(content[:SAMPLE]))
        if (length := len(file._first_line)) > LONGEST_HEADER:
            raise DataError(
                f"{path}: expected a header of columns, received a first line of {length:,} bytes"
            )
        if b'"' in content:
            file._check_quotes(layout.exact_names)
        file._check_longest()
        return dataclasses.replace(file, content=file._without_blank_end())

    @cached_property
    def _first_line(self) -> bytes:
        return self.content[: re.search(rb"[\r\n]|\Z", self.content).start()]  # type: ignore[union-attr]

    def _without_blank_end(self) -> bytes:
        """Returns the content without last lines of empty cells alone, which spreadsheets write; a
        matrix without a header keeps them, as rows without labels.
        """
        sign = self.separator.encode()
        if not re.search(rb"[a-zA-Z\x80-\xff]", self._first_line):
            return self.content
        text = self.content.rstrip(b" \r\n" + sign)
        last = self.content[len(text) :]
        return text + last[: last.find(b"\n") + 1] if b"\n" in last else self.content

    @cached_property
    def _spaced(self) -> bool:
        """Whether a space follows every separator: then it is none of the cells'."""
        sign = re.escape(self.separator.encode())
        return bool(
            sign != b"\\ "
            and re.search(sign + rb" ", self._first_line)
            and not re.search(sign + rb"[^ \r\n]", self.content)
        )

    def _lines(self, strict: bool = False, errors: str = "replace") -> Any:
        """Returns a reader of each line's cells; `errors` as for `bytes.decode`."""
        csv.field_size_limit(MOST_FIELD)
        stream = io.BytesIO(self.content)  # decoded as far as it is read
        text = io.TextIOWrapper(stream, "utf-8-sig", errors, newline="")
        return csv.reader(
            text, delimiter=self.separator, strict=strict, skipinitialspace=self._spaced
        )

    def _check_quotes(self, exact: bool) -> None:
        """Raises DataError for a quoted cell that goes on behind its quotes, or never ends; and,
        unless `exact`, for one that holds what look like rows.
        """
        lines = self._lines(strict=True)
        try:
            broken = sum(1 for _ in lines) < lines.line_num
        except csv.Error as error:
            ends = "end of data" in str(error)
            what = "none up to the end of the file" if ends else "a quote with more behind it"
            raise DataError(
                f"{self.path}: line {lines.line_num}: expected a closing quote and then the next"
                f" cell, received {what}"
            ) from None
        if broken and not exact:
            check_swallowed(self.path, self._lines, self.separator)

    def _check_longest(self) -> None:
        """Raises DataError for a row with thousands of cells that the header has not, which pandas
        would make columns of.
        """
        sign = self.separator.encode()
        most = 2 * (self.content.count(b"\n") + 1) * (self._first_line.count(sign) + 1)
        if self.content.count(sign) <= most + MANY_COLUMNS:
            return
        width = 0
        with contextlib.suppress(csv.Error):
            for number, cells in enumerate(self._lines(), 1):
                width = width or len(cells)
                if len(cells) > width + MANY_COLUMNS:
                    raise DataError(
                        f"{self.path}: line {number}: expected {width} fields, as in the header,"
                        f" received {len(cells):,}"
                    )

    def columns_of_many(self, names: Sequence[str]) -> dict[str, list[str]] | None:
        """Returns the cells of some columns where there are so many that pandas is slow, else None.

        Raises:
            DataError: a row that is longer or shorter than the header.
        """
        if not self.wide:
            return None
        places = [self.header.index(name) for name in names]
        rows = self._cells[1:]
        return {name: [row[i] for row in rows] for name, i in zip(names, places, strict=True)}

    def _check_lengths(self, width: int) -> None:
        """Raises DataError for a row that is cut off, which pandas fills with empty cells."""
        with contextlib.suppress(csv.Error):
            for number, cells in enumerate(self._lines(), 1):
                if cells and len(cells) < width:
                    raise DataError(
                        f"{self.path}: line {number}: expected {width} fields, as in the header,"
                        f" received {len(cells)}"
                    )

    @cached_property
    def has_longer_rows(self) -> bool:
        """Whether the first row has more cells than the header. Then pandas makes an index of its
        first ones, which may look like one that nobody gave, and shifts the columns; a later row
        that is longer it refuses.
        """
        with contextlib.suppress(csv.Error):
            lines = (cells for cells in self._lines() if len(cells) > 1 or "".join(cells).strip())
            width = len(next(lines, []))
            return len(next(lines, [])) > width
        return False

    def line(self, row: int, header: bool = True) -> str:
        """Returns where a row of the table is, as a spreadsheet counts: the header is line 1."""
        wanted = int(row) + header
        try:
            for number, cells in enumerate(self._lines(), 1):
                if cells and wanted == 0:  # pandas passes over lines that are empty
                    return f"line {number}"
                wanted -= bool(cells)
        except csv.Error:
            pass
        return f"line {int(row) + 1 + header}"

    def frame(self, **options: Any) -> pd.DataFrame:
        """Returns what pandas reads with these options; what is wrong with the file as a file is
        one DataError that names it.
        """
        try:
            return pd.read_csv(
                io.BytesIO(self.content),
                sep=self.separator,
                encoding="utf-8",
                skipinitialspace=self._spaced,
                **options,
            )
        except pd.errors.EmptyDataError:
            raise DataError(
                f"{self.path}: expected a header and rows, received an empty file"
            ) from None
        except pd.errors.ParserError as error:
            # Numbers like 1,5 make rows of different lengths.
            self.check_separator(self._first_line.decode("utf-8", "replace").split(self.separator))
            what = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
            raise DataError(
                f"{self.path}: expected a CSV, received one that cannot be read: {what}"
            ) from None
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.path}: expected text in UTF-8, received"
                f" {not_text(self.content) or error.reason}"
            ) from None

    @cached_property
    def wide(self) -> bool:
        """Whether there are so many columns that pandas, which works by columns, is slow."""
        return self._first_line.count(self.separator.encode()) > MANY_COLUMNS

    @cached_property
    def _cells(self) -> list[list[str]]:
        """The cells of all lines that are not empty."""
        try:
            cells = [line for line in self._lines(errors="strict") if line]
        except (UnicodeDecodeError, csv.Error) as error:
            what = not_text(self.content) or error
            raise DataError(f"{self.path}: expected a CSV in UTF-8, received {what}") from None
        for row, line in enumerate(cells):
            if len(line) != len(cells[0]):
                raise DataError(
                    f"{self.path}: {self.line(row, header=False)}: expected {len(cells[0])} fields,"
                    f" as in the header, received {len(line)}"
                )
        return cells

    @cached_property
    def header(self) -> list[str]:
        """The first line's cells without surrounding spaces."""
        if self.wide:
            return [name.strip() for name in self._cells[0]]
        line = self.frame(header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
        return [str(name) for name in line.str.strip()]

    def check_separator(self, columns: Sequence[str] | None = None) -> None:
        """Raises DataError when a header looks like columns that another sign separates."""
        check_commas(self.path, self.header if columns is None else columns, self.separator)

    def check_header(self) -> None:
        """Raises DataError for a name that is there twice, which pandas would rename."""
        check_no_twins(self.path, self.header)

    def table(self, **options: Any) -> pd.DataFrame:
        """Returns a frame whose cells are text unless `options` say otherwise; headers lose
        surrounding spaces.

        Raises:
            DataError: no UTF-8, no rows, rows longer than the header, or a column that is there
                twice or has no name.
        """
        if "header" not in options:
            self.check_header()
        if self.wide:
            start = int("header" not in options)
            cells = np.array(self._cells[start:], dtype=object).reshape(-1, len(self._cells[0]))
            frame = pd.DataFrame(cells, columns=self.header if start else None, dtype=object)
        else:
            frame = self.frame(**{"dtype": str, "keep_default_na": False, **options})
        frame.columns = [str(column).strip() for column in frame.columns]
        if self.wide:  # as pandas calls those without a name
            named = enumerate(frame.columns)
            frame.columns = [name or f"Unnamed: {place}" for place, name in named]
        if "dtype" not in options and not self.wide and (frame.iloc[:, -1] == "").any():
            self._check_lengths(len(frame.columns))
        nameless = [name for name in frame.columns if re.fullmatch(r"Unnamed: \d+", name)]
        blank = [name for name in nameless if _is_blank(frame[name])]  # a spreadsheet's
        frame, nameless = frame.drop(columns=blank), [n for n in nameless if n not in blank]
        if nameless:  # a row index that a frame was saved with, most likely
            raise DataError(
                f"{self.path}: expected a name for each column, received an empty header for column"
                f" {int(nameless[0].split()[1]) + 1} (a frame's row index? save it with"
                " index=False, or take the column out)"
            )
        if "header" not in options and self.has_longer_rows:
            self.check_separator(frame.columns.tolist())
            raise DataError(
                f"{self.path}: {self.line(0)}: expected {len(frame.columns)} fields in each row, as"
                " in the header, received more"
            )
        if not len(frame):
            raise DataError(
                f"{self.path}: expected at least one row below the header, received none"
            )
        return frame


def _is_blank(column: pd.Series) -> bool:
    """Whether all of a column's cells are empty."""
    return bool((column.isna() | (column.astype(str).str.strip() == "")).all())


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """Returns `CsvFile.table` of a file, its numbers as such and cells like `NA` as missing."""
    return CsvFile.open(path).table(**{"dtype": None, "keep_default_na": True, **options})
