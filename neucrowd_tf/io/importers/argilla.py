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

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import choices_of, records

RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
KEPT = ("submitted", None)


def is_export(head: Head) -> bool:
    """Whether a file looks like Argilla's."""
    nested = isinstance(head.first.get("responses"), dict) and "fields" in head.first
    flat = any(key.endswith(USERS) for key in head.first)
    return head.kind == "json" and (nested or flat)


def read(head: Head, found: Collector) -> None:
    """Reads either form."""
    for place, record in records(read_text(head.path), str(head.path)):
        if "id" not in record:
            found.fail(place, "'id'", ", ".join(record) or "none")
        fields = record.get("fields")
        found.text(place, record["id"], fields if isinstance(fields, dict) else record)
        for question, value, user, status in _responses(place, record, found):
            if status not in KEPT:
                found.leave_out(f"{status}, not submitted")
                continue
            choices = choices_of(value)
            if choices is None:
                found.leave_out_kind(question)
                continue
            found.answer(place, record["id"], user, question, choices)


def _responses(
    place: str, record: dict[str, Any], found: Collector
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields question, value, user and status of each response."""
    if isinstance(record.get("responses"), dict):
        for question, given in record["responses"].items():
            for response in given or ():
                if not isinstance(response, dict) or not {"value", "user_id"} <= response.keys():
                    found.fail(place, "responses with 'value' and 'user_id'", repr(response)[:80])
                yield question, response["value"], response["user_id"], response.get("status")
        return
    questions = [key.removesuffix(USERS) for key in record if key.endswith(USERS)]
    if not questions:
        found.fail(place, "'responses' or '<question>.responses.users'", ", ".join(record))
    for question in questions:
        values = record.get(question + RESPONSES) or []
        users = record[question + USERS] or []
        for given in (values, users, record.get(question + STATUS) or []):
            if not isinstance(given, list):
                found.fail(
                    place,
                    f"lists of responses to {question!r}, their users and status",
                    repr(given)[:80],
                )
        status = record.get(question + STATUS) or [None] * len(values)
        if not len(values) == len(users) == len(status):
            found.fail(
                place,
                f"as many users and status as responses to {question!r}",
                f"{len(values)} responses, {len(users)} users, {len(status)} status",
            )
        yield from zip([question] * len(values), values, users, status, strict=True)
