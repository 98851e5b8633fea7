"""Tables as columns of text: CSV and TSV by parts, Parquet, and flat records of JSON.

The same reader serves files that fit into memory and files that are read by parts.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import itertools
import json
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from neucrowd_tf.declare.types import Fields, Indices, Records, Texts
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.checks import broken, error, install
from neucrowd_tf.io.files.reading import (
    LONGEST_SIGN,
    UNPACK,
    UTF16,
    ZIP,
    check_regular,
    ending,
    open_text,
)
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import Name

SIGNS = ("\t", ",", ";", "|")
PARQUET = (".parquet", ".pq")
HEAD = 10_000  # rows from which roles of columns are decided if a file is read by parts
BLOCK = 1 << 16  # rows that are read at a time
LARGE = 1 << 22  # bytes of a CSV from which Arrow reads it
ROW_BYTES = 16  # of a short row of a CSV, which bounds their number
LONGEST_LINE = 1 << 26  # characters of a header, or of a cell
MOST_COMMENTS = 1000  # lines before a header
CLASS_LABEL = "ClassLabel"  # the type of Hugging Face's labels that are codes of names
JOINT = ","  # between the cells of several columns that are joined
Column = list[str] | tuple[list[str], Any]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table, or a part of one.

    Attributes:
        path: the file.
        columns: the columns' names.
        cells: each column, as a list of texts ("" if it is missing), or as the different texts and
            the code of each row.
        lines: the line of each row in the file, or None if rows have numbers only.
        header: whether the names stand in the file.
        wrong: the error of the first row of a wrong length, if rows were left out for it.
    """

    path: Path
    columns: tuple[str, ...]
    cells: Sequence[Column]
    lines: Sequence[int] | None = None
    header: bool = True
    wrong: DataError | None = None
    _codes: dict[str, tuple[list[str], Any]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __len__(self) -> int:
        for cells in self.cells:
            return len(cells[1] if isinstance(cells, tuple) else cells)
        return 0

    def _cells(self, column: str) -> Column:
        return self.cells[self.columns.index(column)]

    def __getitem__(self, column: str) -> list[str]:
        cells = self._cells(column)
        if isinstance(cells, tuple):
            return list(np.array(cells[0], dtype=object)[cells[1]])
        return cells

    def cells_by_row(self, columns: Texts) -> Iterator[tuple[str, ...]]:
        """Returns the cells of some columns, row by row."""
        return zip(*map(self.__getitem__, columns), strict=True)

    def joined(self, columns: Texts) -> list[str]:
        """Returns the cells of a column, or of several joined by commas ("" if one is empty).

        Raises:
            DataError: different cells that would be joined to one text.
        """
        if len(columns) == 1:
            return self[columns[0]]
        rows = list(self.cells_by_row(columns))
        texts = [JOINT.join(row) * all(row) for row in rows]
        first: dict[str, tuple[str, ...]] = {}
        for at, (text, row) in enumerate(zip(texts, rows, strict=True)):
            if text.count(JOINT) >= len(row) and first.setdefault(text, row) != row:
                problem = f"columns {', '.join(columns)}: {first[text]} and {row} are both {text!r}"
                raise broken(self.path, f"{problem}; write them without commas", self.place(at))
        return texts

    def only(self, columns: Texts) -> Table:
        """Returns the table with these columns, each once."""
        names = tuple(dict.fromkeys(columns))
        cells = list(map(self._cells, names))
        return dataclasses.replace(self, columns=names, cells=cells)

    def rows(self, rows: Sequence[int]) -> Table:
        """Returns the table with these rows."""
        cells: list[Column] = []
        for column in self.cells:
            if isinstance(column, tuple):
                cells.append((column[0], column[1][rows]))
            else:
                cells.append(list(map(column.__getitem__, rows)))
        lines = self.lines
        if lines is not None:
            lines = list(map(lines.__getitem__, rows))
        return dataclasses.replace(self, cells=cells, lines=lines)

    def start(self, rows: int) -> Table:
        """Returns the first rows."""
        if len(self) <= rows:
            return self
        return self.rows(range(rows))

    def without_header(self) -> Table:
        """Returns the table with the header as the first row, and columns numbered from 1."""
        cells = [[name, *self[name]] for name in self.columns]
        return Table(self.path, numbers_from_1(len(cells)), cells, header=False)

    def place(self, row: int) -> str:
        """Returns where row i (from 0) is: "line 3"."""
        if self.lines is None:
            return f"row {row + 1}"
        return f"line {self.lines[row]}"

    def codes(self, column: str) -> tuple[list[str], Any]:
        """Returns the different texts of a column in order, and the code of each row."""
        if column not in self._codes:
            cells = self._cells(column)
            if isinstance(cells, tuple):
                self._codes[column] = cells
            else:
                self._codes[column] = encode(cells)
        return self._codes[column]

    def coded(self, columns: Texts) -> tuple[list[str], Any]:
        """Returns `codes` of a column, or of several that are joined."""
        if len(columns) == 1:
            return self.codes(columns[0])
        return encode(self.joined(columns))

    def within(self, keys: Indices, column: str) -> Indices:
        """Returns a code for each row's key and text in a column, in the order of the keys."""
        texts, codes = self.codes(column)
        return keys * len(texts) + codes

    def distinct(self, column: str) -> list[str]:
        """Returns the different texts of a column that are not empty."""
        return list(filter(None, self.codes(column)[0]))

    def size(self, column: str) -> int:
        """Returns how many different texts a column has that are not empty."""
        texts, _ = self.codes(column)
        return len(texts) - texts.count("")

    def is_unique(self, columns: Texts) -> bool:
        """Whether every row has another text in a column, or in several that are joined."""
        return len(set(self.joined(columns))) == len(self)


def separator_of(path: Path, line: str, options: TableOptions) -> str:
    """Returns the sign between columns: the flag's, a tab for .tsv, or the header's most frequent.

    Blanks separate only if none of the other signs is in the first line.
    """
    if options.separator is not None:
        return options.separator
    if ending(path) in (".tsv", ".tab"):
        return "\t"
    bare = re.sub(r'"[^"]*"', "", line)
    best = max(SIGNS, key=bare.count)
    if best in bare:
        return best
    if " " in bare.strip():
        return " "
    return ","


def encode(texts: Iterable[Name]) -> tuple[list[Name], Indices]:
    """Returns the distinct texts in order of appearance, and the code of each text among them."""
    # A text that is not in the dictionary gets the next number.
    index: defaultdict[Name, int] = defaultdict(itertools.count().__next__)
    codes = np.fromiter(map(index.__getitem__, texts), dtype=np.int64)
    return list(index), codes


def numbers_from_1(size: int) -> tuple[str, ...]:
    """Returns the names of columns that have none."""
    return tuple(map(str, range(1, size + 1)))


def column_names(cells: Texts) -> tuple[str, ...]:
    """Returns the names of a header; a column without one is called by its place."""
    return tuple(cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1))


