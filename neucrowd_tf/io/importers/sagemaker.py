"""SageMaker Ground Truth's labels by worker, before they are consolidated.

Three forms: the folder `annotations/worker-response` of a job (or a zip of it), with a folder per
object that holds JSON with `answers`, each with `workerId` and `answerContent`; a consolidation
request, a list of objects with `datasetObjectId` and `annotations`; an output manifest whose label
attribute holds `annotationsFromAllWorkers`.

References:
    awsdocs/amazon-sagemaker-developer-guide, sms-data-output.md (folders, worker metadata) and
    sms-custom-templates-step3-lambda-requirements.md (consolidation requests). What a custom form
    writes as `answerContent` is not documented; values of crowd-classifier and
    crowd-image-classifier are read, and truth values by option.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head, records
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "SageMaker Ground Truth"
RESPONSES, ALL_WORKERS = "worker-response", "annotationsFromAllWorkers"


def matches(head: Head) -> bool:
    """Whether a file or a folder looks like Ground Truth's."""
    if head.kind in ("zip", "folder"):
        names = [PurePosixPath(name) for name in head.names if name.endswith(".json")]
        return any(
            folder == RESPONSES or folder.startswith("iteration-")
            for n in names
            for folder in n.parts
        )
    first = head.first or {}
    return {"datasetObjectId", "annotations"} <= first.keys() or any(
        isinstance(value, dict) and ALL_WORKERS in value for value in first.values()
    )


def _is_answers(record: dict[str, Any]) -> bool:
    answers = record.get("answers")
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and "answerContent" in answer for answer in answers
    )


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads any of the forms; the names in a form are the questions."""
    answers = Answers(head, NAME, options, item="object", annotator="workerId")
    if head.kind in ("zip", "folder"):
        _read_responses(head, answers)
        return answers.columns()
    for place, record in head.records():
        item = record.get("datasetObjectId", record.get("source-ref", record.get("source")))
        shown = record.get("dataObject") or {"content": item}
        answers.text(item, {"text": shown.get("content") or shown.get("s3Uri")})
        lists = [value.get(ALL_WORKERS) for value in record.values() if isinstance(value, dict)]
        for annotation in [
            entry
            for listed in (record.get("annotations"), *lists)
            for entry in (listed if isinstance(listed, list) else ())
        ]:
            data = annotation.get("annotationData") if isinstance(annotation, dict) else None
            if not isinstance(data, dict) or "content" not in data:
                raise answers.fail(place, "an annotation needs 'annotationData.content'")
            _add(place, item, annotation.get("workerId"), data["content"], answers)
    return answers.columns()


def _read_responses(head: Head, answers: Answers) -> None:
    """Reads a folder per object; its number names the object, with the iteration if needed."""
    files = [(PurePosixPath(name), text) for name, text in head.members((".json",))]
    iterations = {name.parts[-3] for name, _ in files if len(name.parts) > 2}
    depth = 2 if len(iterations) > 1 else 1
    for name, text in files:
        item = "/".join(name.parts[-1 - depth : -1]) or name.stem
        for place, record in records(text, head.path / name, lines=False):
            _add_answers(f"{name}: {place}", item, record, answers)


def _add_answers(place: str, item: str, record: dict[str, Any], answers: Answers) -> None:
    if not _is_answers(record):
        raise answers.fail(place, "a response needs 'answers' with 'answerContent'")
    for answer in record["answers"]:
        _add(place, item, answer.get("workerId"), answer["answerContent"], answers)


def _add(place: str, item: Any, worker: Any, content: Any, answers: Answers) -> None:
    """Adds what one worker's form says: a value per question, or the JSON of it."""
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            raise answers.fail(place, "'content' is not JSON") from None
    if not isinstance(content, dict):
        raise answers.fail(place, "'content' is not an object")
    answers.add_form(place, item, worker, content)
