"""Annotations as plain columns, and their long form: a row with task, worker and label each.

What the columns mean is for :mod:`neucrowd_tf.annotations` to say: here, ids are only read.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.csv_cells import csv_writer
from neucrowd_tf.io.files import atomic_path
from neucrowd_tf.io.ids import plain_integers, spelt
from neucrowd_tf.io.names import (
    MINUS_ONE,
    check_names,
    distinct,
    is_marker,
    plain,
    same_header,
    times,
)
from neucrowd_tf.io.slips import check_slips
from neucrowd_tf.io.tables import ALIASES, PLAIN, CsvFile, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

# With a digit other than 0 after the point, or an exponent below 0.
_FRACTION = re.compile(r"[-+]?\d*[.,]\d*[1-9]\d*([eE][-+]?\d+)?|[-+]?\d+(\.\d*)?[eE]-\d+")
_SHARE = re.compile(r"[-+]?\d+([.,]\d+)?\s*%")
_NEGATIVE = re.compile(r"-\d+(\.0*)?(e\+?0+)?")
_NO_NUMBER = re.compile(r"[-+]?(inf|infinity|\d+(\.\d*)?e\+?\d{3,})")
_SEVERAL = re.compile(r"""\[\s*(['"].*)?\]|\{.*:.*\}""", re.DOTALL)
FEW_ROWS = 10

# What numbers a class, as a file spells it.
_CODE = re.compile(r"[-+]?\d+(\.0*)?")
_NO_ANSWER = re.compile(r"77+|88+|99+|9+[78]")


@dataclasses.dataclass(frozen=True)
class LabelTable:
    """What a file or a frame says of who gave which label to what: triples of ids, counts of votes
    or a matrix of codes.

    Attributes:
        source: what to call it in errors.
        triples: tasks, workers and labels, `[A]` ids each, in the file's order; or None.
        counts: `[N, C]` votes; or None.
        matrix: `[N, R]` class codes, -1 for no label; or None.
        instance_names, annotator_names, class_names: the ids in their order, where the layout
            says them.
        by_task: whether row i of the file is task i, rather than annotation i.
        line: says where in the file row i is (annotation i, with triples); by default "row i".
    """

    source: str | Path
    triples: tuple[Any, Any, Any] | None = None
    counts: NDArray[Any] | None = None
    matrix: NDArray[Any] | None = None
    instance_names: Any = None
    annotator_names: Any = None
    class_names: Any = None
    by_task: bool = False
    line: Callable[[int], str] | None = None

    def place(self, row: int, column: str | None = None) -> str:
        """Returns how an error says where row i of the file is: the file, and what is known."""
        where = f"row {row}" if self.line is None else self.line(row)
        parts = [part for part in (where, column and f"column {column!r}") if part]
        return f"{self.source}: {', '.join(parts)}" if parts else str(self.source)

    def error(self, row: int, rest: str) -> DataError:
        """Returns an error about row i."""
        return DataError(f"{self.place(row)}, {rest}")


def read_frame(frame: Any, layout: TableFormat = PLAIN, source: str | Path = "frame") -> LabelTable:
    """Returns the triples of a frame with a row a label; see `Annotations.from_frame`."""
    frame = as_frame(frame)
    columns = layout.require(source, list(frame.columns), *ALIASES)
    if not len(frame):
        raise DataError(
            f"{source}: expected at least one row of task, worker, label, received none"
        )
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
    """Leaves out the rows whose worker or label is spelt as the user says that missing ones are,
    and those whose task is (see `is_task_marker`); returns the rows that stay, None for all of
    them.
    """
    if not layout.missing:
        return None
    tasks = _is_missing(
        columns[wanted[0]], {name for name in layout.missing if is_task_marker(name)}
    )
    lost = np.zeros(len(tasks), dtype=bool)
    for name in wanted[1:]:
        lost |= _is_missing(columns[name], set(layout.missing))
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


def is_task_marker(name: str) -> bool:
    """Whether --missing means tasks of this name too: not numbers, which are labels' alone, nor
    empty cells.
    """
    return name != "" and is_marker(name)


def _is_missing(column: Column, missing: set[str]) -> NDArray[np.bool_]:
    """Returns which rows of a column are spelt as missing ones are."""
    if not isinstance(column, tuple):
        return np.isin(column, [int(text) for text in missing if text and plain_integers([text])])
    codes, texts = column
    return np.array([*(text.strip() in missing for text in texts), "" in missing])[codes]


def tell_missing(path: str | Path, count: int, what: str, of: str = "a label") -> None:
    """Warns of what --missing leaves out."""
    warnings.warn(f"{path}: {count} {what} without {of} are left out (--missing)", stacklevel=4)


def check_table(table: LabelTable, layout: TableFormat, *, wide: bool = False) -> None:
    """Checks the names of triples as `check_names` does, and labels that are numbers as those of no
    class are: -1 and fractions.

    Args:
        wide: whether the triples come from cells, each of whose places says its column.
    """
    if table.triples is None:
        return
    column, alone, single = table.triples[0], [], []
    for role, column in zip(ALIASES, table.triples, strict=True):
        if wide and role != "label":  # the header and the column of tasks have each once
            continue
        names, counts, first = distinct(column)
        known = layout.classes if role == "label" else ()
        check_names(
            names,
            counts,
            first,
            role,
            functools.partial(table.place, column=None if wide else role),
            known=known,
            exact=layout.exact_names,
            markers=layout.missing is None,
        )
        if role == "label" and not known and not layout.exact_names:
            check_classes(names, counts, first, table, layout, None if wide else role)
            _check_other_names(table, names, first, None if wide else role)
        alone.append(set(first[counts == 1].tolist()))
        if role != "label" and len(names) == len(column) >= FEW_ROWS:
            single.append(role)
        alone_there = role == "worker" and len(names) == 1  # who labels each task once
        single = [] if alone_there else single
    if single and not wide and not layout.exact_names:
        of = {"task": "task has one label alone", "worker": "annotator gave one label alone"}
        warnings.warn(
            f"{table.source}: every {of[single[0]]}, as where the column numbers the rows"
            f" (--{single[0]}_column names another)",
            stacklevel=4,
        )
    rows = set() if wide else alone[1] & alone[2]
    if rows and len(rows) * FEW_ROWS <= len(column):
        row = min(rows)
        warnings.warn(
            f"{table.place(row)}: the annotator {spelt(_at(table.triples[1], row))} and the label"
            f" {spelt(_at(table.triples[2], row))} occur in this place alone, and are taken as they"
            " are (a footer, or a note?)",
            stacklevel=4,
        )


def _check_other_names(
    table: LabelTable, labels: list[Any], first: NDArray[np.int64], column: str | None
) -> None:
    """Raises DataError for labels that are all names of annotators, or of tasks; where they are
    numbers, for those that are their row's.
    """
    texts = {str(label) for label in labels}
    if len(texts) < 2 or table.triples is None:
        return
    # Readers of wide tables and of exports have numbers as text.
    codes = all(_CODE.fullmatch(text) for text in texts)
    for names, what in zip(table.triples, ("tasks", "annotators"), strict=False):
        if texts <= set(map(str, distinct(names)[0])) and (
            not codes
            or all(
                str(name) == str(label) for name, label in zip(names, table.triples[2], strict=True)
            )
        ):
            raise DataError(
                f"{table.place(int(first[0]), column)}: expected a label, received"
                f" {spelt(labels[0])}, as all labels one of the {what}' names (columns exchanged?);"
                " --exact_names takes them for classes"
            )


def _at(column: Any, row: int) -> Any:
    return column.iloc[row] if isinstance(column, pd.Series) else column[row]


def check_vocabulary(
    source: str | Path, workers: Iterable[Any], labels: Iterable[Any], layout: TableFormat = PLAIN
) -> None:
    """Checks the distinct annotators and classes of a source that is read by parts, as
    `check_table` does.
    """
    table = LabelTable(source, line=lambda _: "")
    for role, column in (("worker", list(workers)), ("label", list(labels))):
        nowhere = np.zeros(len(column), dtype=np.int64)
        known = layout.classes if role == "label" else ()
        check_names(
            column,
            nowhere,
            nowhere,
            role,
            functools.partial(table.place, column=role),
            known=known,
            exact=layout.exact_names,
            markers=not layout.exact_names,
        )
        if role == "label" and not known and not layout.exact_names:
            check_classes(column, nowhere, nowhere, table, layout, role)


def is_fraction(name: str) -> bool:
    """Whether a label is a number that is not whole, or a share in percent, as probabilities and
    scores are.
    """
    return bool(_FRACTION.fullmatch(name.strip()) or _SHARE.fullmatch(name.strip()))


def check_classes(
    names: list[Any],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    table: LabelTable,
    layout: TableFormat,
    column: str | None,
) -> None:
    """Raises DataError for labels that are no classes: negative numbers, fractions, no finite
    numbers, lists. Numbers that often stand for none are told of.
    """
    texts = [str(name) for name in names]
    numbers = plain_integers(texts)
    bare = [plain(text) for text in texts]
    negative = [at for at, text in enumerate(bare) if _NEGATIVE.fullmatch(text)]
    negative.sort(key=lambda at: bare[at] != MINUS_ONE)
    code = next((at for at, text in enumerate(texts) if numbers and _is_code(text, texts)), None)
    if negative and layout.missing is None:
        at = negative[0]
        received = texts[at]
        way_out = f"--missing={received} leaves them out, --missing= takes {received} for a class"
        if {bare[at].removeprefix("-")} != set(bare) - {bare[at]}:
            raise DataError(
                f"{table.place(int(first[at]), column)}: expected a label, received {received}"
                f"{times(counts[at])}, which often stands for none; {way_out}"
            )
        warnings.warn(
            f"{table.source}: labels are {received}{times(counts[at])}, taken for a class beside"
            f" {received.removeprefix('-')}; {way_out}",
            stacklevel=5,
        )
    elif code is not None and layout.missing is None:
        warnings.warn(
            f"{table.source}: {counts[code]} labels are {texts[code]}, which often stands for none,"
            f" taken for a class; --missing={texts[code]} leaves them out",
            stacklevel=5,
        )
    for place, text in enumerate(bare):
        what = ""
        if _NO_NUMBER.fullmatch(text) or text == "nan":
            what = ", which is no finite number"
        elif _SEVERAL.fullmatch(text):
            what = ", a list or an object"
        if what:
            raise DataError(
                f"{table.place(int(first[place]), column)}: expected a class, received"
                f" {texts[place]!r}{what}; --exact_names takes it for a class"
            )
    check_slips(texts, counts, first, lambda row: table.place(row, column), tell=True)
    fractions = [place for place, name in enumerate(texts) if is_fraction(name)]
    if fractions:
        raise DataError(
            f"{table.place(int(first[fractions[0]]), column)}: expected a class, received"
            f" {names[fractions[0]]!r}, a fraction as probabilities and scores are; if these are"
            f" classes, --classes=... names all of them"
        )


def _is_code(text: str, texts: list[str]) -> bool:
    """Whether a number is one that questionnaires use for no answer (99, 888 ...), far above the
    others.
    """
    others = [int(other) for other in texts if other != text]
    return bool(_NO_ANSWER.fullmatch(text)) and len(others) > 1 and 3 * max(others) < int(text)


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
    if not isinstance(frame.index, pd.RangeIndex):
        if isinstance(frame.index, pd.MultiIndex) or frame.iloc[:, -1].notna().any():
            raise DataError(
                f"{csv.path}: expected {len(frame.columns)} fields in each row, as in the header,"
                " received more (a comma without quotes?)"
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
    missing: Iterable[str] | None = None,
) -> Any:
    """Returns a column's values, text as ints or bools where every distinct text is spelt as
    one."""
    if not isinstance(column, tuple):
        return column
    codes, texts = column
    if len(codes) and codes.min() < 0:
        row = int(np.flatnonzero(codes < 0)[0])
        flag = f"--missing={''.join(f'{text},' for text in missing or ())}"
        way_out = f"; {flag} leaves out what is empty"
        raise DataError(
            f"{csv.path}: {csv.line(row if rows is None else rows[row])}, column {role!r}: expected"
            f" a value, received an empty cell{way_out if role != 'task' else ''}"
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
