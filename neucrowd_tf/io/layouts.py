"""The layouts of tables of labels, and a matrix, as `LabelColumns`."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.roles import Roles, decide
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, check_header_again

ONES = ("1", "1.0", "true", "yes", "x")  # cells of a one-hot column that name the class
LAYOUTS = {
    "long": "long table",
    "wide": "wide table",
    "respondents": "table with a row per annotator",
    "one_hot": "one-hot table",
    "votes": "table of vote counts",
    "pairs": "table with several annotators per row",
    "matrix": "matrix without a header",
}


def columns_of(table: Table, options: TableOptions) -> LabelColumns:
    """Returns items, annotators and labels of a table.

    Raises:
        DataError: roles that have to be named, or rows that are not those of a table.
    """
    if not len(table):
        raise error("no_labels", table.path, problem="; there are no rows")
    table = _without_extra_rows(table, options)
    roles = decide(table, options)
    check_header_again(table)
    role_columns = {"task": ",".join(roles.task) or "the row's number"}
    if roles.layout in ("long", "one_hot"):
        long = roles.layout == "long"
        labels = table.coded(roles.label) if long else _one_hot(table, roles, options)
        items, annotators = table.coded(roles.task), table.coded(roles.worker)
        columns = LabelColumns(items, annotators, labels, table.place)
        role_columns["worker"] = ",".join(roles.worker)
    else:
        columns = _of_cells(table, roles)
    if roles.layout == "respondents":
        columns = dataclasses.replace(columns, items=columns.annotators, annotators=columns.items)
        role_columns = {"task": "the column", "worker": ",".join(roles.worker)}
    if roles.layout in ("long", "one_hot", "votes"):
        role_columns["label"] = ",".join(roles.label)
    used = {*roles.task, *roles.worker, *roles.label}
    return dataclasses.replace(
        columns,
        layout=LAYOUTS[roles.layout],
        roles=role_columns,
        reason=roles.reason,
        unused=tuple(name for name in table.columns if name not in used),
        wrong=table.wrong,
    )


def _without_extra_rows(table: Table, options: TableOptions) -> Table:
    """Returns a table without Qualtrics' further headers, and with the rows of one question."""
    columns, rows = table.columns, [*range(len(table))]
    if any(text.startswith('{"ImportId"') for text in table.codes(columns[0])[0][:3]):
        rows = rows[2:]
    if options.question is not None:
        column, _, value = options.question.partition("=")
        if column not in columns or value not in table.distinct(column):
            raise UsageError(f"--question: {table.path}: write it as column=value.")
        cells, names = table[column], [name for name in columns if name != column]
        rows, columns = [row for row in rows if cells[row] == value], tuple(names)
    if len(rows) == len(table):
        return table
    chosen = [[cells[row] for row in rows] for cells in map(table.__getitem__, columns)]
    lines = None if table.lines is None else [table.lines[row] for row in rows]
    return dataclasses.replace(table, columns=columns, cells=chosen, lines=lines)


def _of_cells(table: Table, roles: Roles) -> LabelColumns:
    """Returns the labels, or counts of votes, of a table with several in a row."""
    width, counts = len(roles.label), None
    ids = roles.worker if roles.layout == "respondents" else roles.task
    items = table.joined(ids) if ids else [str(row) for row in range(len(table))]
    cells = _interleaved(table, roles.label)
    annotators: Sequence[str] = list(roles.label) * len(table)

    def place(at: int) -> str:
        return f"{table.place(at // width)}, column {roles.label[at % width]!r}"

    if roles.layout == "votes":
        for at, cell in enumerate(cells):
            if not re.fullmatch(r"\s*(\d{1,9}(\.0)?)?\s*", cell):
                column = roles.label[at % width]
                raise error("bad_count", table.path, place(at), column=column, value=cell)
        counts, annotators = [int(float(cell.strip() or 0)) for cell in cells], []
        cells = [_class_of(column, roles.label) for column in roles.label] * len(table)
    elif roles.layout == "pairs":
        annotators = _interleaved(table, roles.worker)
    return LabelColumns(
        items=[item for item in items for _ in range(width)],
        annotators=annotators,
        labels=cells,
        place=place,
        counts=counts,
        annotators_in_columns=roles.layout in ("wide", "matrix"),
        coded=not table.header,
        rows=() if ids else tuple(items),
    )


def _interleaved(table: Table, columns: Sequence[str]) -> list[str]:
    """Returns the cells of several columns, row by row."""
    rows = zip(*(table[column] for column in columns), strict=True)
    return [cell for row in rows for cell in row]


def _class_of(column: str, columns: Sequence[str]) -> str:
    """Returns the class that a column of counts or of 0 and 1 is about, without a common start."""
    start = os.path.commonprefix([*columns])  # noqa: RUF071
    cut = max(start.rfind(sign) for sign in "._ ") + 1
    return column[cut:] if len(columns) > 1 else column


def _one_hot(table: Table, roles: Roles, options: TableOptions) -> list[str | list[str]]:
    """Returns the class of which the column is 1 in each row."""
    names = [_class_of(column, roles.label) for column in roles.label]
    columns = [[cell.strip().lower() in ONES for cell in table[name]] for name in roles.label]
    labels: list[str | list[str]] = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        chosen = [name for name, is_one in zip(names, cells, strict=True) if is_one]
        if len(chosen) != 1 and options.multi_label is None:
            listed = ", ".join(roles.label)
            raise error("one_hot", table.path, table.place(row), count=len(chosen), columns=listed)
        labels.append(chosen[0] if options.multi_label is None else chosen)
    return labels


def of_matrix(matrix: NDArray[Any], path: Path) -> LabelColumns:
    """Returns the labels of an `[N, R]` array of class codes; -1 is missing."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        problem = f"expected a matrix of whole numbers, received shape {matrix.shape}"
        raise broken(path, f"{problem} of {matrix.dtype}")
    names = tuple(map(str, range(matrix.shape[1])))
    cells = [list(map(str, column)) for column in matrix.T.tolist()]
    table = Table(path, names, cells, header=False)
    return dataclasses.replace(_of_cells(table, Roles("matrix", label=names)), layout="matrix")
