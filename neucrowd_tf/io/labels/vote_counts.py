"""Annotations as counts of votes: a row a task, a column `votes_<class>` for each class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.cells import check_header_names, is_named, task_cells
from neucrowd_tf.io.labels.checks.classes import check_classes
from neucrowd_tf.io.labels.checks.like_counts import MANY_ROWS, VOTES
from neucrowd_tf.io.labels.checks.wide_names import check_ends
from neucrowd_tf.io.labels.table import LabelTable, tell_missing
from neucrowd_tf.io.names.ids import distinct, typed_names
from neucrowd_tf.io.tables.column_names import is_sums, is_totals
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNT = re.compile(r"(\d+(\.0+)?)?")


def read_votes(csv: CsvFile, layout: TableFormat) -> LabelTable:
    """Reads counts of votes: `task` and a column for each class, whose empty cells count as 0."""
    csv, ids, cells = task_cells(csv, layout)
    names = [str(column) for column in cells.columns]
    votes = np.zeros(cells.shape)
    missing = is_named(cells.to_numpy(dtype=object), layout.missing or ())
    if missing.any():
        tell_missing(csv.path, int(missing.sum()), "cells")
        cells = cells.mask(missing, "")
    for place, name in enumerate(names):
        texts = cells[name].fillna("").str.strip()
        bad = np.flatnonzero(~texts.str.fullmatch(COUNT).to_numpy())
        if len(bad):
            raise DataError(
                f"{csv.path}: {csv.line(bad[0])}, column {name!r}: expected a count of votes from"
                f" 0, received {texts.iloc[bad[0]]!r}"
            )
        votes[:, place] = texts.where(texts != "", "0").astype(float)
    if not layout.classes:
        _check_no_sums(votes, names, csv)
    check_ends(ids, votes == 0, csv)
    plain = [name.removeprefix(VOTES).strip() for name in names]
    check_header_names(plain, "label", csv, layout, known=layout.classes)
    if not layout.classes and not layout.own:
        found, counts, first = distinct(plain)
        header = LabelTable(csv.path, line=lambda _: csv.line(0, header=False))
        check_classes(found, 0 * counts, first, header, layout, None)
    return LabelTable(
        csv.path,
        counts=votes,
        instance_names=ids,
        class_names=typed_names(plain),
        by_task=True,
        line=csv.line,
    )


def _check_no_sums(counts: NDArray[np.float64], names: list[str], csv: CsvFile) -> None:
    """Raises DataError for a first or last row or a column that holds the sums of the others."""
    total = counts.sum(axis=0)
    for row in (0, len(counts) - 1) if len(counts) > 2 else ():
        if counts[row].any() and (2 * counts[row] == total).all():
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task's counts of votes, received the sums"
                " of the other rows; take the row out, or --classes=... names all classes"
            )
    sums = counts.sum(axis=1, keepdims=True) - counts
    for place, same in enumerate((counts == sums).all(axis=0)):
        plain = names[place].removeprefix(VOTES)
        enough = is_sums(plain) or len(counts) >= MANY_ROWS
        if len(names) > 2 and ((enough and same) or is_totals(plain)):
            what = "the sums of the others" if same else "one that is named as totals are"
            raise DataError(
                f"{csv.path}: column {names[place]!r}: expected a class's counts of votes, received"
                f" {what}; take the column out, or --classes=... names all classes"
            )
