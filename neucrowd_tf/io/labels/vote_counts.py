"""Annotations as counts of votes: a row a task, a column `votes_<class>` for each class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

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
    texts = cells.fillna("").to_numpy(dtype=object)
    missing = is_named(texts, layout.missing or ())
    if missing.any():
        tell_missing(csv.path, int(missing.sum()), "cells")
        texts = np.where(missing, "", texts)
    # Each spelling is looked at once: a table may have as many columns as others have rows.
    places, spellings = pd.factorize(texts.ravel())
    bare = [str(text).strip() for text in spellings]
    bad = np.array([not COUNT.fullmatch(text) for text in bare], dtype=bool)[places]
    for row, column in np.argwhere(bad.reshape(texts.shape))[:1]:
        raise DataError(
            f"{csv.path}: {csv.line(row)}, column {names[column]!r}: expected a count of votes from"
            f" 0, received {str(texts[row, column]).strip()!r}"
        )
    votes = np.array([float(text or 0) for text in bare])[places].reshape(texts.shape)
    if not layout.classes:
        _check_no_sums(votes, names, csv)
    check_ends(ids, votes == 0, csv)
    plain = [name.removeprefix(VOTES).strip() for name in names]
    seen: dict[str, str] = {}
    for column, name in zip(names, plain, strict=True):
        if (other := seen.setdefault(name, column)) != column:
            raise DataError(
                f"{csv.path}: {csv.line(0, header=False)}: expected one column a class, received"
                f" {column!r} beside {other!r}; take the spaces out of one, or rename it"
            )
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
