"""LeWiDi's JSON: items with the lists of their annotators and annotations.

2023: `annotators` is "Ann1,Ann2" and `annotations` is "0,1". 2025: `annotations` is an object of
annotators and labels. EXIST's files are alike: `annotators` and the answers to each question
(`labels_task1`) are lists of one length.

References:
    le-wi-di.github.io, LeWiDi_2-2023 and LeWiDi_3-2025.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "LeWiDi"
ANNOTATORS = "annotators"


def matches(head: Head) -> bool:
    """Whether a file looks like LeWiDi's."""
    first = head.first or {}
    lists = any(isinstance(first.get(name), (list, dict, str)) for name in _questions(first))
    return isinstance(first.get(ANNOTATORS), (str, list)) and lists


def _questions(record: Fields) -> list[str]:
    return [name for name in record if name == "annotations" or name.startswith("labels")]


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads one question of the items."""
    item = "key" if head.keys else "id"
    answers = Answers(head, NAME, options, item=item, annotator=ANNOTATORS)
    if head.keys:
        return answers.read(head.keyed(), _add)
    return answers.read(
        ((place, (record.get("id", place), record)) for place, record in head.records()), _add
    )


def _add(answers: Answers, place: str, entry: tuple[Any, Fields]) -> None:
    """Adds the labels of an item, by its id and its record."""
    item, record = entry
    answers.text(item, record)
    annotators = _listed(record[ANNOTATORS])
    for question in _questions(record):
        labels = record[question]
        if isinstance(labels, dict):
            pairs = list(labels.items())
        else:
            pairs = list(zip(annotators, _listed(labels), strict=True))
        for annotator, label in pairs:
            answers.add_form(place, item, annotator, {question: label})


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return list(filter(None, str(value or "").split(",")))
