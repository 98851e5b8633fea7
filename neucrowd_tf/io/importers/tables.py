"""What the tools share that write tables with a row per answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from neucrowd_tf.declare.types import Texts
from neucrowd_tf.io import layouts
from neucrowd_tf.io.column_names import flagged_columns
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import JOINT, Table


def rows(table: Table) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the place of each row, and its cells by column."""
    for row, cells in enumerate(table.cells_by_row(table.columns)):
        yield table.place(row), dict(zip(table.columns, cells, strict=True))


def named_columns(table: Table, options: TableOptions, role: str, otherwise: Texts) -> list[str]:
    """Returns the columns that the flag of a role names, or else the tool's."""
    return flagged_columns(table, options, role) or list(otherwise)


def of_columns(
    head: Head, name: str, options: TableOptions, items: Texts, annotators: Texts
) -> Answers:
    """Returns the answers of a table whose columns of items and annotators flags may name."""
    others = dataclasses.replace(options, task_column=(), worker_column=())
    return Answers(head, name, others, item=JOINT.join(items), annotator=JOINT.join(annotators))


def after(prefix: str, cells: dict[str, str]) -> dict[str, str]:
    """Returns the cells of the columns that begin with a prefix, by the rest of the name."""
    return {name.removeprefix(prefix): cells[name] for name in cells if name.startswith(prefix)}


def joined(cells: dict[str, str], columns: Texts) -> str:
    """Returns the cells of several columns of a row as one id, see `Table.joined`."""
    texts = list(map(cells.__getitem__, columns))
    return JOINT.join(texts) * all(texts)


def read_table(
    head: Head,
    options: TableOptions,
    name: str,
    *,
    item: str,
    annotator: str,
    answers: Texts,
    notes: Texts = (),
) -> LabelColumns:
    """Reads a table whose columns of items and annotators are the tool's.

    Args:
        head: the file.
        options: columns that they name come first.
        name: the tool's.
        item: the column of items.
        annotator: the column of annotators.
        answers: the columns among which the label's is looked for.
        notes: lines to print.
    """
    table = head.table()
    items = named_columns(table, options, "task", [item])
    annotators = named_columns(table, options, "worker", [annotator])
    labels = named_columns(table, options, "label", answers)
    options = dataclasses.replace(
        options, task_column=tuple(items), worker_column=tuple(annotators)
    )
    columns = layouts.columns_of(table.only([*items, *annotators, *labels]), options)
    return dataclasses.replace(columns, layout=name, notes=tuple(notes), unused=())
