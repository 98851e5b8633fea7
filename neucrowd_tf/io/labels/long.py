"""The long form of annotations: a row with task, worker and label each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.table import LabelTable, is_task_marker, tell_missing
from neucrowd_tf.io.names.ids import plain_integers
from neucrowd_tf.io.names.missing import missing_flag
from neucrowd_tf.io.names.spelling import same_header
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES
from neucrowd_tf.io.tables.other_columns import others, tell_others
from neucrowd_tf.io.tables.writing import csv_writer

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_frame(frame: Any, layout: TableFormat = PLAIN, source: str | Path = "frame") -> LabelTable:
    """Returns the triples of a frame with a row a label; see `Annotations.from_frame`."""
    frame = as_frame(frame)
    columns = layout.require(source, list(frame.columns), *ALIASES)
    if not len(frame):
        raise DataError(
            f"{source}: expected at least one row of task, worker, label, received none"
        )
    tell_others(frame, columns, source, layout)
    tasks, workers, labels = (frame[column] for column in columns)
    return LabelTable(source, (tasks, workers, labels))


def as_frame(value: Any) -> pd.DataFrame:
    """Returns a frame, also of what has `to_pandas` (a Hugging Face dataset, a Polars frame)."""
    return value.to_pandas() if hasattr(value, "to_pandas") else value


def read_long(csv: CsvFile, layout: TableFormat = PLAIN) -> LabelTable:
    """Returns the triples of a CSV with a row a label. Ids keep their spelling: `007` stays text,
    `7` is a number, `True` a truth value.
    """
    csv.check_header()
    many = csv.columns_of_many(())
    header = csv.header if many is not None else list(csv.frame(nrows=0).columns)
    wanted = layout.require(csv.path, header, *ALIASES)
    columns = None if many is not None else _read_numbers(csv, wanted)
    columns = columns or _read_text(csv, wanted)
    _check_no_header(columns, wanted, csv)
    rows = _without_missing(columns, wanted, csv, layout)
    tasks, workers, labels = (
        _typed(columns.pop(name), role, csv, rows, layout.missing)
        for name, role in zip(wanted, ALIASES, strict=True)
    )
    if not len(tasks):
        raise DataError(
            f"{csv.path}: expected at least one row of task, worker, label, received none"
        )
    if many is None and (rest := others(header, wanted)):
        text = csv.frame(usecols=[*wanted, *rest], dtype=str, keep_default_na=False)
        tell_others(text, wanted, csv.path, layout)
    table = LabelTable(
        csv.path, (tasks, workers, labels), line=lambda i: csv.line(i if rows is None else rows[i])
    )
    check_table(table, layout)
    return table


def _check_no_header(columns: dict[str, Column], wanted: list[str], csv: CsvFile) -> None:
    """Raises DataError for a row that is the header again, its columns in any order."""
    if not all(isinstance(columns[name], tuple) for name in wanted):
        return
    roles = []
    again: Any = True
    for name in reversed(wanted):  # the labels first: there are fewest different ones
        codes, texts = columns[name]
        role = np.array(
            [next((i for i, n in enumerate(wanted) if same_header(text, n)), -1) for text in texts]
            + [-1]
        )
        if (role < 0).all():
            return
        roles.append(role[codes])
        again = again & (roles[-1] >= 0)
    rows = [
        int(row) for row in np.flatnonzero(again) if len({int(role[row]) for role in roles}) == 3
    ]
    if len(rows):
        raise DataError(
            f"{csv.path}: {csv.line(rows[0])}: expected task, worker and label, received the header"
            " again (several files in one?)"
        )


def _without_missing(
    columns: dict[str, Column], wanted: list[str], csv: CsvFile, layout: TableFormat
) -> NDArray[np.int64] | None:
    """Leaves out the rows whose label is spelt as the user says that missing ones are, and those
    whose task or worker is (see `is_task_marker`); returns the rows that stay, None for all of
    them.
    """
    if not layout.missing:
        return None
    named = {name for name in layout.missing if is_task_marker(name)}
    tasks = _is_missing(columns[wanted[0]], named)
    lost = _is_missing(columns[wanted[1]], named | {""} & set(layout.missing))
    lost |= _is_missing(columns[wanted[2]], set(layout.missing))
    if tasks.any():
        tell_missing(csv.path, int(tasks.sum()), "lines", "a task")
    if not (lost | tasks).any():
        return None
    if (lost & ~tasks).any():
        tell_missing(csv.path, int((lost & ~tasks).sum()), "lines")
    kept = np.flatnonzero(~(lost | tasks))
    for name in wanted:
        if not isinstance(columns[name], tuple):
            columns[name] = columns[name][kept]
            continue
        codes, texts = columns[name]
        used, codes = np.unique(codes[kept], return_inverse=True)
        shift = int(len(used) > 0 and used[0] == -1)
        columns[name] = (codes - shift, [texts[code] for code in used[shift:]])
    return kept


def _is_missing(column: Column, missing: set[str]) -> NDArray[np.bool_]:
    """Returns which rows of a column are spelt as missing ones are."""
    if not isinstance(column, tuple):
        return np.isin(column, [int(text) for text in missing if text and plain_integers([text])])
    codes, texts = column
    return np.array([*(text.strip() in missing for text in texts), "" in missing])[codes]


# A column: whole numbers, or each distinct text once with int codes (-1 for an empty cell).
Column = Any


def _read_text(csv: CsvFile, wanted: list[str]) -> dict[str, Column]:
    """Returns the columns as text, each distinct one stored once."""
    options: dict[str, Any] = {
        "dtype": object,
        "keep_default_na": False,
        "na_values": [""],
        "low_memory": False,
    }
    if (cells := csv.columns_of_many(wanted)) is not None:
        return {
            name: _coded(pd.Series([cell or None for cell in column], dtype=object))
            for name, column in cells.items()
        }
    frame = csv.frame(**options)  # all columns: `usecols` cuts rows that are too long
    if csv.has_longer_rows:
        if isinstance(frame.index, pd.MultiIndex) or frame.iloc[:, -1].notna().any():
            raise DataError(
                f"{csv.path}: {csv.line(0)}: expected {len(frame.columns)} fields in each row, as"
                " in the header, received more (a comma without quotes?)"
            )
        frame = csv.frame(usecols=wanted, **options)  # rows end with a comma, the header does not
    return {name: _coded(frame.pop(name)) for name in wanted}


def _coded(column: pd.Series) -> tuple[NDArray[np.int64], list[str]]:
    codes, texts = pd.factorize(column.to_numpy(dtype=object))
    return codes, texts.tolist()


def _read_numbers(csv: CsvFile, wanted: list[str]) -> dict[str, Column] | None:
    """Returns the columns, those of plain whole numbers as int64 and others as text; None where a
    spelling would be lost.

    Numbers are parsed several times as fast as text. A number may be spelt in other ways: 1e3, or
    one that is longer than the plain one (007, +7). So the file must have no exponent but those
    letters that its texts have, and be exactly as long as plain spelling makes it.
    """
    head = csv.frame(dtype=object, keep_default_na=False, nrows=100)
    numbers = [name for name in wanted if plain_integers(head[name].tolist())]
    if not numbers or len(wanted) != len(head.columns):
        return None
    dtypes: dict[str, Any] = {name: np.int64 if name in numbers else object for name in wanted}
    try:
        frame = csv.frame(dtype=dtypes, keep_default_na=False, na_values=[""], low_memory=False)
    except (ValueError, OverflowError):
        return None
    columns = {
        name: frame.pop(name).to_numpy() if name in numbers else _coded(frame.pop(name))
        for name in wanted
    }
    start = csv.content.find(b"\n") + 1
    line_end = 2 if csv.content[:start].endswith(b"\r\n") else 1
    exponents = csv.content.count(b"e", start) + csv.content.count(b"E", start)
    plain = [_measure(column) for column in columns.values()]
    size = len(csv.content) - start - sum(length for length, _ in plain)
    size -= len(frame) * (len(wanted) - 1 + line_end)
    return (
        columns
        if size in (0, -line_end) and exponents == sum(letters for _, letters in plain)
        else None
    )


def _measure(column: Column) -> tuple[int, int]:
    """Returns how many bytes a column's values take in a CSV without quotes, and how many of those
    are e or E.
    """
    if isinstance(column, tuple):
        codes, texts = column
        times = np.bincount(codes[codes >= 0], minlength=len(texts))
        encoded = (
            map(len, texts) if "".join(texts).isascii() else (len(text.encode()) for text in texts)
        )
        length = np.fromiter(encoded, dtype=np.int64, count=len(texts))
        letters = np.fromiter(
            (text.count("e") + text.count("E") for text in texts), dtype=np.int64, count=len(texts)
        )
        return int(times @ length), int(times @ letters)
    magnitude = np.abs(column)
    total = len(column) + int((column < 0).sum())
    bound = 10
    while bound <= magnitude.max(initial=0):
        total += int((magnitude >= bound).sum())
        bound *= 10
    return total, 0


def _typed(
    column: Column,
    role: str,
    csv: CsvFile,
    rows: NDArray[np.int64] | None = None,
    missing: Sequence[str] | None = None,
) -> Any:
    """Returns a column's values, text as ints or bools where every distinct text is spelt as
    one."""
    if not isinstance(column, tuple):
        return column
    codes, texts = column
    if len(codes) and codes.min() < 0:
        row = int(np.flatnonzero(codes < 0)[0])
        leave = f"{missing_flag(missing, '')} leaves out what is empty"
        way_out = "take the line out" if role == "task" else leave
        raise DataError(
            f"{csv.path}: {csv.line(row if rows is None else rows[row])}, column {role!r}: expected"
            f" a value, received an empty cell; {way_out}"
        )
    distinct: list[Any] = texts
    if texts and plain_integers(texts):
        distinct = [int(text) for text in texts]
    elif set(texts) <= {"True", "False"}:
        distinct = [text == "True" for text in texts]
    kind = None if distinct and not isinstance(distinct[0], str) else object
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=kind)))


def write_long(path: str | Path, columns: Iterable[Any]) -> None:
    """Writes tasks, workers and labels `[A]` as a CSV."""
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv_writer(stream)
        writer.writerow(ALIASES)
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