def csv_parts(path: Path, options: TableOptions, rows: int = BLOCK) -> Iterator[Table]:
    """Yields the rows of a CSV as tables of at most `rows` rows.

    Rows may lack trailing columns that are empty in every row; of others, and of longer rows,
    `Table.wrong` has the error. The first part is yielded even if there are no rows.

    Raises:
        DataError: what is not a table, with its line.
    """
    csv.field_size_limit(LONGEST_LINE)
    with open_text(path) as stream:
        yield from _Parts(path, options, stream).read(rows)


class _Parts:
    """Reads rows and checks their lengths."""

    def __init__(self, path: Path, options: TableOptions, stream: TextIO) -> None:
        first = stream.readline(LONGEST_LINE)
        if "\0" in first:
            raise broken(path, "this is not a text", "line 1")
        if re.fullmatch(r'"?sep=."?[\s,;|]*', first, re.IGNORECASE):
            raise broken(path, f"{first.strip()!r} is a line of Excel's; remove it", "line 1")
        if options.header == "first" and re.match(r'\s*[\[{]\s*["{\[]', first):
            raise broken(path, "this is JSON, not a table; write it as CSV", "line 1")
        lines = [first]
        while _precedes_header(lines[-1]) and len(lines) < MOST_COMMENTS:
            lines.append(stream.readline(LONGEST_LINE))
        filled = list(filter(str.strip, lines)) or [first]
        _check_comments(path, filled, options)
        self.path = path
        self.separator = separator_of(path, filled[0], options)
        self.reader = csv.reader(
            itertools.chain(lines, stream),
            delimiter=self.separator,
            strict=True,
            skipinitialspace=self.separator == " " or is_spaced(filled[0], self.separator),
        )
        self.named = options.header == "first"
        self.columns: tuple[str, ...] = ()
        self.shortest: tuple[int, int] | None = None  # cells of the shortest row, and its line
        self.filled = 0  # columns up to the last that has a text
        self.wrong: DataError | None = None

    def read(self, rows: int) -> Iterator[Table]:
        """Yields the parts."""
        block: list[list[str]] = []
        line = 0
        try:
            first = next(filter(_has_text, self.reader), None)
            if first is None:
                raise error("no_labels", self.path, problem="; the file is empty")
            self._begin(first)
            if not self.named:
                block = [first]
            line = self.reader.line_num - len(block)
            while True:
                block.extend(itertools.islice(self.reader, rows - len(block)))
                yield self._part(block, line)
                if len(block) < rows:
                    return
                block = []
                line = self.reader.line_num
        except csv.Error as bad:
            place = f"line {self.reader.line_num}"
            begin = line + sum(map(_height, block)) + 1
            if begin < self.reader.line_num:
                place = f"lines {begin} to {self.reader.line_num}"
            raise broken(self.path, f"this is not a row of a table ({bad})", place) from None

    def _begin(self, first: list[str]) -> None:
        """Sets the columns' names."""
        names = column_names(first)
        if not self.named:
            self.columns = numbers_from_1(len(names))
            return
        for place, name in enumerate(names):
            if name in names[:place]:
                raise error("column_twice", self.path, "line 1", column=name)
        self.columns = names

    def _part(self, block: list[list[str]], before: int) -> Table:
        """Returns rows as a table; `before` is the number of the line before the first."""
        lines: Sequence[int] = range(before + 1, before + len(block) + 1)
        if self.reader.line_num != before + len(block):
            lines = list(itertools.accumulate(map(_height, block), initial=before + 1))
            self._check_quotes(block, lines)
        width = len(self.columns)
        if set(map(len, block)) - {width} or not all(map(operator.itemgetter(0), block)):
            filled = []
            of_filled = []
            for row, line in zip(block, lines, strict=False):  # lines may have one more
                if _has_text(row):
                    self._check_length(len(row), line)
                    if len(row) <= width:
                        filled.append(row + [""] * (width - len(row)))
                        of_filled.append(line)
            block = filled
            lines = of_filled
        cells = list(map(list, zip(*block, strict=True))) or [[] for _ in self.columns]
        for at, column in enumerate(cells, 1):
            if any(column):
                self.filled = max(self.filled, at)
        if self.shortest is not None and self.shortest[0] < self.filled:
            self.wrong = self.wrong or self._wrong_length(*self.shortest)
        return Table(self.path, self.columns, cells, lines, self.named, self.wrong)

    def _check_quotes(self, block: list[list[str]], lines: Sequence[int]) -> None:
        """Raises DataError for a cell with line breaks that takes in rows of the table.

        A line in a cell is a row, or the last one its beginning, if it has as many cells, and two
        of them (one of two) stand in their columns elsewhere too.
        """
        width = len(self.columns)
        seen: list[set[str]] = []
        for row, line in zip(block, lines, strict=False):
            for column, cell in enumerate(row):
                if "\n" not in cell and "\r" not in cell:
                    continue
                texts = cell.replace("\r\n", "\n").replace("\r", "\n").split("\n")
                for at, text in enumerate(texts):
                    cells = text.split(self.separator)
                    size = width if at < len(texts) - 1 else column + 1
                    if size == 1 or len(cells) != size:
                        continue
                    if not seen:
                        whole = [other for other in block if len(other) == width]
                        seen = [{*texts} - {""} for texts in zip(*whole, strict=True)]
                    if sum(map(set.__contains__, seen, cells)) >= min(2, size - 1):
                        problem = f"a quotation mark opens a cell with the row of line {line + at}"
                        advice = "remove the mark, or quote its cell and write the mark twice"
                        raise broken(self.path, f"{problem}; {advice}", f"line {line}")

    def _check_length(self, cells: int, line: int) -> None:
        if cells > len(self.columns):
            self.wrong = self.wrong or self._wrong_length(cells, line)
        if self.shortest is None or cells < self.shortest[0]:
            self.shortest = (cells, line)

    def _wrong_length(self, cells: int, line: int) -> DataError:
        sign = {"\t": "a tab", " ": "a space"}.get(self.separator, repr(self.separator))
        details = {"cells": cells, "columns": len(self.columns), "separator": f" ({sign})"}
        return error("row_length", self.path, f"line {line}", **details)


