"""Potato's output folder: a file `<annotator>/user_state.json` per annotator.

`instance_id_to_label_to_value` has a list of pairs per item: the question and option, and a value
("true" if the option was chosen, otherwise a number or a text).

References:
    davidjurgens/potato, potato/user_state_management.py.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers, as_text
from neucrowd_tf.io.schema import TableOptions

NAME = "Potato"
LABELS = "instance_id_to_label_to_value"


def matches(head: Head) -> bool:
    """Whether a file or a folder looks like Potato's."""
    return isinstance((head.first or {}).get(LABELS), dict)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the files of all annotators."""
    return Answers(head, NAME, options, item="key", annotator="user_id").read(head.records(), _add)


def _add(answers: Answers, place: str, record: Fields) -> None:
    for item, pairs in record[LABELS].items():
        chosen: dict[str, list[Any]] = defaultdict(list)
        for option, value in pairs:
            text = as_text(value).lower()
            if text != "false":
                chosen[option["schema"]].append(option["name"] if text == "true" else value)
        for question, choices in chosen.items():
            answers.add(place, item, record["user_id"], question, choices)
