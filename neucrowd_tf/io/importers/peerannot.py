"""peerannot's `answers.json`: `{"item": {"annotator": label}}`.

References:
    peerannot.github.io, "Datasets": answers.json.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import roles_of

NAME = "answers.json"


def matches(head: Head) -> bool:
    """Whether a file is an object of items with annotators and labels."""
    if head.kind != "json" or not head.keys or not isinstance(head.first, dict):
        return False
    scalars = all(isinstance(label, (str, int, float)) for label in head.first.values())
    columns = sum(bool(names) for names in roles_of(list(head.keys)).values())
    return scalars and columns < 2  # otherwise the columns of a data frame


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the labels; items without any are counted."""
    answers = Answers(head, NAME, options, item="key", annotator="key within")
    return answers.read(((f"item {item!r}", (item, of)) for item, of in head.value.items()), _add)


def _add(answers: Answers, place: str, entry: tuple[str, dict[str, Any]]) -> None:
    item, labels = entry
    if not labels:
        answers.left_out["items without labels"] += 1
    for annotator, label in labels.items():
        answers.add_form(place, item, annotator, {"label": label})
