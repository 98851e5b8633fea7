"""peerannot's `answers.json`: `{"item": {"annotator": label}}`.

Objects of annotators with items, and of items with numbers of votes by class, look alike. The
reader asks which of them a file is, unless names or numbers tell. A file with peerannot's name and
numbers as keys, as peerannot writes them, has items, unless labels of one key within agree more
often.

References:
    peerannot.github.io, "Datasets": answers.json.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterable

from neucrowd_tf.declare.picking import entries_of, of_type
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.annotator_columns import are_persons, exclude_each_other, vary_together
from neucrowd_tf.io.asking import Asked, Proposal, as_list
from neucrowd_tf.io.column_names import (
    SHOWN,
    are_answers,
    few,
    is_gold,
    is_model,
    is_status,
    is_text,
    num_roles,
)
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.layouts import columns_of
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, as_records, cell_text, table_of_records

NAME = "answers.json"
KEY = "key"
WITHIN = "key within"
# Names of items.
ITEM = re.compile(
    r"(t|q|i|task|item|question|instance|example|sample|image|img|text|sentence|tweet|doc|document)"
    r"[\W_]*\d+|.+\.(jpe?g|png|gif|webp|txt|wav|mp[34])|https?://.+",
    re.IGNORECASE,
)
FEWEST_ITEMS = 5  # of keys that may be items because they are more than the others


def matches(head: Head) -> bool:
    """Whether a file is an object of items with annotators and labels."""
    if head.kind != "json" or not head.keys or not isinstance(head.first, dict):
        return False
    scalars = {*map(type, head.first.values())} <= {str, int, float, bool}
    return scalars and num_roles(head.keys) < 2  # otherwise the columns of a data frame


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the labels; items without any are counted.

    The keys of a data frame are columns, see `_frame_of`.

    Raises:
        Rejection: what the keys are is not certain.
    """
    named = [*options.task_column, *options.worker_column]
    outer = list(head.value)
    objects = of_type(head.value.values(), dict)
    inner = list(dict.fromkeys(itertools.chain.from_iterable(objects)))
    if len(objects) == len(outer):
        frame = _frame_of(head, inner, [*named, *options.label_column])
        if frame is not None:
            return columns_of(frame, options)
    swapped = options.task_column == (WITHIN,) or options.worker_column == (KEY,)
    if not named:
        swapped = _are_people(outer) and not _are_people(inner)
        if not swapped and not _are_people(inner) and len(objects) == len(outer):
            _ask(head, outer, inner)
    roles = (WITHIN, KEY) if swapped else (KEY, WITHIN)
    answers = Answers(head, NAME, options, item=roles[0], annotator=roles[1])
    columns = answers.read(head.keyed(), functools.partial(_add, swapped=swapped))
    people = list(dict.fromkeys(columns.annotators))
    if len(people) > SHOWN:
        return columns
    return dataclasses.replace(columns, notes=(*columns.notes, f"Annotators: {few(people)}."))


def _frame_of(head: Head, inner: list[str], named: list[str]) -> Table | None:
    """Returns a data frame that was written by rows or by columns, None for any other object.

    Its columns are named as roles or by flags. So are they if one is named as true labels, texts or
    states: beside these a table has a column per annotator. Otherwise one of them has several
    values that no other has: annotators share classes.
    """
    outer = list(head.value)
    if num_roles(inner) > 1 or not set(inner).isdisjoint(named):
        return counts_of(head, KEY)
    by_columns = not set(outer).isdisjoint(named)
    are_whole = set(map(frozenset, head.value.values())) == {frozenset(inner)}
    if not named:
        if any(is_gold(key) or is_text(key) or is_status(key) for key in inner):
            return counts_of(head)
        if are_whole and _are_unlike(zip(*map(dict.values, _in_order(head, inner)), strict=True)):
            return counts_of(head, KEY)
        are_many = len(inner) > max(2 * len(outer), FEWEST_ITEMS)
        by_columns = are_many and _are_unlike(map(dict.values, head.value.values()))
    if by_columns and are_whole:
        rows = zip(*map(dict.values, _in_order(head, inner)), strict=True)
        return table_of_records(head.path, as_records(outer, rows))
    return None


