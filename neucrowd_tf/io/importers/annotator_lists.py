"""JSON with the annotators who chose each class: `{"item": {"class": ["annotator", ...]}}`.

Records with an `id` and one such field, `{"id": 7, "votes": {"yes": ["ann"], "no": ["bob"]}}`, are
read as well.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.column_names import is_person
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import roles_of

NAME = "annotators per class"


def _is_lists(value: Any) -> bool:
    """Whether a value maps classes to lists of annotators."""
    if not isinstance(value, dict) or not any(value.values()):
        return False
    for names in value.values():
        if not isinstance(names, list) or not {*map(type, names)} <= {str, int}:
            return False
    return True


def matches(head: Head) -> bool:
    """Whether a file has lists of annotators per class.

    A record that names its annotator or label has other lists, such as those of chosen classes.
    """
    first = head.first or {}
    others = [name for name, value in first.items() if not _is_lists(value)]
    is_record = "id" in others and len(others) == len(first) - 1
    roles = roles_of(others)
    is_label = roles["worker"] or roles["label"] or any(map(is_person, others))
    return _is_lists(first) or (is_record and not is_label)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the lists; an annotator in several lists chose several classes."""
    are_records = not _is_lists(head.first)
    item = "id" if are_records else "key"
    answers = Answers(head, NAME, options, item=item, annotator="lists")
    if are_records:
        return answers.read(head.records(), _add_record)
    if not head.keys:
        raise answers.fail("", "its records have no ids")
    return answers.read(head.keyed(), _add)


def _add_record(answers: Answers, place: str, record: Fields) -> None:
    for question, value in record.items():
        if _is_lists(value):
            _add(answers, place, (record.get("id"), value), question)


def _add(answers: Answers, place: str, entry: tuple[Any, Fields], question: str = "class") -> None:
    item, lists = entry
    chosen: dict[Any, list[str]] = defaultdict(list)
    for label, annotators in lists.items():
        for annotator in annotators:
            chosen[annotator].append(label)
    for annotator, labels in chosen.items():
        answers.add(place, item, annotator, question, labels)
