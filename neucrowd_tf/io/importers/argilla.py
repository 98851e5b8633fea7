"""Argilla 2's records as `dataset.records.to_json` writes them.

A record has `id`, `fields`, and `responses` by question, each a list with `value` and `user_id`.

References:
    docs.argilla.io, how-to guide on import and export; argilla-io/argilla,
    argilla/src/argilla/records/_io/_generic.py and _json.py.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "Argilla"


def matches(head: Head) -> bool:
    """Whether a file looks like Argilla's."""
    first = head.first or {}
    return isinstance(first.get("responses"), dict) and "fields" in first


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the submitted responses."""
    return Answers(head, NAME, options, item="id", annotator="user_id").read(head.records(), _add)


def _add(answers: Answers, place: str, record: dict[str, Any]) -> None:
    item = record.get("id")
    answers.text(item, record.get("fields") or {})
    for question, responses in (record.get("responses") or {}).items():
        for response in responses or ():
            status = response.get("status") or "submitted"
            if status == "submitted":
                form = {question: response["value"]}
                answers.add_form(place, item, response.get("user_id"), form)
            else:
                answers.left_out[f"{status}, not submitted"] += 1
