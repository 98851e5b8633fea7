"""CSVs as tables: each file is opened once, and an error names the file, the row and the column."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import difflib
import io
import re
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files import not_text, read_bytes
from neucrowd_tf.io.ids import as_name_array
from neucrowd_tf.io.quotes import check_swallowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIASES: dict[str, tuple[str, ...]] = {
    "task": ("task", "question", "taskId", "task_id", "instance", "item", "id"),
    "worker": ("worker", "annotator", "performer", "workerId", "worker_id", "annotator_id"),
    "label": ("label", "answer", "class", "response"),
}
LONGEST_HEADER = 1 << 21
MOST_FIELD = 1 << 30
MANY_COLUMNS = 2000
SAMPLE = 1 << 16  # bytes that say what separates the columns
MOST_NAMES = 500  # that are looked through for one that comes close
_TWICE = re.compile(r"\.[1-9]\d*$")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclasses.dataclass(frozen=True)
class TableFormat:
    """How a user's tables are written.

    Attributes:
        separator: the sign between columns; None for commas or tabs, see `separator_of`.
        task, worker, label: the columns' names; None for those of `ALIASES`.
        missing: the texts that stand for a label that is missing, beside an empty cell; None where
            the user did not say: then what often does is refused.
        classes: all classes, where the user names them.
        exact_names: whether names that differ in case, spaces or how a number is spelt only are
            different ones, rather than refused.
        ignored: columns of features that are left out.
        question: which question's answers, where an annotation tool's export has several.
        first: whether the first of several choices in an export's answer is taken.
    """

    separator: str | None = None
    task: str | None = None
    worker: str | None = None
    label: str | None = None
    missing: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    exact_names: bool = False
    ignored: tuple[str, ...] = ()
    question: str | None = None
    first: bool = False

    @classmethod
    def of(
        cls,
        *,
        separator: str | None = None,
        task_column: str | None = None,
        worker_column: str | None = None,
        label_column: str | None = None,
        missing: str | None = None,
        classes: str | None = None,
        exact_names: bool = False,
        ignore_columns: str | None = None,
        question: str | None = None,
        first: bool = False,
    ) -> TableFormat:
        """Returns the format that flags of these names say; lists are separated by commas.

        Raises:
            UsageError: a separator of several signs, or classes that are not all different.
        """
        sign = None if separator is None else {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if sign is not None and (len(sign) != 1 or sign in '\n\r"' or not sign.isascii()):
            raise UsageError(
                f"--separator: expected one sign of ASCII, or tab, received {separator!r}"
            )
        columns = [name for name in (task_column, worker_column, label_column) if name is not None]
        if len({name.strip().lower() for name in columns}) < len(columns) or "" in columns:
            raise UsageError(
                "--task_column, --worker_column, --label_column: expected different columns,"
                f" received {', '.join(map(repr, columns))}"
            )
        names = () if classes is None else tuple(name.strip() for name in classes.split(","))
        if len(set(names)) != len(names) or "" in names:
            raise UsageError(
                f"--classes: expected different names separated by commas, received {classes!r}"
            )
        listed = None if missing is None else tuple(text.strip() for text in missing.split(","))
        ignored = tuple(name.strip() for name in (ignore_columns or "").split(",") if name.strip())
        return cls(
            separator=sign,
            task=task_column,
            worker=worker_column,
            label=label_column,
            missing=listed,
            classes=names,
            exact_names=exact_names,
            ignored=ignored,
            question=question,
            first=first,
        )

    def roles(self, columns: Sequence[str]) -> dict[str, str]:
        """Returns, for task, worker and label, the column that plays this role, where there is
        one; the first alias that is there counts.
        """
        found: dict[str, str] = {}
        folded = {str(name).strip().lower(): name for name in reversed(columns)}
        for role, aliases in ALIASES.items():
            named = getattr(self, role)
            for name in aliases if named is None else (named,):
                hit = name if name in columns else folded.get(str(name).lower())
                if hit is not None and hit not in found.values():
                    found[role] = hit
                    break
        return found

    def require(self, source: str | Path, columns: Sequence[str], *wanted: str) -> list[str]:
        """Returns the columns of the roles `wanted`.

        Raises:
            DataError: one that is not there, with the closest name that is.
        """
        found = self.roles(columns)
        for role in wanted:
            if role not in found:
                name = getattr(self, role) or role
                way = f"; --{role}_column says what it is called" if name == role else ""
                require_columns(source, columns, [name], way)
                raise DataError(
                    f"{source}: expected a column of {role}s beside the others, received"
                    f" {name!r} for two of them (--{role}_column says which)"
                )
            if getattr(self, role) is None and (others := _also(role, found, columns)):
                warnings.warn(
                    f"{source}: columns {found[role]!r} and {others[0]!r} are both named as a"
                    f" {role}'s; {found[role]!r} is taken, --{role}_column says which",
                    stacklevel=3,
                )
        return [found[role] for role in wanted]


def _also(role: str, found: dict[str, str], columns: Sequence[str]) -> list[str]:
    """Returns further columns that are named as a role's, also as pandas names a second one of a
    name (`label.1`); a bare `id` is many things.
    """
    folded = {alias.lower() for alias in ALIASES[role]} - {"id"}
    rest = [name for name in columns if name not in found.values()]
    return [name for name in rest if _TWICE.sub("", str(name).strip().lower()) in folded]


PLAIN = TableFormat()
# For files that this project wrote: every name is what it says.
EXACT = TableFormat(missing=(), exact_names=True)


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
                or NUL bytes.
        """
        content = read_bytes(path, "a CSV file")
        if b"\0" in content:
            raise DataError(f"{path}: expected text in UTF-8, received {not_text(content)}")
        # pandas passes over the first separator behind a lone CR at the beginning of a line.
        content = re.sub(rb"\n\r(?!\n)", b"\n\n", content)
        first = content.partition(b"\n")[0]
        if len(first) > LONGEST_HEADER:
            raise DataError(
                f"{path}: expected a header of columns, received a first line of"
                f" {len(first):,} bytes"
            )
        file = cls(Path(path), content, layout.separator or separator_of(content[:SAMPLE]))
        if b'"' in content:
            file._check_quotes(layout.exact_names)
        file._check_longest(first)
        return dataclasses.replace(file, content=file._without_blank_end())

    def _without_blank_end(self) -> bytes:
        """Returns the content without last lines of empty cells alone, which spreadsheets write; a
        matrix without a header keeps them, as rows without labels.
        """
        sign = self.separator.encode()
        if not re.search(rb"[a-zA-Z\x80-\xff]", self.content.partition(b"\n")[0]):
            return self.content
        text = self.content.rstrip(b" \r\n" + sign)
        last = self.content[len(text) :]
        return text + last[: last.find(b"\n") + 1] if b"\n" in last else self.content

    @cached_property
    def _spaced(self) -> bool:
        """Whether a space follows every separator: then it is none of the cells'."""
        sign = re.escape(self.separator.encode())
        first = self.content.partition(b"\n")[0]
        return bool(
            sign != b"\\ "
            and re.search(sign + rb" ", first)
            and not re.search(sign + rb"[^ \r\n]", self.content)
        )

    def _lines(self, strict: bool = False) -> Any:
        """Returns a reader of each line's cells."""
        csv.field_size_limit(MOST_FIELD)
        text = io.StringIO(self.content.decode("utf-8-sig", "replace"), newline="")
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

    def _check_longest(self, first: bytes) -> None:
        """Raises DataError for a row with thousands of cells that the header has not, which pandas
        would make columns of.
        """
        sign = self.separator.encode()
        most = 2 * (self.content.count(b"\n") + 1) * (first.count(sign) + 1)
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
        if not self._wide:
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
            line = self.content.partition(b"\n")[0].decode("utf-8", "replace")
            self.check_separator(line.split(self.separator))
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
    def _wide(self) -> bool:
        """Whether there are so many columns that pandas, which works by columns, is slow."""
        return self.content.partition(b"\n")[0].count(self.separator.encode()) > MANY_COLUMNS

    @cached_property
    def _cells(self) -> list[list[str]]:
        """The cells of all lines that are not empty."""
        try:
            text = self.content.decode("utf-8-sig")
            csv.field_size_limit(MOST_FIELD)
            lines = csv.reader(
                io.StringIO(text, newline=""),
                delimiter=self.separator,
                skipinitialspace=self._spaced,
            )
            cells = [line for line in lines if line]
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
        if self._wide:
            return [name.strip() for name in self._cells[0]]
        line = self.frame(header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
        return [str(name) for name in line.str.strip()]

    def check_separator(self, columns: Sequence[str] | None = None) -> None:
        """Raises DataError when a header looks like columns that another sign separates."""
        check_commas(self.path, self.header if columns is None else columns, self.separator)

    def check_header(self) -> None:
        """Raises DataError for a name that is there twice, which pandas would rename."""
        names = pd.Series(self.header)
        twice = names[names.duplicated() & (names != "")].tolist()
        if twice:
            raise DataError(f"{self.path}: expected each column once, received {twice[0]!r} again")

    def table(self, **options: Any) -> pd.DataFrame:
        """Returns a frame whose cells are text unless `options` say otherwise; headers lose
        surrounding spaces.

        Raises:
            DataError: no UTF-8, no rows, rows longer than the header, or a column that is there
                twice or has no name.
        """
        if "header" not in options:
            self.check_header()
        if self._wide:
            start = int("header" not in options)
            cells = np.array(self._cells[start:], dtype=object).reshape(-1, len(self._cells[0]))
            frame = pd.DataFrame(cells, columns=self.header if start else None, dtype=object)
        else:
            frame = self.frame(**{"dtype": str, "keep_default_na": False, **options})
        frame.columns = [str(column).strip() for column in frame.columns]
        if self._wide and "" in frame.columns:
            where = frame.columns.tolist().index("")
            frame.columns = [
                *frame.columns[:where],
                f"Unnamed: {where}",
                *frame.columns[where + 1 :],
            ]
        if "dtype" not in options and not self._wide and (frame.iloc[:, -1] == "").any():
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
        if not isinstance(frame.index, pd.RangeIndex):
            self.check_separator(frame.columns.tolist())
            raise DataError(
                f"{self.path}: expected {len(frame.columns)} fields in each row, as in the header,"
                " received more"
            )
        if not len(frame):
            raise DataError(
                f"{self.path}: expected at least one row below the header, received none"
            )
        return frame


def _is_blank(column: pd.Series) -> bool:
    """Whether all of a column's cells are empty."""
    return bool((column.isna() | (column.astype(str).str.strip() == "")).all())


def separator_of(start: bytes) -> str:
    """Returns what separates the columns of a file that starts so: commas, or tabs where the first
    line has no comma, or where rows have the header's length with tabs and not with commas.
    """
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


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """Returns `CsvFile.open(path).frame(...)`."""
    return CsvFile.open(path).frame(**options)


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


def task_ids(
    frame: pd.DataFrame, path: Path, layout: TableFormat = PLAIN, csv: CsvFile | None = None
) -> NDArray[Any]:
    """Returns the task ids `[N]` as text; each must be there, once."""
    line = (lambda row: f"row {row}") if csv is None else csv.line
    (column,) = layout.require(path, list(frame.columns), "task")
    ids = frame[column]
    bad = np.flatnonzero((ids.isna() | (ids == "")).to_numpy())
    if len(bad):
        raise DataError(
            f"{path}: {line(bad[0])}, column {column!r}: expected a task id, received an empty cell"
        )
    twice = np.flatnonzero(ids.duplicated().to_numpy())
    if len(twice):
        raise DataError(
            f"{path}: {line(twice[0])}, column {column!r}: expected each task once, received"
            f" {ids.iloc[twice[0]]!r} again"
        )
    twice = np.flatnonzero(ids.str.strip().duplicated().to_numpy())
    if len(twice) and not layout.exact_names:
        raise DataError(
            f"{path}: {line(twice[0])}, column {column!r}: expected each task once, received"
            f" {ids.iloc[twice[0]]!r} again but for spaces; --exact_names takes them for two"
        )
    return as_name_array(ids.tolist())


def read_truth(
    path: Path,
    tasks: NDArray[Any],
    class_names: NDArray[Any],
    *,
    others: bool = False,
    layout: TableFormat = PLAIN,
) -> NDArray[np.int64]:
    """Reads `task,label`.

    Args:
        path: the CSV.
        tasks: `[N]` known task ids, as text.
        class_names: `[C]`; labels are compared with them as they are spelt.
        others: whether the file may have further tasks, which are then left out.
        layout: how the file is written.

    Returns:
        `[N]` class codes in the order of `tasks`, -1 for tasks that the file does not have.

    Raises:
        DataError: a missing column, an unknown task, a task twice, an empty cell, or a label that
            is no class.
    """
    csv = CsvFile.open(path, layout)
    frame = csv.table()
    ids = task_ids(frame, path, layout, csv)
    (column,) = layout.require(path, list(frame.columns), "label")
    rows = pd.Index(tasks).get_indexer(pd.Index(ids))
    code = {str(name): number for number, name in enumerate(class_names.tolist())}
    truth = np.full(len(tasks), -1, dtype=np.int64)
    for row, (place, label) in enumerate(zip(rows.tolist(), frame[column].tolist(), strict=True)):
        if place < 0:
            if others:
                continue
            raise DataError(
                f"{path}: {csv.line(row)}, column 'task': expected a task of the features table,"
                f" received {ids[row]!r}"
            )
        if label not in code:
            shown = ", ".join(repr(name) for name in list(code)[:8])
            hint = "" if label else "; leave out tasks whose label is unknown"
            raise DataError(
                f"{path}: {csv.line(row)}, column {column!r}: expected one of the annotated classes"
                f" {shown} (--classes names more), received {label!r}{hint}"
            )
        truth[place] = code[label]
    return truth
