"""peerannot's `answers.json`: `{"item": {"annotator": label}}`.

Objects of annotators with items, and of items with numbers of votes by class, look alike: which of
them it is is asked, unless names or numbers tell.

References:
    peerannot.github.io, "Datasets": answers.json.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.annotator_columns import are_persons, exclude_each_other, vary_together
from neucrowd_tf.io.asking import Asked, Proposal, as_list
from neucrowd_tf.io.column_names import SHOWN, are_answers, few, is_model
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, table_of_records
from neucrowd_tf.names import num_roles

NAME = "answers.json"
KEY = "key"
WITHIN = "key within"
FEWEST_ITEMS = 5  # of keys that may be items because they are more than the others


def matches(head: Head) -> bool:
    """Whether a file is an object of items with annotators and labels."""
    if head.kind != "json" or not head.keys or not isinstance(head.first, dict):
        return False
    scalars = {*map(type, head.first.values())} <= {str, int, float, bool}
    return scalars and num_roles(head.keys) < 2  # otherwise the columns of a data frame


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the labels; items without any are counted.

    Raises:
        Rejection: what the keys are is not certain.
    """
    named = [*options.task_column, *options.worker_column]
    outer = list(head.value)
    objects = [labels for labels in head.value.values() if isinstance(labels, dict)]
    inner = list(dict.fromkeys(itertools.chain.from_iterable(objects)))
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
    numbers = list(itertools.chain.from_iterable(map(dict.values, head.value.values())))
    whole = {*map(type, numbers)} <= {int} and min(numbers, default=0) >= 0
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
    if len(inner) > max(2 * len(outer), FEWEST_ITEMS):
        words["problem"] = (
            f"{len(inner):,} keys are within {len(outer):,}, so they may be the items"
        )
        items: Proposal = {"task_column": WITHIN, "worker_column": KEY}
        raise Asked("which_label", head.path, words, [items], as_is).answered(dict)


def counts_of(head: Head) -> Table:
    """Returns an object of items and their numbers of votes by class as a table."""
    rows = [{**votes, "item": item} for item, votes in head.value.items()]
    return table_of_records(head.path, rows)


def _add(answers: Answers, place: str, entry: tuple[str, Fields], *, swapped: bool) -> None:
    key, labels = entry
    if not labels:
        answers.left_out["items without labels"] += 1
    for other, label in labels.items():
        item, annotator = (other, key) if swapped else (key, other)
        answers.add_form(place, item, annotator, {"label": label})
