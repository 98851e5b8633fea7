"""Argilla 2's records as `dataset.records.to_json` writes them.

A record has `id`, `fields`, and `responses` by question, each a list with `value` and `user_id`.
A flat one (`to_list(flatten=True)`, `to_datasets`) has lists of one length instead:
`<question>.responses`, `<question>.responses.users` and `<question>.responses.status`.

References:
    docs.argilla.io, how-to guide on import and export; argilla-io/argilla,
    argilla/src/argilla/records/_io/_generic.py and _json.py.
"""

from __future__ import annotations

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import as_records

NAME = "Argilla"
FLAT = ".responses"


def matches(head: Head) -> bool:
    """Whether a file looks like Argilla's."""
    first = head.first or {}
    return (isinstance(first.get("responses"), dict) and "fields" in first) or bool(_flat(first))


def _flat(record: Fields) -> list[str]:
    """Returns the questions of a flat record."""
    return [key[: -len(FLAT)] for key in record if key.endswith(FLAT) and f"{key}.users" in record]


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the submitted responses."""
    return Answers(head, NAME, options, item="id", annotator="user_id").read(head.records(), _add)


def _add(answers: Answers, place: str, record: Fields) -> None:
    item = record.get("id")
    flat = {key: value for key, value in record.items() if key != "id" and "." not in key}
    answers.text(item, record.get("fields") or (flat if _flat(record) else {}))
    by_question = record.get("responses") or {
        question: _responses(record, question + FLAT) for question in _flat(record)
    }
    for question, responses in by_question.items():
        for response in responses or ():
            status = response.get("status") or "submitted"
            if status == "submitted":
                form = {question: response["value"]}
                answers.add_form(place, item, response.get("user_id"), form)
            else:
                answers.left_out[f"{status}, not submitted"] += 1


def _responses(record: Fields, key: str) -> list[Fields]:
    """Returns the responses of a flat record as others have them."""
    values = record[key] or []
    users = record[f"{key}.users"] or []
    states = record.get(f"{key}.status") or [None] * len(values)
    return as_records(("value", "user_id", "status"), zip(values, users, states, strict=True))