def _precedes_header(line: str) -> bool:
    """Whether a line is blank or a comment, so that the header follows; "" is the file's end."""
    return line.startswith("#") or (line.isspace() and line != "")


def is_spaced(line: str, separator: str) -> bool:
    """Whether a space follows each separator in a line: they then belong to no cell."""
    return 0 < line.count(separator) == line.count(f"{separator} ")


def _check_comments(path: Path, lines: Texts, options: TableOptions) -> None:
    """Raises DataError if the lines before the header begin with #.

    A header that begins with # has as many cells as the line that follows.
    """
    if len(lines) < 2 or lines[-1].startswith("#") or not lines[-1].strip():
        return
    sign = separator_of(path, lines[-1], options)
    if lines[-1].count(sign) == lines[-2].count(sign) > 0:
        lines = lines[:-1]
    if (count := len(lines) - 1) > 0:
        if count == 1:
            place = "line 1"
        else:
            place = f"lines 1 to {count}"
        raise broken(path, "these are comments, which begin with #; remove them", place)


def _height(row: list[str]) -> int:
    """Returns how many lines of the file a row takes."""
    text = ",".join(row)
    return 1 + text.count("\n") + text.count("\r") - text.count("\r\n")


def _has_text(row: list[str]) -> bool:
    return any(map(str.strip, row))


