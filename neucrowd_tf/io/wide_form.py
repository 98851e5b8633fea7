"""Annotations in wide form: a row a task, a column an annotator."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.ids import as_name_array, plain_integers
from neucrowd_tf.io.long_form import LabelTable, as_frame, check_table, is_fraction, tell_missing
from neucrowd_tf.io.names import MINUS_ONE, check_names, distinct, is_truth, same_header
from neucrowd_tf.io.tables import CsvFile, TableFormat, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOTES = "votes_"
ALONE = 3  # cells of an annotator who shares no label with others
MANY_ROWS = 10  # whose sums are not all the same by chance
EMPTY = ("", "nan", "NaN")
_SUMS = re.compile(
    r"(grand |sub)?totals?|sum|counts?|mean|average|median|std|min|max", re.IGNORECASE
)
_POINT_ZERO = re.compile(r"(?<=\d)\.0+$")
A_ROW_A_LABEL = (
    "if each row is one label, --worker_column and --label_column name the columns of annotators"
    " and labels"
)


def read_wide_frame(frame: Any) -> LabelTable:
    """Returns the triples of a frame with a row an instance and a column an annotator; whole floats
    become ints (NaN turns an integer column into floats).

    Raises:
        DataError: a repeated row or column name.
    """
    frame = as_frame(frame)
    for axis, what in ((frame.index, "row"), (frame.columns, "column")):
        if not axis.is_unique:
            raise DataError(
                f"wide frame: expected each {what} name once, received"
                f" {axis[axis.duplicated()][0]!r} again"
            )
    values = frame.to_numpy(dtype=object)
    rows, columns = np.nonzero(frame.notna().to_numpy())
    given = values[rows, columns].tolist()
    if all(isinstance(v, (float, np.floating)) and float(v).is_integer() for v in given):
        given = [int(v) for v in given]
    return LabelTable(
        "wide frame",
        (as_name_array(frame.index)[rows], as_name_array(frame.columns)[columns], given),
        instance_names=frame.index,
        annotator_names=frame.columns,
        by_task=True,
    )


def read_wide(csv: CsvFile, layout: TableFormat) -> LabelTable:
    """Reads a table of a row a task and a column an annotator."""
    ids, cells = task_cells(csv, layout)
    values = cells.to_numpy(dtype=object)
    missing = _missing(values, csv, layout)
    _check_annotators(cells.columns.tolist(), ids, values, missing, csv, layout)
    rows, columns = np.nonzero(~missing)
    # NaN turns a column of whole numbers into 1.0, 2.0, and leaves others of the table as they are.
    labels = [_POINT_ZERO.sub("", label) for label in values[rows, columns].tolist()]
    annotators = as_name_array(cells.columns.tolist())
    table = LabelTable(
        csv.path,
        (ids[rows], annotators[columns], labels),
        instance_names=ids,
        annotator_names=annotators,
        by_task=True,
        line=lambda i: f"{csv.line(rows[i])}, column {annotators[columns[i]]!r}",
    )
    check_header_names(annotators, "annotator", csv, layout)
    if not layout.classes:
        _check_no_triples(cells.columns.tolist(), values, missing, csv)
    check_table(table, layout, wide=True)
    if len(set(labels)) < 2 and (values == MINUS_ONE).any():
        raise DataError(
            f"{csv.path}: expected labels of at least two classes, received only"
            f" {labels[0] if labels else 'none'!r} beside -1, which stands for no label where no"
            " cell is empty; --missing= takes -1 for a class"
        )
    if labels and plain_integers(labels):
        codes = np.array(labels, dtype=np.int64)
        if not layout.classes:
            _check_no_counts(codes, missing, list(cells.columns), csv.path)
        table = dataclasses.replace(table, triples=(ids[rows], annotators[columns], codes.tolist()))
    return table


def _missing(values: NDArray[Any], csv: CsvFile, layout: TableFormat) -> NDArray[np.bool_]:
    """Returns which cells hold no label: the empty ones and those that --missing names, or, where
    there are none and nothing is named, those of -1.
    """
    missing = pd.isna(values) | np.isin(values.astype(str), EMPTY)
    if layout.missing is not None:
        named = np.isin(np.char.strip(values.astype(str)), layout.missing) & ~missing
        if named.any():
            tell_missing(csv.path, int(named.sum()), "cells")
        return missing | named
    return missing if missing.any() else values == MINUS_ONE


def check_header_names(
    names: Any, role: str, csv: CsvFile, layout: TableFormat, known: Sequence[str] = ()
) -> None:
    """Checks the names of annotators or classes that a table's first line gives, as `check_names`
    does.
    """
    where = f"{csv.path}: {csv.line(0, header=False)}"
    check_names(
        *distinct(names),
        role,
        lambda _: where,
        known=known,
        exact=layout.exact_names,
        markers=layout.missing is None,
    )


def task_cells(csv: CsvFile, layout: TableFormat) -> tuple[NDArray[Any], pd.DataFrame]:
    """Returns the tasks' ids `[N]` and the other columns as text."""
    frame = csv.table()
    try:
        ids = task_ids(frame, csv.path, layout, csv)
    except DataError as error:
        hint = f"; {A_ROW_A_LABEL}" if "each task once" in str(error) else ""
        raise DataError(f"{error}{hint}") from None
    one = np.ones(len(ids), dtype=np.int64)
    check_names(
        ids.tolist(),
        one,
        np.arange(len(ids)),
        "task",
        lambda row: f"{csv.path}: {csv.line(row)}",
        exact=layout.exact_names,
        markers=layout.missing is None,
    )
    cells = frame.drop(columns=[layout.roles(list(frame.columns))["task"]])
    if cells.empty and not len(cells.columns):
        raise DataError(
            f"{csv.path}: {csv.line(0, header=False)}: expected columns of annotators beside the"
            " tasks', received none"
        )
    return ids, cells


