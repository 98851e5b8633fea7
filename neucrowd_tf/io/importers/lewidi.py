"""LeWiDi's JSON: items with the lists of their annotators and annotations.

2023: `annotators` is "Ann1,Ann2" and `annotations` is "0,1". 2025: `annotations` is an object of
annotators and labels. EXIST's files are alike: `annotators` and the answers to each question
(`labels_task1`) are lists of one length.

References:
    le-wi-di.github.io, LeWiDi_2-2023 and LeWiDi_3-2025.
"""

from __future__ import annotations

from typing import Any

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


def _questions(record: dict[str, Any]) -> list[str]:
    return [name for name in record if name == "annotations" or name.startswith("labels")]


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads one question of the items."""
    answers = Answers(head, NAME, options, item="key", annotator=ANNOTATORS)
    value = head.value() if head.kind == "json" else None
    entries = value.items() if isinstance(value, dict) else head.records()
    for place, record in entries:
        item = place if isinstance(value, dict) else record.get("id", place)
        where = f"item {place!r}" if isinstance(value, dict) else place
        if not isinstance(record, dict) or ANNOTATORS not in record:
            raise answers.fail(where, "an item needs 'annotators' and 'annotations'")
        answers.text(item, record)
        annotators = _listed(record[ANNOTATORS])
        for question in _questions(record):
            labels = record[question]
            pairs = list(labels.items()) if isinstance(labels, dict) else None
            if pairs is None:
                labels = _listed(labels)
                if len(labels) != len(annotators):
                    raise answers.fail(
                        where, f"{len(annotators)} annotators, {len(labels)} values of {question!r}"
                    )
                pairs = list(zip(annotators, labels, strict=True))
            for annotator, label in pairs:
                answers.add_form(where, item, annotator, {question: label})
    return answers.columns()


def _listed(value: Any) -> list[Any]:
    return (
        value if isinstance(value, list) else [name for name in str(value or "").split(",") if name]
    )