def check_header_again(table: Table) -> None:
    """Raises DataError for a row that is the header again."""
    if not table.header or len(table.columns) == 1:
        return
    again = np.ones(len(table), dtype=bool)
    for name in table.columns:
        texts, codes = table.codes(name)
        same = [at for at, text in enumerate(texts) if name in text and text.strip() == name]
        if not same or not (again := again & np.isin(codes, same)).any():
            return
    raise error("header_again", table.path, table.place(int(np.flatnonzero(again)[0])))


def head_of(path: Path, options: TableOptions, rows: int = HEAD) -> Table:
    """Returns the first rows of a CSV or Parquet file.

    Raises:
        DataError: a file that is neither.
    """
    if ending(path) not in PARQUET:
        return next(csv_parts(path, options, rows))
    with parquet_file(path) as file:
        table = file.schema_arrow.empty_table()
        first = itertools.islice(file.iter_batches(rows), 1)
        return _of_arrow(path, table.from_batches(first, file.schema_arrow))


def arrow_batches(
    path: Path,
    columns: Texts,
    options: TableOptions,
    *,
    groups: Sequence[int] | None = None,
    plain: bool = True,
) -> Iterator[Any]:
    """Yields columns of a CSV or Parquet file as Arrow's record batches.

    Args:
        path: the file.
        columns: the columns' names.
        options: how a CSV is written.
        groups: row groups of a Parquet file; None for all.
        plain: whether a CSV without quotation marks is left to Arrow, which reads ten times as
            fast as `csv_parts` but does not say what is wrong in which line.

    Raises:
        DataError: what is not such a file.
        ArrowInvalid: a CSV whose rows Arrow does not take; `csv_parts` says what is wrong.
    """
    import pyarrow as pa

    if ending(path) in PARQUET:
        with parquet_file(path) as file:
            use = None if groups is None else list(groups)
            yield from file.iter_batches(1 << 18, use, list(columns), use_threads=False)
    elif plain and is_plain(path, options):
        head = next(csv_parts(path, options, 1))
        yield from _open_plain(head, columns, options, pa.string())
    else:
        for piece in csv_parts(path, options):
            if piece.wrong is not None:
                raise piece.wrong
            check_header_again(piece)
            texts = [pa.array(piece[name], pa.string()) for name in columns]
            yield pa.record_batch(texts, names=list(columns))


