"""SageMaker Ground Truth's labels by worker, before they are consolidated.

Two forms: the folder `annotations/worker-response` of a job (or a zip of it), with a folder per
object that holds JSON with `answers`, each with `workerId` and `answerContent`; an output manifest
whose label attribute holds `annotationsFromAllWorkers`.

References:
    awsdocs/amazon-sagemaker-developer-guide, sms-data-output.md (folders, worker metadata). What a
    custom form writes as `answerContent` is not documented; values of crowd-classifier and
    crowd-image-classifier are read, and truth values by option.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.files.json import parse_json
from neucrowd_tf.io.head import Head, records_of
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "SageMaker Ground Truth"
RESPONSES = "worker-response"
ALL_WORKERS = "annotationsFromAllWorkers"


def matches(head: Head) -> bool:
    """Whether a file or a folder looks like Ground Truth's."""
    if head.has_members:
        folders: set[str] = set()
        for name in head.names:
            if name.endswith(".json"):
                folders.update(PurePosixPath(name).parts)
        return RESPONSES in folders or bool(starting_with(folders, "iteration-"))
    values = (head.first or {}).values()
    return any(isinstance(value, dict) and ALL_WORKERS in value for value in values)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads either of the forms; the names in a form are the questions."""
    answers = Answers(head, NAME, options, item="object", annotator="workerId")
    if head.has_members:
        return answers.read(_responses(head), _add_response)
    return answers.read(head.records(), _add_record)


def _add_record(answers: Answers, place: str, record: Fields) -> None:
    """Adds a line of an output manifest."""
    item = record.get("source-ref", record.get("source"))
    answers.text(item, {"text": item})
    for job in record.values():
        for annotation in job.get(ALL_WORKERS, ()) if isinstance(job, dict) else ():
            content = annotation["annotationData"]["content"]
            _add(answers, place, item, annotation.get("workerId"), content)


def _responses(head: Head) -> Iterator[tuple[str, tuple[str, Fields]]]:
    """Yields the place, the object and the record of each file of a folder per object.

    The folder's number names the object, with the iteration if there are several.
    """
    files = [(PurePosixPath(name), text) for name, text in head.members((".json",))]
    iterations = {name.parts[-3] for name, _ in files if len(name.parts) > 2}
    depth = 1 + (len(iterations) > 1)
    for name, text in files:
        item = "/".join(name.parts[-1 - depth : -1]) or name.stem
        for place, record in records_of(parse_json(text, head.path / name), head.path / name):
            yield f"{name}: {place}", (item, record)


def _add_response(answers: Answers, place: str, entry: tuple[str, Fields]) -> None:
    item, record = entry
    for answer in record["answers"]:
        _add(answers, place, item, answer.get("workerId"), answer["answerContent"])


def _add(answers: Answers, place: str, item: Any, worker: Any, content: Any) -> None:
    """Adds what one worker's form says: a value per question, or the JSON of it."""
    if isinstance(content, str):
        content = json.loads(content)
    answers.add_form(place, item, worker, content)
