"""Annotations in wide form: a row a task, a column an annotator."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.column_names import renamed_twin
from neucrowd_tf.io.ids import as_name_array, plain_integers
from neucrowd_tf.io.label_table import LabelTable, check_table, is_task_marker, tell_missing
from neucrowd_tf.io.long_form import as_frame
from neucrowd_tf.io.names import MINUS_ONE, check_names, distinct
from neucrowd_tf.io.tables import CsvFile, TableFormat, task_ids
from neucrowd_tf.io.wide_checks import check_annotators
from neucrowd_tf.io.wide_values import A_ROW_A_LABEL, check_no_counts, check_no_triples

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = ("", "nan", "NaN")
POINT_ZERO = re.compile(r"(?<=\d)\.0+$")


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
    csv, ids, cells = task_cells(csv, layout)
    values = cells.to_numpy(dtype=object)
    missing = _missing(values, csv, layout)
    check_annotators(cells.columns.tolist(), ids, values, missing, csv, layout)
    rows, columns = np.nonzero(~missing)
    # NaN turns a column of whole numbers into 1.0, 2.0, and leaves others of the table as they are.
    labels = [POINT_ZERO.sub("", label) for label in values[rows, columns].tolist()]
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
        check_no_triples(cells.columns.tolist(), values, missing, csv)
    check_table(table, layout, wide=True)
    if len(set(labels)) < 2 and (values[missing] == MINUS_ONE).any() and layout.missing is None:
        raise DataError(
            f"{csv.path}: expected labels of at least two classes, received only"
            f" {labels[0] if labels else 'none'!r} beside -1, which stands for no label where no"
            " cell is empty; --missing= takes -1 for a class"
        )
    if labels and plain_integers(labels):
        codes = np.array(labels, dtype=np.int64)
        if not layout.classes:
            check_no_counts(codes, missing, list(cells.columns), csv.path)
        table = dataclasses.replace(table, triples=(ids[rows], annotators[columns], codes.tolist()))
    return table


def _missing(values: NDArray[Any], csv: CsvFile, layout: TableFormat) -> NDArray[np.bool_]:
    """Returns which cells hold no label: the empty ones and those that --missing names, or, where
    there are none and nothing is named, those of -1, which is told, unless --classes has it.
    """
    missing = pd.isna(values) | np.isin(values.astype(str), EMPTY)
    if layout.missing is not None:
        named = is_named(values, layout.missing) & ~missing
        if named.any():
            tell_missing(csv.path, int(named.sum()), "cells")
        return missing | named
    if missing.any() or MINUS_ONE in layout.classes:
        return missing
    missing = values == MINUS_ONE
    if missing.any():
        warnings.warn(
            f"{csv.path}: {int(missing.sum())} cells of -1 are taken for no label, as no cell is"
            " empty; --missing= takes -1 for a class, --missing=-1 says that it is none",
            stacklevel=5,
        )
    return missing


def is_named(values: NDArray[Any], missing: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which cells are spelt as one that --missing names; 9.0 is 9."""
    if not missing:
        return np.zeros(values.shape, dtype=bool)
    texts = [[POINT_ZERO.sub("", str(cell).strip()) for cell in row] for row in values.tolist()]
    return np.isin(np.array(texts), [*missing, *(POINT_ZERO.sub("", text) for text in missing)])


def check_header_names(
    names: Any, role: str, csv: CsvFile, layout: TableFormat, known: Sequence[str] = ()
) -> None:
    """Checks the names of annotators or classes that a table's first line gives, as `check_names`
    does.
    """
    where = f"{csv.path}: {csv.line(0, header=False)}"
    twin = None if layout.exact_names else renamed_twin(list(map(str, names)))
    if twin is not None:
        raise DataError(
            f"{where}: expected each column once, received {twin!r}, as pandas names a second"
            f" {twin.rpartition('.')[0]!r}; --exact_names takes it for another"
        )
    check_names(
        *distinct(names),
        role,
        lambda _: where,
        known=known,
        exact=layout.exact_names,
        markers=layout.missing is None,
    )


@dataclasses.dataclass(frozen=True)
class _Kept(CsvFile):
    """A CSV some of whose rows are left out.

    Attributes:
        rows: which of the file's are kept.
    """

    rows: tuple[int, ...] = ()

    def line(self, row: int, header: bool = True) -> str:
        return super().line(self.rows[int(row)] if header else row, header)


def task_cells(csv: CsvFile, layout: TableFormat) -> tuple[CsvFile, NDArray[Any], pd.DataFrame]:
    """Returns the file, the tasks' ids `[N]` and the other columns as text, without the tasks that
    --missing names, and with lines that are the file's.
    """
    frame = csv.table()
    tasks = frame.get(layout.roles(list(frame.columns)).get("task"))
    missing = [name for name in layout.missing or () if is_task_marker(name)]
    if tasks is not None and (lost := tasks.str.strip().isin(missing).to_numpy()).any():
        tell_missing(csv.path, int(lost.sum()), "lines", "a task")
        rows = tuple(np.flatnonzero(~lost).tolist())
        csv = _Kept(csv.path, csv.content, csv.separator, rows=rows)
        frame = frame[~lost].reset_index(drop=True)
        if frame.empty:
            raise DataError(f"{csv.path}: expected at least one task, received none")
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
    return csv, ids, cells