def _check_annotators(
    names: list[str],
    ids: NDArray[Any],
    values: NDArray[Any],
    missing: NDArray[np.bool_],
    csv: CsvFile,
    layout: TableFormat,
) -> None:
    """Raises DataError for what is no annotator's column of a wide table (a true label, a comment,
    counts) and for a row that is the header again.
    """
    task = layout.roles(csv.header)["task"]
    for row in [row for row, name in enumerate(ids) if same_header(str(name), task)]:
        if all(map(same_header, map(str, values[row]), map(str, names))):
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task and labels, received the header"
                " again (several files in one?)"
            )
    _check_rows(ids, values, missing, csv)
    for name in names:
        if is_truth(name) or (name.lower().startswith(VOTES) and not layout.classes):
            what = "a true label's" if is_truth(name) else "counts of votes"
            raise DataError(
                f"{csv.path}: column {name!r}: expected an annotator's labels, received a column"
                f" named as {what}; take it out, or rename it if it is an annotator's"
            )
    if layout.classes or len(names) < 3:
        return
    found = [set(values[~missing[:, j], j].tolist()) for j in range(len(names))]
    times = Counter(label for labels in found for label in labels)
    shared = {label for label, count in times.items() if count > 1}
    for place, labels in enumerate(found):
        if not shared or not labels or labels & shared:
            continue
        first = int(np.flatnonzero(~missing[:, place])[0])
        said = (
            f"{csv.path}: {csv.line(first)}, column {names[place]!r}: expected labels, received"
            f" {values[first, place]!r}, as all of the column one that nobody else gives;"
        )
        if (~missing[:, place]).sum() >= ALONE:
            raise DataError(f"{said} take the column out, or --classes=... names all classes")
        warnings.warn(f"{said} it is taken for a label (a comment?)", stacklevel=4)


