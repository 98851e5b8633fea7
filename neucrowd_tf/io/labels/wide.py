"""Annotations in wide form: a row a task, a column an annotator."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.cells import (
    EMPTY,
    check_header_names,
    is_named,
    task_cells,
    without_point,
)
from neucrowd_tf.io.labels.checks.like_counts import check_no_counts
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.checks.wide_names import check_annotators
from neucrowd_tf.io.labels.checks.wide_values import check_no_triples, tell_turned
from neucrowd_tf.io.labels.long import as_frame
from neucrowd_tf.io.labels.matrix import MOST_CODE, is_code
from neucrowd_tf.io.labels.table import MINUS_ONE, LabelTable, tell_missing
from neucrowd_tf.io.names.ids import as_name_array, plain_integers
from neucrowd_tf.io.names.missing import missing_flag, nothing_is_missing
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    tell_turned(len(ids), len(cells.columns), csv.path)
    rows, columns = np.nonzero(~missing)
    labels = _labels(values[rows, columns].tolist(), layout)
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
    named = MINUS_ONE in (layout.missing or ())
    if len(set(labels)) < 2 and (values[missing] == MINUS_ONE).any() and not named:
        raise DataError(
            f"{csv.path}: expected labels of at least two classes, received only"
            f" {labels[0] if labels else 'none'!r} beside -1, which stands for no label where no"
            " cell is empty; --missing= takes -1 for a class"
        )
    kinds = set(labels)
    whole = bool(labels) and plain_integers([*kinds])
    if not whole and not (labels and all(map(_is_number, kinds))):
        return table
    codes = np.array(labels, dtype=np.int64 if whole else np.float64)
    if not layout.classes:
        matrix = np.zeros(missing.shape, dtype=np.int64)
        matrix[~missing] = codes
        check_no_counts(matrix, missing, list(cells.columns), csv.path)
    if whole:
        table = dataclasses.replace(table, triples=(ids[rows], annotators[columns], codes.tolist()))
    return table


def _is_number(label: str) -> bool:
    return is_code(label) and abs(float(label)) < MOST_CODE


def _missing(values: NDArray[Any], csv: CsvFile, layout: TableFormat) -> NDArray[np.bool_]:
    """Returns which cells hold no label: the empty ones and those that --missing names, or, where
    there are none, those of -1, which is told, unless a flag says that it is a class.
    """
    missing = pd.isna(values) | np.isin(values.astype(str), EMPTY)
    named = is_named(values, layout.missing or ()) & ~missing
    if named.any():
        tell_missing(csv.path, int(named.sum()), "cells")
        missing |= named
    if missing.any() or MINUS_ONE in layout.classes or nothing_is_missing(layout.missing):
        return missing
    missing = values == MINUS_ONE
    if missing.any():
        warnings.warn(
            f"{csv.path}: {int(missing.sum())} cells of -1 are taken for no label, as no cell is"
            f" empty; --missing= takes -1 for a class, {missing_flag(layout.missing, MINUS_ONE)}"
            " says that it is none",
            stacklevel=5,
        )
    return missing


def _labels(cells: list[str], layout: TableFormat) -> list[str]:
    """Returns labels without what NaN adds to whole numbers, in tables of whole numbers (a few
    words beside them); names as --classes has them stay.
    """
    found = set(cells) - set(layout.classes)
    plain = {cell: without_point(cell) for cell in found}
    whole = {cell for cell in found if plain_integers([plain[cell]])}
    if whole == found or any(cell == plain[cell] for cell in whole):
        return [plain.get(cell, cell) for cell in cells]
    return cells
