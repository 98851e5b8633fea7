"""Argilla 2's records, nested or flat.

Nested (`dataset.records.to_json`): `id`, `fields`, and `responses` by question, each a list with
`value` and `user_id`. Flat (`to_list(flatten=True)`, or `to_datasets()` saved with `to_json`):
fields `<question>.responses`, `.responses.users` and `.responses.status`, lists of one length.

References:
    docs.argilla.io, how-to guide on import and export; argilla-io/argilla,
    argilla/src/argilla/records/_io/_generic.py and _json.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "Argilla"
RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"


def matches(head: Head) -> bool:
    """Whether a file looks like Argilla's."""
    first = head.first or {}
    nested = isinstance(first.get("responses"), dict) and "fields" in first
    return nested or any(key.endswith(USERS) for key in first)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the submitted responses."""
    return Answers(head, NAME, options, item="id", annotator="user_id").read(head.records(), _add)


def _add(answers: Answers, place: str, record: dict[str, Any]) -> None:
    item, fields = record.get("id"), record.get("fields")
    answers.text(item, fields if isinstance(fields, dict) else record)
    for question, value, user, status in _responses(record):
        if status in ("submitted", None):
            answers.add_form(place, item, user, {question: value})
        else:
            answers.left_out[f"{status}, not submitted"] += 1


def _responses(record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields question, value, user and status of each response."""
    nested = record.get("responses")
    for question, responses in nested.items() if isinstance(nested, dict) else ():
        for response in responses or ():
            yield question, response["value"], response.get("user_id"), response.get("status")
    for question in [key.removesuffix(USERS) for key in record if key.endswith(USERS)]:
        values, users = (record.get(question + RESPONSES) or [], record[question + USERS] or [])
        status = record.get(question + STATUS) or [None] * len(values)
        yield from zip([question] * len(values), values, users, status, strict=True)
