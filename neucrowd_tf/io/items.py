"""Tables with a row per item that lie beside the labels: their options, and the items' ids."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neucrowd_tf.declare.types import Fields, Indices, Texts
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import called_id, flagged_columns, is_second
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, head_of, read_table
from neucrowd_tf.names import roles_of


def options_beside(path: Path, options: TableOptions) -> TableOptions:
    """Returns the options that count for a table beside the labels.

    A column counts if the file has one of that name, and the separator is that of the header.
    """
    options = dataclasses.replace(options, header="first", separator=None)
    columns = head_of(path, options, 1).columns
    lower = {column.strip().casefold() for column in columns}
    absent: Fields = {}
    for flag in ("task_column", "worker_column", "label_column"):
        if not {*map(str.casefold, getattr(options, flag))} <= lower:
            absent[flag] = ()
    return dataclasses.replace(options, **absent)


def read_beside(path: Path, options: TableOptions) -> tuple[Table, TableOptions]:
    """Reads a table that belongs to the labels.

    Flags of columns count as far as the file has such columns.

    Returns:
        the table, and the options that count.
    """
    options = options_beside(path, options)
    return read_table(path, options), options


def item_columns(table: Table, options: TableOptions) -> list[str]:
    """Returns the column of items of a table with a row per item: named, an alias, or a likely one.

    Raises:
        DataError: none, or two.
    """
    if options.task_column:
        return flagged_columns(table, options, "task")
    named = roles_of(table.columns)["task"]
    likely = called_id(table.columns) or [c for c in table.columns if is_second(c, "task")]
    return [only_column(table, named or likely, "task", "item")]


def only_column(table: Table, columns: Texts, role: str, noun: str) -> str:
    """Returns the only column of a role.

    Raises:
        DataError: none, or two.
    """
    listed = "Columns: " + ", ".join(table.columns[:12]) + ", ..." * (len(table.columns) > 12)
    advice = f"Name it with --{role}_column"
    if not columns:
        raise error("missing_role", table.path, roles=noun, columns=listed, advice=advice)
    if len(columns) > 1:
        details = {"first": columns[0], "second": columns[1], "role": noun}
        raise error("two_columns", table.path, columns=listed, advice=advice, **details)
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
            if item.strip():
                problem = f"item {item!r} occurs twice"
            else:
                problem = "the item has no id"
            raise broken(table.path, problem, table.place(row))
    return ids


def matched(
    path: Path, names: Texts, items: Texts, place: Callable[[int], str], *, drop: bool, other: str
) -> Indices:
    """Returns where each item of a file is among the items of another, see `match_items`.

    Args:
        path: the file.
        names: its items.
        items: those of the other file.
        place: where name i is.
        drop: whether the file may have further items.
        other: what the other file is.

    Raises:
        DataError: a further item, if they are not dropped, or no item of the other file.
    """
    places = match_items(names, items)
    unmatched = np.flatnonzero(places < 0)
    if len(unmatched) and (not drop or len(unmatched) == len(places)):
        advice = "Leave such items out with --unmatched=drop"
        if len(unmatched) == len(places):
            if items:
                advice = f"Ids there look like {items[0]!r}"
            else:
                advice = "There are no ids"
        details = {"item": names[int(unmatched[0])], "count": len(items), "other": other}
        raise error("unmatched_item", path, place(int(unmatched[0])), advice=advice, **details)
    return places


def match_items(names: Texts, items: Texts) -> Indices:
    """Returns where each name is among `items`, -1 if it is not.

    Names match with and without a file's ending if that is unique: `a.jpg` and `a`.
    """
    index_of = {item: place for place, item in enumerate(items)}
    positions = np.array([index_of.get(name, -1) for name in names], dtype=np.int64)
    if (positions >= 0).all():
        return positions
    stems = Counter(map(_stem, items))
    uses = Counter(map(_stem, names))
    place_of = {_stem(item): place for place, item in enumerate(items)}
    for at in np.flatnonzero(positions < 0).tolist():
        stem = _stem(names[at])
        if stems[stem] == uses[stem] == 1:
            positions[at] = place_of[stem]
    return positions


def _stem(name: str) -> str:
    """Returns an id without a file's ending of two to four letters and digits."""
    start, dot, end = name.rpartition(".")
    if dot and 2 <= len(end) <= 4 and end.isalnum() and not end.isdigit():
        return start
    return name
