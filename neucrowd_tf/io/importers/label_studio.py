"""Label Studio's exports JSON, JSON_MIN and CSV.

JSON is a list of tasks with `data`, `annotations` and `predictions`. An annotation has
`completed_by` (a number, or an object with an e-mail address), `was_cancelled`, `ground_truth` and
`result`, a list of parts with the question (`from_name`) and `value.choices`, `value.taxonomy`,
`value.rating`, or `value.selected` of two sides. A ranking (`value.ranker`) is not read.
A part about a region has the region's `id` or place. Enterprise's `last_action` is "rejected" if a
reviewer rejected. A prediction has `model_version` and `result`.
Before version 1.0, `annotations` was `completions`, without annotators. A storage has a file per
task, or per annotation with its `task`.
JSON_MIN is a list with one object per annotation, CSV has a row for it: the fields of `data` beside
the answers, several choices as `{"choices": [...]}`. A question without an answer is left out.

References:
    labelstud.io/guide/task_format, labelstud.io/guide/export; HumanSignal/label-studio-sdk,
    converter/converter.py (`convert_to_json_min`).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from neucrowd_tf.declare.flag_parsing import parse_value
from neucrowd_tf.declare.picking import of_type
from neucrowd_tf.declare.types import Fields, NamedValues
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import OF_PARTS, TEXT_FIELDS, Answers, as_text, choices_of
from neucrowd_tf.io.importers.tables import rows
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import without

NAME = "Label Studio"
MIN = ("id", "annotator", "annotation_id")  # other tables have an id of the annotation too
ABOUT = {*MIN, "created_at", "updated_at", "lead_time", "agreement"}
# Keys of a part's value that say where in an image, a text, a sound or a video the part is.
PLACE = frozenset(
    ("x", "y", "points", "vertices", "rle", "start", "end", "startOffset", "globalOffsets",
     "ranges", "sequence")
)  # fmt: skip


def matches(head: Head) -> bool:
    """Whether a file looks like one of the two exports."""
    first = head.first or {}
    lists = any(isinstance(first.get(name), list) for name in ("annotations", "completions"))
    stored = isinstance(first.get("task"), dict) and isinstance(first.get("result"), list)
    flat = set(MIN) <= first.keys() or set(MIN) <= set(head.columns)
    return ("data" in first and lists) or stored or flat


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads annotations, and predictions as labels of an annotator per model version."""
    if set(MIN) <= {*head.columns, *(head.first or {})}:
        return _read_flat(head, options)
    answers = Answers(head, NAME, options, item="id", annotator="completed_by")
    return answers.read(head.records(), functools.partial(_add_task, _emails(head)))


def _read_flat(head: Head, options: TableOptions) -> LabelColumns:
    """Reads JSON_MIN or CSV; flags may name other fields of items and annotators."""
    item = ",".join(options.task_column) or "id"
    annotator = ",".join(options.worker_column) or "annotator"
    answers = Answers(head, NAME, options, item=item, annotator=annotator)
    return answers.read(rows(head.table()) if head.columns else head.records(), _add_flat)


def _add_flat(answers: Answers, place: str, record: Fields) -> None:
    item = record[answers.item]
    by = record[answers.annotator]
    form = {}
    for name in without(record, {*ABOUT, *TEXT_FIELDS, answers.item, answers.annotator}):
        value = record[name]
        if isinstance(value, str) and value[:1] in ("{", "["):
            value = parse_value(value)
        if value is not None:
            form[name] = value
    answers.text(item, record)
    answers.submission(place, item, by)
    answers.add_form(place, item, by, form)


def _emails(head: Head) -> dict[str, str]:
    """Returns annotators' addresses by number; some annotations may have the number alone."""
    emails = {}
    for _, task in head.records():
        annotations = task.get("annotations")
        for entry in annotations if isinstance(annotations, list) else ():
            by = entry.get("completed_by") if isinstance(entry, dict) else None
            if isinstance(by, dict) and by.get("id") and by.get("email"):
                emails[as_text(by["id"])] = by["email"]
    return emails


def _add_task(emails: Mapping[str, str], answers: Answers, place: str, task: Fields) -> None:
    if isinstance(task.get("task"), dict):
        task = {**task["task"], "annotations": [task]}
    if isinstance(task.get("data"), dict):
        answers.text(task["id"], task["data"])
    old = "completions" in task
    for number, annotation in enumerate(task["completions" if old else "annotations"], 1):
        by = annotation.get("completed_by", annotation.get("created_username"))
        if isinstance(by, dict):
            by = by.get("email") or by.get("id")
        by = emails.get(as_text(by), by)
        if old and by is None:
            by = f"completion {number}"
            answers.counted["completions name no annotator; the k-th is read as annotator k's"] += 1
        _add(place, task["id"], by, annotation, answers)
    for prediction in task.get("predictions") or ():
        if isinstance(prediction, dict):
            by = f"model {prediction.get('model_version') or ''}".strip()
            _add(place, task["id"], by, prediction, answers)
            answers.counted["predictions are read as labels of models"] += 1


def _add(place: str, task: Any, by: Any, annotation: Any, answers: Answers) -> None:
    """Adds what one annotation or prediction says about its task."""
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        answers.left_out["skipped by the annotator"] += 1
        return
    if annotation.get("last_action") == "rejected":
        answers.left_out["rejected by a reviewer"] += 1
        return
    if annotation["result"] is None:
        answers.left_out["annotations without a result"] += 1
        return
    results = of_type(annotation["result"], dict)
    answers.at(annotation)
    regions = {result.get("id") for result in results if _has_place(result)} - {None}
    chosen: dict[str, list[Any]] = defaultdict(list)
    for result in results:
        choices = _choices(result.get("value"))
        if choices is None:
            answers.left_out[f"results of type {result.get('type', 'unknown')}"] += 1
        elif _has_place(result) or result.get("id") in regions:
            answers.left_out["choices about a region"] += 1
        else:
            chosen[str(result.get("from_name", ""))].extend(choices)
    if results and not chosen:
        answers.left_out[OF_PARTS] += 1
    else:
        answers.submission(place, task, by)
    for question, choices in chosen.items():
        answers.add(place, task, by, question, choices)
        if annotation.get("ground_truth"):
            answers.gold(task, question, choices)


def _choices(value: Any) -> list[Any] | None:
    """Returns what was chosen: choices, paths of a taxonomy, a rating, or one of two sides."""
    for key in ("choices", "taxonomy", "rating", "selected"):
        if isinstance(value, dict) and value.get(key) is not None:
            return choices_of(value[key])
    return None


def _has_place(result: NamedValues) -> bool:
    """Whether a part is a region, or about one, rather than about the whole task."""
    value = result.get("value")
    return isinstance(value, dict) and not PLACE.isdisjoint(value)