def _open_plain(head: Table, columns: Texts, options: TableOptions, kind: Any) -> Any:
    """Opens a plain CSV with the columns of `head` as a stream of Arrow's batches of a type."""
    import pyarrow.csv as pa_csv

    with head.path.open(encoding="utf-8-sig") as stream:
        separator = separator_of(head.path, stream.readline(LONGEST_LINE), options)
    types = dict.fromkeys(columns, kind)
    skipped = int(head.header)
    reading = pa_csv.ReadOptions(
        use_threads=False, block_size=LARGE, column_names=head.columns, skip_rows=skipped
    )
    parsing = pa_csv.ParseOptions(delimiter=separator, quote_char=False)
    converting = pa_csv.ConvertOptions(column_types=types, include_columns=list(columns))
    return pa_csv.open_csv(head.path, reading, parsing, converting)


def _arrow_table(path: Path, options: TableOptions) -> Table | None:
    """Reads a large plain CSV with Arrow; None for one that has to be looked at row by row."""
    if path.stat().st_size < LARGE or not is_plain(path, options):
        return None
    try:
        import pyarrow as pa
    except ImportError:  # not installed, or too little memory for it
        return None
    try:
        head = next(csv_parts(path, options, 1000))
        kind = pa.dictionary(pa.int32(), pa.string())
        arrow = _open_plain(head, head.columns, options, kind).read_all().unify_dictionaries()
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError, DataError):
        return None
    cells = list(map(_values_and_codes, arrow.columns))
    if "" in cells[0][0]:
        return None
    first = 1 + int(head.header)
    end = first + arrow.num_rows
    del arrow
    pa.default_memory_pool().release_unused()  # it would keep more than the table takes
    return Table(path, head.columns, cells, range(first, end), head.header)


def _values_and_codes(column: Any) -> tuple[list[Any], Indices]:
    """Returns the different values of a column that Arrow has coded, and the code of each row."""
    codes = []
    for chunk in column.chunks:  # whose `to_numpy` would import pandas
        codes.append(np.from_dlpack(chunk.indices))
    return column.chunk(0).dictionary.to_pylist(), np.concatenate(codes).astype(np.int64)


def is_plain(path: Path, options: TableOptions) -> bool:
    """Whether a file is neither packed nor UTF-16, and has no quotation mark or blank line.

    A header with a space behind each separator is not plain either.
    """
    with path.open("rb") as stream:
        block = stream.read(LONGEST_SIGN)
        if block.startswith((*UNPACK, ZIP, *UTF16)):
            return False
        block += stream.readline(LONGEST_LINE)
        line = block.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].decode(errors="replace")
        separator = separator_of(path, line, options)
        if not line.replace(separator, "").strip() or is_spaced(line, separator):
            return False
        while block:
            if b'"' in block or b"\r" in block or b"\n\n" in block or b"\0" in block:
                return False
            block = stream.read(1 << 22)
    return True


def rows_about(path: Path) -> int:
    """Returns about how many rows a table has: of a text, by its size."""
    if ending(path) in PARQUET:
        with parquet_file(path) as file:
            return int(file.metadata.num_rows)
    return path.stat().st_size // ROW_BYTES


def parquet_file(path: Path) -> Any:
    """Opens a Parquet file.

    Raises:
        DataError: a damaged file, or two columns of one name.
    """
    check_regular(path, folders=False)
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        how = install("parquet")
        raise UsageError(f"{path}: Parquet needs pyarrow. {how}") from None
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowInvalid, OSError) as bad:
        raise broken(path, f"this is not a Parquet file ({bad})") from None
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise error("column_twice", path, column=max(names, key=names.count))
    return file


def open_parquet(path: Path) -> Any:
    """Reads a Parquet file as a `pyarrow.Table`.

    Raises:
        DataError: a damaged file, another one, or a column's name that occurs twice.
        UsageError: pyarrow is not installed.
    """
    with parquet_file(path) as file:
        try:
            return file.read(use_threads=False)
        except OSError as bad:
            raise broken(path, f"the Parquet file is damaged ({bad})") from None


def first_record(path: Path) -> Fields | None:
    """Returns the first row of a Parquet file with lists, objects or names of classes; or None."""
    with parquet_file(path) as file:
        schema = file.schema_arrow
        nested = any(field.type.num_fields for field in schema)
        if not nested and not _features(schema):
            return None
        batch = next(file.iter_batches(1), None)
    if batch is None:
        return {}
    return _named(batch.to_pylist()[0], _features(schema))


def parquet_records(path: Path) -> Records:
    """Yields the place and each row of a Parquet file as JSON would have it."""
    table = open_parquet(path)
    features = _features(table.schema)
    row = 0
    for batch in table.to_batches(BLOCK):
        for record in batch.to_pylist():
            row += 1
            yield f"row {row}", _named(record, features)


