"""Toloka's results: a TSV (a CSV, as toloka-kit's frames are saved) with a row for each answer.

`INPUT:<field>` is the task, `OUTPUT:<field>` the answer, `GOLDEN:<field>` the right answer of a
control task, `ASSIGNMENT:worker_id` who gave it and `ASSIGNMENT:status` whether it was accepted. An
empty row stands between pages of tasks.

References:
    Toloka/docs, en/guide/concepts/result-of-eval.md; toloka-kit, `GetAssignmentsTsvParameters`
    (for `ASSIGNMENT:task_id` and the other values of the status).
"""

from __future__ import annotations

from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import rows

WORKER, TASK, STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"
INPUT, OUTPUT, GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"
KEPT = ("", "APPROVED", "ACCEPTED", "SUBMITTED")


def is_export(head: Head) -> bool:
    """Whether a file looks like Toloka's."""
    return (
        head.kind == "table"
        and WORKER in head.columns
        and any(name.startswith(OUTPUT) for name in head.columns)
    )


def read(head: Head, found: Collector) -> None:
    """Reads the rows; without `ASSIGNMENT:task_id`, a task is called by its inputs. Columns that
    the user named go before.
    """
    answers = {name.removeprefix(OUTPUT): name for name in head.columns if name.startswith(OUTPUT)}
    if (label := head.named.get("label")) is not None:
        answers = {label.removeprefix(OUTPUT): label}
    inputs = [name for name in head.columns if name.startswith(INPUT)]
    tasks, workers = head.named.get("task", TASK), head.named.get("worker", WORKER)
    for place, row in rows(head.path, head.separator):
        task = row.get(tasks) or " | ".join(row[name] for name in inputs)
        found.text(place, task, {name.removeprefix(INPUT): row[name] for name in inputs})
        for question in answers:
            golden = row.get(GOLDEN + question, "")
            if golden:
                found.gold(place, task, question, [golden])
        status = row.get(STATUS, "").upper()
        if status not in KEPT:
            found.leave_out(f"{status.lower()} answers")
            continue
        for question, column in answers.items():
            given = row[column]
            # A worker sees each of several questions; an empty cell is an answer without a choice.
            found.answer(place, task, row[workers], question, [given] if given else [])
