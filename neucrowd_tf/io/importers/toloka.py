"""Toloka's results: a TSV (a CSV if saved from toloka-kit) with a row per answer.

`INPUT:<field>` is the item, `OUTPUT:<field>` the answer, `GOLDEN:<field>` the true answer of a
control task, `ASSIGNMENT:worker_id` the annotator and `ASSIGNMENT:status` whether the answer was
accepted. An empty row stands between pages of tasks.

References:
    Toloka/docs, en/guide/concepts/result-of-eval.md; toloka-kit, `GetAssignmentsTsvParameters`
    (for `ASSIGNMENT:task_id` and the other values of the status).
"""

from __future__ import annotations

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.importers.tables import after, joined, named_columns, of_columns, rows
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import among

NAME = "Toloka"
WORKER = "ASSIGNMENT:worker_id"
TASK = "ASSIGNMENT:task_id"
STATUS = "ASSIGNMENT:status"
INPUT = "INPUT:"
OUTPUT = "OUTPUT:"
GOLDEN = "GOLDEN:"
COUNTED = ("", "APPROVED", "ACCEPTED", "SUBMITTED")


def matches(head: Head) -> bool:
    """Whether a file looks like Toloka's."""
    return WORKER in head.columns and bool(starting_with(head.columns, OUTPUT))


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the accepted rows; without `ASSIGNMENT:task_id` the inputs are the item."""
    table = head.table()
    tasks = among([TASK], table.columns) or starting_with(table.columns, INPUT)
    items = named_columns(table, options, "task", tasks)
    annotators = named_columns(table, options, "worker", [WORKER])
    outputs = starting_with(table.columns, OUTPUT)
    questions = named_columns(table, options, "label", outputs)
    answers = of_columns(head, NAME, options, items, annotators)

    def add(answers: Answers, place: str, cells: dict[str, str]) -> None:
        item = joined(cells, items)
        annotator = joined(cells, annotators)
        answers.text(item, after(INPUT, cells))
        for question in questions:
            if golden := cells.get(GOLDEN + question.removeprefix(OUTPUT)):
                answers.gold(item, question, [golden])
        status = cells.get(STATUS, "").upper()
        if status not in COUNTED:
            answers.left_out[f"{status.lower()} answers"] += 1
            return
        for question in questions:
            answers.add(place, item, annotator, question, [cells[question]])

    return answers.read((row for row in rows(table) if any(row[1].values())), add)