def _features(schema: Any) -> Fields:
    """Returns Hugging Face's features, {} if none of them has names of classes."""
    text = (schema.metadata or {}).get(b"huggingface", b"{}").decode()
    if CLASS_LABEL in text:
        features = json.loads(text).get("info", {}).get("features")
        if isinstance(features, dict):
            return features
    return {}


def _named(value: Any, feature: Any) -> Any:
    """Returns a value with the names of its classes; -1 is a missing one."""
    if isinstance(feature, list):
        feature = {"feature": feature[0]}
    if not isinstance(feature, dict):
        return value
    if feature.get("_type") == CLASS_LABEL and isinstance(value, int):
        if 0 <= value < len(feature["names"]):
            return feature["names"][value]
        return None
    within = feature.get("feature")
    if isinstance(value, list):
        return [_named(entry, within) for entry in value]
    if isinstance(value, dict):
        if not isinstance(within, dict):
            within = feature
        return {key: _named(entry, _listed(within.get(key), entry)) for key, entry in value.items()}
    return value


def _listed(feature: Any, value: Any) -> Any:
    """Returns the feature of a list: in a list of objects Hugging Face names that of an entry."""
    plain = isinstance(feature, dict) and "feature" not in feature
    if isinstance(value, list) and plain:
        return {"feature": feature}
    return feature


def _of_arrow(path: Path, table: Any) -> Table:
    """Returns a table of Arrow's as text; whole numbers lose no digit, NULL becomes ""."""
    names = map(str.strip, table.column_names)
    return Table(path, tuple(names), list(map(_cells_of_arrow, table.columns)))


def _cells_of_arrow(column: Any) -> Column:
    """Returns a column of Arrow's as cells; whole numbers and texts as codes, for their speed."""
    import pyarrow as pa

    kind = column.type
    if not (
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    ):
        return texts_of_arrow(column)
    coded = column.dictionary_encode(null_encoding="encode").unify_dictionaries()
    if not coded.num_chunks:
        return []
    values, codes = _values_and_codes(coded)
    texts = list(map(cell_text, values))
    if len({*texts}) == len(texts):
        return texts, codes
    names, codes_of = encode(texts)  # "" and NULL
    return names, codes_of[codes]


def texts_of_arrow(column: Any) -> list[str]:
    """Returns values of Arrow's as cells; those of 32 bits keep their own digits."""
    if str(column.type) == "float":
        return list(map(cell_text, column.to_numpy(zero_copy_only=False)))
    return list(map(cell_text, column.to_pylist()))


def cell_text(value: Any) -> str:
    """Returns a value of JSON or Parquet as a cell: "" for None and NaN, 3 for 3.0.

    Others are as pandas writes them to a CSV, so that both files of one frame have the same cells.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)) and value.is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def count_of(cell: str) -> int | None:
    """Returns a number of votes, 0 for an empty cell, None for another text."""
    if re.fullmatch(r"\s*(\d{1,9}(\.0)?)?\s*", cell):
        return int(float(cell.strip() or 0))
    return None


def as_records(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[Fields]:
    """Returns rows of values as records with names."""
    return [dict(zip(names, row, strict=False)) for row in rows]


def table_of_records(path: Path, records: Sequence[Fields]) -> Table:
    """Returns flat records of JSON as a table; see `cell_text`."""
    columns = dict.fromkeys(map(str, itertools.chain.from_iterable(records)))
    cells: list[Column] = []
    for column in columns:
        cells.append([cell_text(record.get(column)) for record in records])
    return Table(path, tuple(columns), cells)


def read_table(path: Path, options: TableOptions, *, strict: bool = True) -> Table:
    """Reads a CSV, TSV or Parquet file whole.

    Args:
        path: the file.
        options: how it is written.
        strict: whether a row of a wrong length, or the header as a row, is an error at once.

    Raises:
        DataError: what is not a table.
    """
    if ending(path) in PARQUET:
        return _of_arrow(path, open_parquet(path))
    table = _arrow_table(path, options) or next(csv_parts(path, options, sys.maxsize))
    if strict:
        if table.wrong is not None:
            raise table.wrong
        check_header_again(table)
    return table
