"""Zooniverse's classifications as CSV: raw, or flattened by a script.

Both have `classification_id`, `user_name` and `subject_ids`. Raw exports have JSON in
`annotations`: a list with the `task` and the `value` of each question. Choices and lists of choices
are read; drawings and surveys are not. Flattened files have a column per answer instead.

References:
    Zooniverse help, "Data exports"; zooniverse/Data-digging.
"""

from __future__ import annotations

import json
from typing import Any

from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.importers.tables import joined, named_columns, of_columns, read_table, rows
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import without

NAME = "Zooniverse"
ITEM = "subject_ids"
ANNOTATOR = "user_name"
ANNOTATIONS = "annotations"
OTHERS = {"classification_id", ITEM, ANNOTATOR, "row_id"}


def matches(head: Head) -> bool:
    """Whether a file looks like Zooniverse's."""
    return {"classification_id", ITEM, ANNOTATOR} <= set(head.columns)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads raw classifications of questions, or a flattened file."""
    if ANNOTATIONS not in head.columns or options.label_column:
        fields = without(head.columns, OTHERS)
        return read_table(head, options, NAME, item=ITEM, annotator=ANNOTATOR, answers=fields)
    table = head.table()
    items = named_columns(table, options, "task", [ITEM])
    annotators = named_columns(table, options, "worker", [ANNOTATOR])
    answers = of_columns(head, NAME, options, items, annotators)
    answers.structured = True  # the cells have JSON

    def add(answers: Answers, place: str, cells: dict[str, str]) -> None:
        tasks = json.loads(cells[ANNOTATIONS])
        _add(place, joined(cells, items), joined(cells, annotators), tasks, answers)

    return answers.read(rows(table), add)


def _add(place: str, item: str, annotator: str, tasks: Any, answers: Answers) -> None:
    """Adds the answer to each task; a combined task holds further ones."""
    for task in tasks if isinstance(tasks, list) else ():
        if not isinstance(task, dict):
            continue
        value = task.get("value")
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict) and "task" in first:
            _add(place, item, annotator, value, answers)
        elif isinstance(first, dict):
            answers.left_out["survey answers" if "choice" in first else "drawings"] += 1
        else:
            answers.add_form(place, item, annotator, {str(task.get("task", "")): value})
