"""Labelbox's NDJSON: a line per data row, with the labels of each project.

`projects.<id>.labels[]` holds `label_details.created_by` and `annotations.classifications[]`, each
with its `name` (the question) and `radio_answer` or `checklist_answers`.

References:
    docs.labelbox.com/reference/export-quick-reference, /export-text-annotations,
    /export-image-annotations.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions

NAME = "Labelbox"


def matches(head: Head) -> bool:
    """Whether a file looks like Labelbox's."""
    return {"data_row", "projects"} <= (head.first or {}).keys()


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the data rows; the item is the global key, or the id if it is missing."""
    answers = Answers(head, NAME, options, item="global_key", annotator="created_by")
    return answers.read(head.records(), _add_row)


def _add_row(answers: Answers, place: str, line: Fields) -> None:
    """Adds the labels of all projects for a data row; reviews are not read."""
    row = line["data_row"]
    item = row.get("global_key") or row.get("id")
    answers.text(item, {"text": row.get("row_data")})
    labels: list[Fields] = []
    for project in line["projects"].values():
        labels += project["labels"]
    for label in labels:
        details = label.get("label_details")
        if not isinstance(details, dict):
            raise answers.fail(place, "a label needs 'label_details' (an option of the export)")
        if details.get("reviews"):
            answers.left_out["reviews"] += 1
        answers.at(details)
        if (label.get("performance_details") or {}).get("skipped") or details.get("is_skipped"):
            answers.left_out["skipped by the annotator"] += 1
        else:
            _add(place, item, details.get("created_by"), label["annotations"], answers)


def _add(place: str, item: Any, by: Any, answered: Fields, answers: Answers) -> None:
    """Adds the classifications of one label; objects and texts are left out."""
    answers.submission(place, item, by)
    for kind in ("objects", "relationships", "frames"):
        if size := len(answered.get(kind) or ()):
            answers.left_out[kind] += size
    for question in answered.get("classifications") or ():
        if "radio_answer" in question:
            chosen = [question["radio_answer"]]
        elif "checklist_answers" in question:
            chosen = question["checklist_answers"] or []
        else:
            answers.left_out["texts"] += 1
            continue
        choices = []
        for choice in filter(None, chosen):
            choices.append(choice.get("value", choice.get("name")))
            if choice.get("classifications"):
                answers.left_out["nested classifications"] += 1
        answers.add(place, item, by, str(question.get("name", "")), choices)
