"""Tables with a row per item that lie beside the labels: their options, and the items' ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import flagged_columns, is_second
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, head_of
from neucrowd_tf.names import ROLES, folded, roles_of


def options_beside(path: Path, options: TableOptions) -> TableOptions:
    """Returns the options that count for a table beside the labels.

    A separator counts if the file has it, and a column if the file has one of that name.
    """
    options = dataclasses.replace(options, header="first")
    columns = head_of(path, options, 1).columns
    if options.separator is not None and len(columns) == 1:
        options = dataclasses.replace(options, separator=None)
        columns = head_of(path, options, 1).columns
    lower = {column.strip().casefold() for column in columns}
    absent: Any = {
        f"{role}_column": ()
        for role in ROLES
        if any(name.casefold() not in lower for name in getattr(options, f"{role}_column"))
    }
    return dataclasses.replace(options, **absent)


def item_columns(table: Table, options: TableOptions) -> list[str]:
    """Returns the column of items of a table with a row per item: named, an alias, or a likely one.

    Raises:
        DataError: none, or two.
    """
    if options.task_column:
        return flagged_columns(table, options, "task")
    named = roles_of(table.columns)["task"]
    likely = [c for c in table.columns if folded(c) == "id"] or [
        c for c in table.columns if is_second(c, "task")
    ]
    return [only_column(table, named or likely, "task", "item")]


def only_column(table: Table, columns: Sequence[str], role: str, word: str) -> str:
    """Returns the only column of a role.

    Raises:
        DataError: none, or two.
    """
    shown = "Columns: " + ", ".join(table.columns[:12]) + ", ..." * (len(table.columns) > 12)
    advice = f"Name it with --{role}_column"
    if not columns:
        raise error("missing_role", table.path, roles=word, columns=shown, advice=advice)
    if len(columns) > 1:
        words = {"first": columns[0], "second": columns[1], "role": word}
        raise error("two_columns", table.path, columns=shown, advice=advice, **words)
    return columns[0]


def item_ids(table: Table, options: TableOptions) -> list[str]:
    """Returns the ids of a table with a row per item.

    Raises:
        DataError: no column of ids, an empty id, or an item twice.
    """
    ids = table.joined(item_columns(table, options))
    if not options.exact_names:
        ids = [item.strip() for item in ids]
    if not ids:
        raise broken(table.path, "the file has no rows")
    seen: dict[str, int] = {}
    for row, item in enumerate(ids):
        if not item.strip() or seen.setdefault(item, row) != row:
            problem = f"item {item!r} occurs twice" if item.strip() else "the item has no id"
            raise broken(table.path, problem, table.place(row))
    return ids