def _in_order(head: Head, inner: list[str]) -> list[Fields]:
    """Returns the objects of an object, each with all keys in one order."""
    return [entries_of(objects, inner) for objects in head.value.values()]


def _are_unlike(columns: Iterable[Iterable[object]]) -> bool:
    """Whether a column has several values that no other has; columns of numbers alone say nothing.

    Such may be ratings.
    """
    cells = list(map(list, columns))
    if not of_type(itertools.chain.from_iterable(cells), str):
        return False
    values = [set(map(cell_text, column)) for column in cells]
    counts = Counter(itertools.chain.from_iterable(values))
    return any(len(own) > 1 and all(counts[value] == 1 for value in own) for own in values)


def _are_people(names: list[str]) -> bool:
    return are_persons(names) or all(map(is_model, names))


def _ask(head: Head, outer: list[str], inner: list[str]) -> None:
    """Asks whether keys within are classes with numbers of votes, or items.

    Raises:
        Rejection: they may be.
    """
    annotators: Proposal = {"task_column": KEY, "worker_column": WITHIN}
    as_is = {"If they are annotators": annotators}
    words = {"columns": f"Keys: {few(outer)}. Keys within: {few(inner)}"}
    objects = head.value.values()
    labels = list(itertools.chain.from_iterable(map(dict.values, objects)))
    whole = {*map(type, labels)} <= {int} and min(labels, default=0) >= 0
    if whole and 2 <= len(inner) <= min(SHOWN, len(outer) / 2):
        table = counts_of(head).only(inner)
        reason = exclude_each_other(table, inner)
        ids = all(map(str.isdecimal, inner))
        if not reason and (are_answers(inner) or not (ids or vary_together(table, inner))):
            reason = "have whole numbers"
        if reason:
            words |= {"names": few(inner), "reason": reason}
            votes: Proposal = {"votes_columns": as_list(inner)}
            raise Asked("vote_counts", head.path, words, [votes], as_is).answered(dict)
    are_items = _are_items(outer) and not _are_items(inner)
    if are_items or len(inner) <= max(2 * len(outer), FEWEST_ITEMS):
        return
    keys = map(itertools.repeat, outer, map(len, objects))
    of_key = _agreement(itertools.chain.from_iterable(keys), labels)
    of_within = _agreement(itertools.chain.from_iterable(objects), labels)
    is_theirs = head.path.name == NAME and all(map(str.isdecimal, outer + inner))
    if of_key < of_within or not is_theirs:
        words["problem"] = (
            f"{len(inner):,} keys are within {len(outer):,}, so they may be the items; labels of"
            f" one key within agree in {of_within:.0%} of pairs, those of one key in {of_key:.0%}"
        )
        items: Proposal = {"task_column": WITHIN, "worker_column": KEY}
        likely = annotators if of_key > of_within else items
        either = {"If they are items": items, **as_is}
        raise Asked("which_label", head.path, words, [likely], either).answered(dict)


def _are_items(names: list[str]) -> bool:
    return all(map(ITEM.fullmatch, names))


def _agreement(keys: Iterable[str], labels: list[object]) -> float:
    """Returns the share of equal labels among the pairs of labels that have one key."""
    of_keys = list(zip(keys, map(str, labels), strict=True))
    pairs = _num_pairs(map(operator.itemgetter(0), of_keys))
    return _num_pairs(of_keys) / max(pairs, 1)


def _num_pairs(values: Iterable[object]) -> int:
    """Returns twice the number of pairs of equal values."""
    return sum(count * (count - 1) for count in Counter(values).values())


def counts_of(head: Head, column: str = "item") -> Table:
    """Returns an object of objects as a table, with the outer keys as a column."""
    rows = [{**votes, column: item} for item, votes in head.value.items()]
    return table_of_records(head.path, rows)


def _add(answers: Answers, place: str, entry: tuple[str, Fields], *, swapped: bool) -> None:
    key, labels = entry
    if not labels:
        answers.left_out["items without labels"] += 1
    for other, label in labels.items():
        item, annotator = (other, key) if swapped else (key, other)
        answers.add_form(place, item, annotator, {"label": label})
