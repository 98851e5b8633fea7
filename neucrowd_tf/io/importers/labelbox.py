"""Labelbox's NDJSON: a line a data row, with the labels that each project has for it.

`projects.<id>.labels[]` holds `label_details.created_by` and `annotations.classifications[]`, each
with its `name` (the question) and `radio_answer` or `checklist_answers`.

References:
    docs.labelbox.com/reference/export-quick-reference, /export-text-annotations,
    /export-image-annotations.
"""

from __future__ import annotations

import warnings
from typing import Any

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import records


def is_export(head: Head) -> bool:
    """Whether a file looks like Labelbox's."""
    return head.kind == "json" and {"data_row", "projects"} <= head.first.keys()


def read(head: Head, found: Collector) -> None:
    """Reads the data rows; a task is called by its global key, or its id where it has none."""
    project, reviewed = "", 0
    for place, line in records(read_text(head.path), str(head.path)):
        row, projects = line.get("data_row"), line.get("projects")
        if not isinstance(row, dict) or not isinstance(projects, dict):
            found.fail(place, "'data_row' and 'projects'", ", ".join(line) or "none")
        task = row.get("global_key") or row.get("id")
        found.text(place, task, {"text": row.get("row_data")})
        for name, held in projects.items():
            if not isinstance(held, dict):
                found.fail(place, f"the labels of project {name!r}", repr(held)[:80])
            for label in held.get("labels") or ():
                if project not in ("", name):
                    found.fail(place, f"labels of one project ({project})", f"of {name} too")
                project = name
                _label(place, task, label, found)
                reviewed += bool(label["label_details"].get("reviews"))
    if reviewed:  # what a review says is documented nowhere
        warnings.warn(
            f"{found.path}: {reviewed:,} labels have reviews, which are not looked at: rejected"
            " labels count, unless the export leaves them out",
            stacklevel=5,
        )


def _label(place: str, task: Any, label: Any, found: Collector) -> None:
    details = label.get("label_details") if isinstance(label, dict) else None
    given = label.get("annotations") if isinstance(label, dict) else None
    if not isinstance(details, dict) or not isinstance(given, dict):
        found.fail(
            place,
            "labels with 'label_details' and 'annotations' (export with label details)",
            repr(label)[:80],
        )
    performance = label.get("performance_details")
    skipped = isinstance(performance, dict) and performance.get("skipped") is True
    if skipped or details.get("is_skipped"):
        found.leave_out("skipped by the annotator")
        return
    for kind in ("objects", "relationships", "frames"):
        for _ in given.get(kind) or ():
            found.leave_out_kind(kind)
    parts = given.get("classifications") or ()
    if not parts and not any(given.values()):
        found.leave_out("without an answer")
    for part in parts:
        question = str(part.get("name", ""))
        if "radio_answer" in part:
            answers = [part["radio_answer"]]
        elif "checklist_answers" in part:
            answers = part["checklist_answers"]
        else:
            found.leave_out_kind("text")
            continue
        answers = [answer for answer in answers or () if isinstance(answer, dict)]
        for answer in answers:
            for _ in answer.get("classifications") or ():
                found.leave_out_kind("nested classification")
        choices = [answer.get("value", answer.get("name")) for answer in answers]
        found.answer(place, task, details.get("created_by"), question, choices)
