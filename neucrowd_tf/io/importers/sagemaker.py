"""SageMaker Ground Truth's labels by worker, before they are consolidated.

Three forms: the folder `annotations/worker-response` of a job (or a zip of it), in which a folder
an object holds JSON with `answers`, each with `workerId` and `answerContent`; a consolidation
request, a list of objects with `datasetObjectId` and `annotations`; an output manifest whose label
attribute holds `annotationsFromAllWorkers`.

References:
    awsdocs/amazon-sagemaker-developer-guide, sms-data-output.md (folders, worker metadata) and
    sms-custom-templates-step3-lambda-requirements.md (consolidation requests). What a form of one's
    own writes as `answerContent` is not documented; the values that crowd-classifier and
    crowd-image-classifier write are read, and truth values by option.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.archives import members
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import choices_of, parse, records

RESPONSES = "worker-response"
ALL_WORKERS = "annotationsFromAllWorkers"


def is_export(head: Head) -> bool:
    """Whether a file or a folder looks like Ground Truth's."""
    if head.kind in ("zip", "folder"):
        names = [PurePosixPath(name) for name in head.members]
        json_files = [name for name in names if name.suffix == ".json"]
        return any(
            RESPONSES in name.parts or any(part.startswith("iteration-") for part in name.parts)
            for name in json_files
        )
    first = head.first
    return head.kind == "json" and (
        {"datasetObjectId", "annotations"} <= first.keys()
        or _is_answers(first)
        or any(isinstance(value, dict) and ALL_WORKERS in value for value in first.values())
    )


def _is_answers(value: Any) -> bool:
    answers = value.get("answers")
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and "answerContent" in answer for answer in answers
    )


def read(head: Head, found: Collector) -> None:
    """Reads any of the forms."""
    if head.kind in ("zip", "folder"):
        _read_responses(head, found)
        return
    for place, entry in records(read_text(head.path), str(head.path)):
        if "datasetObjectId" in entry:
            shown = entry.get("dataObject")
            found.text(
                place,
                entry["datasetObjectId"],
                {"text": shown.get("content") or shown.get("s3Uri")} if shown else {},
            )
            _annotations(place, entry["datasetObjectId"], entry.get("annotations"), found)
        elif _is_answers(entry):
            _answers(place, head.path.parent.name, entry, found)
        else:
            task = entry.get("source-ref", entry.get("source"))
            found.text(place, task, {"text": task})
            answered = [
                value[ALL_WORKERS]
                for value in entry.values()
                if isinstance(value, dict) and ALL_WORKERS in value
            ]
            if not answered:
                found.leave_out("objects without workers' answers")
            for given in answered:
                _annotations(place, task, given, found)


def _read_responses(head: Head, found: Collector) -> None:
    files = [
        (name, text)
        for name, text in members(head.path, (".json",))
        if RESPONSES in head.path.parts or RESPONSES in name.parts or "iteration-" in str(name)
    ]
    # An object is called by its folder, a number; by the iteration's too where there are several.
    iterations = {name.parts[-3] for name, _ in files if len(name.parts) > 2}
    for name, text in files:
        depth = 2 if len(iterations) > 1 else 1
        task = "/".join(name.parts[-1 - depth : -1]) or name.stem
        for place, entry in records(text, f"{head.path}: {name}"):
            _answers(f"{name}: {place}", task, entry, found)


def _answers(place: str, task: Any, entry: dict[str, Any], found: Collector) -> None:
    if not _is_answers(entry):
        found.fail(place, "'answers' with 'answerContent'", ", ".join(entry) or "none")
    for answer in entry["answers"]:
        _content(place, task, answer.get("workerId"), answer["answerContent"], found)


def _annotations(place: str, task: Any, given: Any, found: Collector) -> None:
    for annotation in given if isinstance(given, list) else [given]:
        data = annotation.get("annotationData") if isinstance(annotation, dict) else None
        if not isinstance(data, dict) or "content" not in data:
            found.fail(place, "annotations with 'annotationData.content'", repr(annotation)[:80])
        content = data["content"]
        if isinstance(content, str):
            content = parse(content, f"{found.path}: {place}, 'content'")
        _content(place, task, annotation.get("workerId"), content, found)


def _content(place: str, task: Any, worker: Any, content: Any, found: Collector) -> None:
    """Takes what one worker's form says: a value by name, the names being the questions."""
    if not isinstance(content, dict) or not content:
        found.leave_out("without a choice")
    for question, value in _questions(content):
        choices = choices_of(value)
        if choices is None:
            found.leave_out_kind(question)
        else:
            found.answer(place, task, worker, question, choices)


def _questions(content: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(content, dict):
        yield from ((str(name), value) for name, value in content.items())
