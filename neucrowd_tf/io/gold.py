"""True labels of items: tables that lie beside the labels."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Indices, Texts
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import (
    called,
    few,
    flagged_columns,
    is_gold,
    is_missing,
    second_tier,
)
from neucrowd_tf.io.items import item_columns, match_items, matched, only_column, read_beside
from neucrowd_tf.io.labels import report_on_stderr
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.io.tables.writing import name_of
from neucrowd_tf.io.values import binned, decimal_points, one_spelling, split_cell
from neucrowd_tf.names import positions, roles_of, without

DRAWN = "drawn"  # the column that says how the command `gold` drew an item
RANDOM = "random"
ANSWERS = ("no", "yes")  # to the question of a class
Pairs: TypeAlias = Sequence[tuple[str, str]]
Cell: TypeAlias = tuple[int, str, str]  # the row, the item and the label
_item_of = operator.itemgetter(1)


def read_true_labels(
    path: Path,
    items: Texts,
    classes: Texts,
    options: TableOptions = DEFAULTS,
    *,
    drop: bool = False,
    pairs: Pairs | None = None,
) -> Indices:
    """Reads a table with items and their true labels.

    Args:
        path: the file.
        items: `[N]` ids as text.
        classes: `[C]` names as text.
        options: how the labels are written; see `read_beside`.
        drop: whether the file may have other items, which are left out and counted.
        pairs: `[N]` the item and the class that each of `items` asks about, if cells have several
            labels. True labels are then those of each question, or all classes of an item.

    Returns:
        `[N]` class codes, -1 for items without a true label.

    Raises:
        DataError: a missing column, an item or a class that is not there, or an item twice with
            different labels.
    """
    table, options = read_beside(path, options)
    ids = table.joined(item_columns(table, options))
    column = _true_labels_column(table, options)
    if DRAWN in table.columns:
        others = without(table.distinct(DRAWN), [RANDOM])
        if others:
            report_on_stderr(
                f"{path.name}: items were drawn by {', '.join(others)}, not at random: accuracy and"
                " class shares are those of such items, and not of the others."
            )
    codes = positions(classes)
    rows: list[int] = []
    labels: list[str] = []
    names: list[str] = []
    exact = set(items)
    cells = list(zip(range(len(ids)), ids, table[column], strict=True))
    if pairs is not None:
        cells = _of_questions(table, column, cells, pairs, options)
    for row, item, cell in cells:
        label = name_of(cell, codes)
        if label not in codes and not re.fullmatch(r"\d+,\d{3}", label):  # it may be a thousand
            [label] = one_spelling(decimal_points([label]), classes)
        if options.bins and label not in codes:
            label = binned(label, classes)
        if label in codes or not is_missing(label, options):
            rows.append(row)
            labels.append(label)
            names.append(name_of(item, exact))
    other = "the labels or features"
    indices = matched(path, names, items, lambda at: table.place(rows[at]), drop=drop, other=other)
    truth = np.full(len(items), -1, dtype=np.int64)
    for row, label, index in zip(rows, labels, indices.tolist(), strict=True):
        if index < 0:
            continue
        if label not in codes:
            listed = few(classes, 8)
            raise error("unknown_class", path, table.place(row), label=label, classes=listed)
        if truth[index] not in (-1, codes[label]):
            problem = f"item {ids[row]!r} occurs twice, with different labels"
            raise broken(path, problem, table.place(row))
        truth[index] = codes[label]
    if (truth < 0).all():
        raise error("no_labels", path, problem=f"; fill in the column {column!r}, it is empty")
    notes = []
    if missing := len(cells) - len(rows):
        notes.append(f"{missing:,} true labels are missing")
    if extra := int((indices < 0).sum()):
        notes.append(f"{extra:,} items without labels or features are left out")
    if notes:
        report_on_stderr(f"{path.name}: {' and '.join(notes)}.")
    return truth


def _of_questions(
    table: Table, column: str, cells: Sequence[Cell], pairs: Pairs, options: TableOptions
) -> list[Cell]:
    """Returns the true labels of questions, each about an item and a class.

    A table has a row per question, with a column `class` or the question's name as the item. In
    any other a cell has all classes of its item.

    Raises:
        DataError: a class that no question is about, or a cell that is no list.
    """
    items = list(dict.fromkeys(item for item, _ in pairs))
    classes = list(dict.fromkeys(of_class for _, of_class in pairs))
    titles = called(without(table.columns, [column]), "class")
    name = "{} [{}]".format
    if not titles and not set(itertools.starmap(name, pairs)).isdisjoint(map(_item_of, cells)):
        return list(cells)
    places = match_items(list(map(_item_of, cells)), items).tolist()
    questions = []
    for (row, item, cell), at in zip(cells, places, strict=True):
        if at < 0 or (not titles and is_missing(cell, options)):
            questions.append((row, item, cell))
            continue
        if titles:
            asked = name_of(table[titles[0]][row], set(classes))
            questions.append((row, name(items[at], asked), cell))
            continue
        place = table.place(row)
        parted = split_cell(table.path, cell, options.multi_label or "list", place)
        chosen = [name_of(text, set(classes)) for text in parted]
        for label in without(chosen, classes):
            listed = few(classes, 8)
            raise error("unknown_class", table.path, place, label=label, classes=listed)
        for of_class in classes:
            questions.append((row, name(items[at], of_class), ANSWERS[of_class in chosen]))
    return questions


def _true_labels_column(table: Table, options: TableOptions) -> str:
    """Returns the column of true labels: named, as `gold` calls it, an alias, or a likely one."""
    names = table.columns
    columns = (
        flagged_columns(table, options, "label")
        or list(filter("true_label".__eq__, names))
        or [*filter(is_gold, names), *roles_of(names)["label"]]
        or second_tier(names, "label")
    )
    return only_column(table, columns, "label", "label")


def read_gold(
    path: Path,
    annotations: Annotations,
    options: TableOptions = DEFAULTS,
    pairs: Pairs | None = None,
) -> dict[object, object]:
    """Reads true labels of some items; those of other items are left out and counted.

    Args:
        path: the file.
        annotations: whose items and classes the file has.
        options: how the labels are written.
        pairs: see `read_true_labels`.

    Returns:
        label by item, with the annotations' own names.

    Raises:
        DataError: see `read_true_labels`; no item that has labels.
    """
    items = annotations.instance_names.tolist()
    classes = annotations.class_names.tolist()
    names = list(map(str, items))
    texts = list(map(str, classes))
    true = read_true_labels(path, names, texts, options, drop=True, pairs=pairs)
    return {items[at]: classes[true[at]] for at in np.flatnonzero(true >= 0).tolist()}
