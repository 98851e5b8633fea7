"""doccano's exports of a classification project in which each annotator works alone.

Since version 1.3: a zip of `<username>.jsonl` (or .json), whose lines have `id` and a list `label`.
Before: one JSONL with `annotations`, each with `label` and `user` (numbers).

References:
    doccano/doccano, backend/data_export/celery_tasks.py, pipeline/formatters.py; issues 113, 749
    and pull request 889 for the old form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head, records
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "doccano"
ENDINGS = (".jsonl", ".json")
SHARED = "all"  # the file of a project whose annotators share their annotations
QUESTION = "label"


def matches(head: Head) -> bool:
    """Whether a file looks like doccano's."""
    if head.kind in ("zip", "folder"):
        names = [PurePosixPath(name) for name in head.names]
        return any(name.suffix == ".jsonl" and len(name.parts) == 1 for name in names)
    return _is_of_one(head.first or {}) or _is_old(head.first or {})


def _is_of_one(first: dict[str, Any]) -> bool:
    """Whether a record is of a file without annotators' names."""
    texts = not first.keys().isdisjoint(("text", "data"))
    return texts and "id" in first and isinstance(first.get("label"), list)


def _is_old(first: dict[str, Any]) -> bool:
    parts = first.get("annotations")
    return isinstance(parts, list) and all(
        isinstance(entry, dict) and {"label", "user"} <= entry.keys() for entry in parts
    )


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads any of the forms; spans are left out."""
    answers = Answers(head, NAME, options, item="id", annotator="user")
    if head.kind in ("zip", "folder"):
        return answers.read(_examples(head), _add)
    first = head.first or {}
    if _is_of_one(first) and any(isinstance(label, list) for label in first["label"]):
        answers.left_out["spans in the first text"] += len(first["label"])
        raise answers.nothing()
    entries = ((place, (example, _by_annotator(example))) for place, example in head.records())
    return answers.read(entries, _add)


def _examples(head: Head) -> Iterator[tuple[str, tuple[dict[str, Any], dict[Any, Any]]]]:
    """Yields the place, the example and its labels by annotator, of a file per annotator."""
    for name, text in head.members(ENDINGS):
        annotator = PurePosixPath(name).stem
        whose = None if annotator == SHARED else annotator
        for place, example in records(text, head.path, lines=name.endswith("l")):
            yield f"{name}: {place}", (example, {whose: example.get("label")})


def _by_annotator(example: dict[str, Any]) -> dict[Any, Any]:
    """Returns the labels of an example in one file by annotator; a span is a list."""
    if not isinstance(example.get("annotations"), list):
        return {None: example.get("label")}
    labels: dict[Any, Any] = defaultdict(list)
    for entry in example["annotations"]:
        label = entry.get("label_name", entry["label"])
        span = "start_offset" in entry
        labels[entry.get("user_name", entry.get("user"))].append([label] if span else label)
    return labels


def _add(answers: Answers, place: str, entry: tuple[dict[str, Any], dict[Any, Any]]) -> None:
    """Adds an example's labels by annotator."""
    example, labels = entry
    answers.text(example.get("id"), example)
    for annotator, chosen in labels.items():
        if not isinstance(chosen, list):
            raise answers.fail(place)
        if any(isinstance(label, list) for label in chosen):
            answers.left_out["spans"] += len(chosen)
        else:
            answers.add(place, example.get("id"), annotator, QUESTION, chosen)
