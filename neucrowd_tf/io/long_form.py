"""Annotations as plain columns, and their long form: a row with task, worker and label each.

What the columns mean is for :mod:`neucrowd_tf.annotations` to say: here, ids are only read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.csv_cells import csv_writer
from neucrowd_tf.io.files import atomic_path
from neucrowd_tf.io.ids import plain_integers
from neucrowd_tf.io.tables import ALIASES, PLAIN, CsvFile, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    """

    source: str | Path
    triples: tuple[Any, Any, Any] | None = None
    counts: NDArray[Any] | None = None
    matrix: NDArray[Any] | None = None
    instance_names: Any = None
    annotator_names: Any = None
    class_names: Any = None
    by_task: bool = False


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
    header = list(csv.frame(nrows=0).columns)
    wanted = layout.require(csv.path, header, *ALIASES)
    columns = _read_numbers(csv, wanted) or _read_text(csv, wanted)
    tasks, workers, labels = (
        _typed(columns.pop(name), role, csv.path)
        for name, role in zip(wanted, ALIASES, strict=True)
    )
    if not len(tasks):
        raise DataError(
            f"{csv.path}: expected at least one row of task, worker, label, received none"
        )
    return LabelTable(csv.path, (tasks, workers, labels))


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


def _typed(column: Column, role: str, path: str | Path) -> Any:
    """Returns a column's values, text as ints or bools where every distinct text is spelt as
    one."""
    if not isinstance(column, tuple):
        return column
    codes, texts = column
    if len(codes) and codes.min() < 0:
        raise DataError(
            f"{path}: row {int(np.flatnonzero(codes < 0)[0])}, column {role!r}: expected a value,"
            " received an empty cell"
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
