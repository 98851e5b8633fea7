"""Labels in the tables of one folder: each is read by itself, and they count as one file."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.types import Indices
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.columns import Column, LabelColumns
from neucrowd_tf.names import encode

ENDINGS = (".parquet", ".csv")


def tables_in(folder: Path) -> list[Path]:
    """Returns the tables in a folder and in its folders that are not hidden."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in ENDINGS and not file.name.startswith((".", "_"))
    ]


def joined(folder: Path, files: Sequence[Path], parts: Sequence[LabelColumns]) -> LabelColumns:
    """Returns the labels of several tables, in the order of the files.

    Args:
        folder: the folder, for errors.
        files: the tables.
        parts: what each contains.

    Raises:
        DataError: one of several tables has not a row per label.
    """
    first = parts[0]
    for file, part in zip(files, parts, strict=True):
        if len(parts) > 1 and (part.counts is not None or part.rows or part.layout != first.layout):
            problem = "several files are read only as long tables"
            advice = "Write a row per label: task, worker, label."
            raise error("unknown_layout", file, problem=problem, advice=advice)
    items = [_coded(part.items) for part in parts]
    starts = np.cumsum([0, *(len(codes) for _, codes in items)])

    def place(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        name = files[at].relative_to(folder).as_posix()
        return f"{name}: {parts[at].place(row - int(starts[at]))}"

    times: Column = ()
    if all(len(part.times) for part in parts):
        times = _concatenated([_coded(part.times) for part in parts])
    wrong = [part.wrong for part in parts if part.wrong is not None]
    return dataclasses.replace(
        first,
        items=_concatenated(items),
        annotators=_concatenated([_coded(part.annotators) for part in parts]),
        labels=_concatenated([_coded(part.labels) for part in parts]),
        times=times,
        place=place,
        notes=tuple(dict.fromkeys(itertools.chain.from_iterable(part.notes for part in parts))),
        left_out=sum((part.left_out for part in parts), Counter()),
        structured=any(part.structured for part in parts),
        wrong=wrong[0] if wrong else None,
        gold={},
        texts={},
    )


def _coded(column: Any) -> tuple[list[Any], Indices]:
    if isinstance(column, tuple):
        return column
    return encode(column)


def _concatenated(columns: Sequence[tuple[list[Any], Indices]]) -> Column:
    """Returns columns of codes as one, with the names in order of appearance."""
    names: dict[Any, int] = {}
    codes = []
    for texts, part in columns:
        codes_of = [names.setdefault(text, len(names)) for text in texts]
        codes.append(np.array(codes_of, dtype=np.int64)[part])
    return list(names), np.concatenate(codes)
