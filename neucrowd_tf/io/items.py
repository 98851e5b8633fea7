"""Tables with a row per item that lie beside the labels: their options, and the items' ids."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neucrowd_tf.declare.types import Fields, Indices, Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import SHOWN, called, flagged_columns, second_tier
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, head_of, read_table
from neucrowd_tf.io.tables.writing import bare_name
from neucrowd_tf.names import listed, places_of, positions, roles_of


def options_beside(path: Path, options: TableOptions) -> TableOptions:
    """Returns the options that count for a table beside the labels.

    A column counts if the file has one of that name, and the separator if it is in the header.
    Otherwise the separator is that of the header.
    """
    named = dataclasses.replace(options, header="first")
    options = dataclasses.replace(named, separator=None)
    columns = head_of(path, options, 1).columns
    if named.separator is not None and (named.separator != " " or len(columns) == 1):
        with contextlib.suppress(DataError):  # of another file
            parted = head_of(path, named, 1).columns
            if len(parted) > 1:
                options, columns = named, parted
    lower = {column.strip().casefold() for column in columns}
    for flag in ("task_column", "worker_column", "label_column"):
        if not lower.issuperset(map(str.casefold, getattr(options, flag))):
            absent: Fields = {flag: ()}
            options = dataclasses.replace(options, **absent)
    return options


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
    columns = table.columns
    likely = roles_of(columns)["task"] or called(columns, "id") or second_tier(columns, "task")
    return [only_column(table, likely, "task", "item")]


def only_column(table: Table, columns: Texts, role: str, noun: str) -> str:
    """Returns the only column of a role.

    Raises:
        DataError: none, or two.
    """
    words = {
        "columns": f"Columns: {listed(table.columns, SHOWN)}",
        "advice": f"Name it with --{role}_column, by its name in the first line",
    }
    if not columns:
        raise error("missing_role", table.path, roles=noun, **words)
    first, *others = columns
    if others:
        raise error("two_columns", table.path, first=first, second=others[0], role=noun, **words)
    return first


def item_ids(table: Table, options: TableOptions) -> list[str]:
    """Returns the ids of a table with a row per item.

    Raises:
        DataError: no column of ids, an empty id, or an item twice.
    """
    ids = table.joined(item_columns(table, options))
    if not options.exact_names:
        ids = list(map(str.strip, ids))
    if not ids:
        raise broken(table.path, "the file has no rows")
    seen: dict[str, int] = {}
    for row, item in enumerate(ids):
        if not item.strip():
            raise broken(table.path, "the item has no id", table.place(row))
        if seen.setdefault(item, row) != row:
            raise broken(table.path, f"item {item!r} occurs twice", table.place(row))
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
        DataError: an item that the other file lacks, unless `drop`, or no item in common.
    """
    places = match_items(names, items)
    unmatched = np.flatnonzero(places < 0).tolist()
    none_matches = len(unmatched) == len(places)
    if unmatched and (not drop or none_matches):
        advice = "Remove such items, or train with --unmatched=drop"
        if none_matches:
            advice = f"Ids there look like {items[0]!r}" if items else "There are no ids"
        raise error(
            "unmatched_item",
            path,
            place(unmatched[0]),
            advice=advice,
            item=names[unmatched[0]],
            count=len(items),
            other=other,
        )
    return places


def match_items(names: Texts, items: Texts) -> Indices:
    """Returns where each name is among `items`, -1 if it is not.

    Names match in other spellings too if that is unique: with outer spaces, an apostrophe of
    `text_cell` or `.0`, in another Unicode form, and with and without a file's ending: `a.jpg` and
    `a`, not `a.png`.
    """
    places = places_of(names, positions(items))
    if (places >= 0).all():
        return places
    distinct = list(map(_spelling, {*names}))
    spellings = list(map(_spelling, names))
    of_items = list(map(_spelling, items))
    for form in (str, _stem):
        counts = Counter(map(form, of_items))
        uses = Counter(map(form, distinct))
        place_of = positions(map(form, of_items))
        for at in np.flatnonzero(places < 0).tolist():
            key = form(spellings[at])
            one_lacks_it = key in (spellings[at], of_items[place_of.get(key, 0)])
            if counts[key] == uses[key] == 1 and one_lacks_it:
                places[at] = place_of[key]
    return places


def _spelling(name: str) -> str:
    """Returns what spellings of an id have in common."""
    return re.sub(r"(?<=\d)\.0+$", "", bare_name(name).removeprefix("'"))


def _stem(name: str) -> str:
    """Returns an id without a file's ending of two to four letters and digits."""
    start, dot, end = name.rpartition(".")
    if dot and 2 <= len(end) <= 4 and end.isalnum() and not end.isdigit():
        return start
    return name
