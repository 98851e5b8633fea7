"""doccano's exports of a classification project in which each annotator works alone.

A zip of `<username>.jsonl`, whose lines have `id` and a list `label`; a list in it is a span.
Old versions have one file with `annotations`, each with `label` and `user`.

References:
    doccano/doccano, backend/data_export/celery_tasks.py, pipeline/formatters.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head, records_of_lines
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "doccano"
SHARED = "all"  # the file of a project whose annotators share their annotations
QUESTION = "label"


def matches(head: Head) -> bool:
    """Whether a file looks like doccano's; one JSONL alone does not name annotators."""
    if head.has_members:
        return any(name.endswith(".jsonl") and "/" not in name for name in head.names)
    first = head.first or {}
    texts = not first.keys().isdisjoint(("text", "data"))
    return texts and "id" in first and (isinstance(first.get("label"), list) or _has_users(first))


def _has_users(example: Fields) -> bool:
    entries = example.get("annotations")
    return isinstance(entries, list) and all(
        isinstance(entry, dict) and {"user", "label"} <= entry.keys() for entry in entries
    )


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads a file per annotator, or one file; spans are left out."""
    answers = Answers(head, NAME, options, item="id", annotator="user")
    if head.has_members:
        return answers.read(_examples(head), _add)
    if spans := list(map(type, (head.first or {}).get("label", ()))).count(list):
        answers.left_out["spans in the first text"] += spans
        raise answers.nothing()
    return answers.read(((place, (None, line)) for place, line in head.records()), _add)


def _examples(head: Head) -> Iterator[tuple[str, tuple[str | None, Fields]]]:
    """Yields the place, the annotator and the example of each line of each annotator's file."""
    for name, text in head.members((".jsonl",)):
        annotator = PurePosixPath(name).stem
        for place, example in records_of_lines(text, head.path):
            yield f"{name}: {place}", (None if annotator == SHARED else annotator, example)


def _add(answers: Answers, place: str, entry: tuple[str | None, Fields]) -> None:
    annotator, example = entry
    answers.text(example.get("id"), example)
    if _has_users(example):
        by_user: dict[Any, list[Any]] = defaultdict(list)
        for chosen in example["annotations"]:
            if "start_offset" in chosen:
                answers.left_out["spans"] += 1
            else:
                by_user[chosen["user"]].append(chosen["label"])
        for user, labels in by_user.items():
            answers.add(place, example["id"], user, QUESTION, labels)
        return
    chosen = example["label"]
    if not isinstance(chosen, list):
        raise answers.fail(place)
    if list in map(type, chosen):
        answers.left_out["spans"] += len(chosen)
    else:
        answers.add(place, example.get("id"), annotator, QUESTION, chosen)