def _check_rows(
    ids: NDArray[Any], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a row that repeats its task in every cell, as a line of types does, and
    for a last one that is named as sums are; tells of the latter where it has no labels.
    """
    same = (values == ids.astype(object)[:, None]).all(axis=1)
    for row in np.flatnonzero(same).tolist() if values.shape[1] > 1 else ():
        if not str(ids[row]).isdigit():
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task and its labels, received"
                f" {ids[row]!r} in every cell (a line of types?)"
            )
    last = len(ids) - 1
    if last and _SUMS.fullmatch(str(ids[last]).strip()):
        said = (
            f"{csv.path}: {csv.line(last)}: expected a task, received {ids[last]!r}, as a line of"
            " sums is named"
        )
        if not missing[last].all():
            raise DataError(f"{said}; take the line out, or rename the task")
        warnings.warn(f"{said}, without labels", stacklevel=5)


def _check_no_triples(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for full columns that are a row's annotator and label (and what else was
    kept of it) under names that are not known, rather than annotators: two columns, most of one's
    values never in the other, or more of which no two share a value.

    Annotators are known by agreeing more than by chance, or by names that differ in a number.
    """
    stems = {re.sub(r"\d+", "", name) for name in names}
    if missing.any() or len(values) < 2 or len(names) < 2 or len(stems) == 1:
        return
    if all(map(is_fraction, map(str, values[0]))):  # numbers of other kinds, which is said better
        return
    found = [set(column) for column in values.T.tolist()]
    if len(names) > 2:
        if sum(map(len, found)) > len(set.union(*found)):
            return
    else:
        alone = [np.isin(values[:, j], list(found[1 - j]), invert=True).mean() for j in (0, 1)]
        if max(alone) < 0.5 or _agree_more_than_chance(values[:, 0], values[:, 1]):
            return
    shown = " and ".join(repr(name) for name in names[:2])
    raise DataError(
        f"{csv.path}: columns {shown}: expected two annotators' labels, received values that hardly"
        f" occur in both; {A_ROW_A_LABEL}, and --classes=... takes the columns for annotators"
    )


def _agree_more_than_chance(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns hold equal values in more rows than chance explains (one side, 5 %)."""
    rows = len(first)
    chance = sum((first == v).sum() * (second == v).sum() for v in set(first)) / rows**2
    return bool((first == second).mean() - chance > 1.645 * np.sqrt(chance * (1 - chance) / rows))


def _check_no_counts(
    labels: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str], path: Path
) -> None:
    """Raises DataError for full rows of numbers that look like a vote count a class: rows with one
    sum, or columns that agree less than by chance, as those of annotators do not.
    """
    if missing.any() or len(missing) < MANY_ROWS or len(set(labels.tolist())) == 1:
        return
    matrix = labels.reshape(missing.shape)
    sums = matrix.sum(axis=1)
    if labels.min() < 0 or missing.shape[1] < 2:
        return
    if (sums == sums[0]).all():
        what = f"numbers that sum to {sums[0]} in every row"
    elif _agree_less_than_chance(matrix):
        what = "numbers whose columns agree less than by chance"
    else:
        return
    named = ", ".join(VOTES + name for name in columns[:3]) + (", ..." if len(columns) > 3 else "")
    raise DataError(
        f"{path}: expected a label in each cell, received {what}, as counts of votes do; if they"
        f" are, name the columns {named}, if not, --classes=... names the classes"
    )


def _agree_less_than_chance(matrix: NDArray[np.int64]) -> bool:
    """Whether pairs of columns hold equal numbers in fewer rows than their shares of each number
    would make them.
    """
    rows, width = matrix.shape
    observed = expected = 0.0
    for value in np.unique(matrix):
        here = matrix == value
        a_row, a_column = here.sum(axis=1), here.sum(axis=0) / rows
        observed += float((a_row * (a_row - 1)).sum()) / rows
        expected += float(a_column.sum() ** 2 - (a_column**2).sum())
    return observed < expected - 1e-9 and width > 1
