"""Labels in the tables of one folder: each is read by itself, and they count as one file."""

from __future__ import annotations

import bisect
import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.picking import by_name
from neucrowd_tf.declare.types import Indices
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.coding import Coded
from neucrowd_tf.io.column_names import few
from neucrowd_tf.io.column_values import are_many, repeats
from neucrowd_tf.io.columns import Column, LabelColumns
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.roles import LAST_LABEL
from neucrowd_tf.io.table import PARQUET
from neucrowd_tf.names import without

ENDINGS = (*PARQUET, ".csv", ".tsv", ".tab")


def tables_in(folder: Path) -> list[Path]:
    """Returns the tables in a folder and in its folders that are not hidden, packed ones too."""
    return [file for file in _files_in(folder) if ending(file) in ENDINGS]


def _files_in(folder: Path) -> list[Path]:
    files = []
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.startswith((".", "_")):
            files.append(file)
    return files


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
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(Coded.of(part.items).codes))

    def place(row: int) -> str:
        at = bisect.bisect_right(starts, row) - 1
        name = files[at].relative_to(folder).as_posix()
        return f"{name}: {parts[at].place(row - starts[at])}"

    def ask(keys: Indices, rows: Indices, counts: tuple[int, int]) -> None:
        file_of = np.searchsorted(starts, rows, side="right") - 1
        for at, part in enumerate(parts):
            within = file_of == at
            repeated = repeats(keys[within])
            if are_many(*repeated):
                part.ask_about_repeats(keys[within], rows[within] - starts[at], repeated)
        across = repeats(np.unique(keys * len(parts) + file_of) // len(parts))
        if are_many(*across):
            problem = "{:,} of {:,} pairs of item and annotator are in several files".format(
                *across
            )
            raise error("several_questions", folder, problem=problem, advice=LAST_LABEL)

    times: Column = ()
    if all(len(part.times) for part in parts):
        times = _concatenated(parts, "times")
    notes: dict[str, None] = {}
    if others := without(_files_in(folder), files):
        names = few(list(by_name(others)), 3)
        notes[f"Files of the folder that are not read: {names}."] = None
    left_out: Counter[str] = Counter()
    wrong = first.wrong
    for part in parts:
        notes |= dict.fromkeys(part.notes)
        left_out += part.left_out
        wrong = wrong or part.wrong
    return dataclasses.replace(
        first,
        items=_concatenated(parts, "items"),
        annotators=_concatenated(parts, "annotators"),
        labels=_concatenated(parts, "labels"),
        times=times,
        place=place,
        notes=tuple(notes),
        left_out=left_out,
        structured=any(part.structured for part in parts),
        wrong=wrong,
        ask_about_repeats=ask,
        gold={},
        texts={},
    )


def _concatenated(parts: Sequence[LabelColumns], field: str) -> Column:
    """Returns a column of all parts as codes, with the names in order of appearance."""
    names: dict[Any, int] = {}
    codes = []
    for part in parts:
        texts, of_part = Coded.of(getattr(part, field))
        codes_of = [names.setdefault(text, len(names)) for text in texts]
        codes.append(np.array(codes_of, dtype=np.int64)[of_part])
    return list(names), np.concatenate(codes)
