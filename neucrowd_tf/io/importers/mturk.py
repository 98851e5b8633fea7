"""Amazon Mechanical Turk's results of a batch: a CSV with a row for each assignment.

`HITId` is the task, `WorkerId` who did it, `AssignmentStatus` Submitted, Approved or Rejected,
`Input.*` what was shown and `Answer.*` what was answered. Forms differ in what they write there: a
value; a column of true and false for each option (`Answer.<question>.<option>`); a classifier's
`Answer.<question>.label`; or JSON in `Answer.taskAnswers`.

References:
    Requester UI guide, "Reviewing assignments offline"; API reference, Assignment data structure.
    The header as a whole is not documented there; it is that of batches that were published.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import choices_of, parse, rows

INPUT, ANSWER, JSON_ANSWERS = "Input.", "Answer.", "Answer.taskAnswers"
NEEDED = {"HITId", "WorkerId"}
REJECTED = "rejected by the requester"


def is_export(head: Head) -> bool:
    """Whether a file looks like a batch's results."""
    return (
        head.kind == "table"
        and set(head.columns) >= NEEDED
        and any(name.startswith(ANSWER) for name in head.columns)
    )


def read(head: Head, found: Collector) -> None:
    """Reads the assignments that were not rejected; columns that the user named go before."""
    tasks, workers = head.named.get("task", "HITId"), head.named.get("worker", "WorkerId")
    for place, row in rows(head.path, head.separator):
        found.text(
            place,
            row[tasks],
            {
                name.removeprefix(INPUT): cell
                for name, cell in row.items()
                if name.startswith(INPUT)
            },
        )
        if row.get("AssignmentStatus", "").lower() == "rejected" or row.get("Reject", "").strip():
            found.leave_out(REJECTED)
            continue
        answers = _answers(row, f"{found.path}: {place}", head.named.get("label"))
        if not answers:
            found.leave_out("without a choice")
        for question, value in answers.items():
            choices = choices_of(value)
            if choices is None:
                found.leave_out_kind(question)
            else:
                found.answer(place, row[tasks], row[workers], question, choices)


def _answers(row: dict[str, str], where: str, named: str | None) -> dict[str, Any]:
    """Returns what was answered by question, or what the column that the user named holds."""
    if named is not None:
        option = named.rpartition(".")[2]
        return {named: _cell(row[named], option, f"{where}, column {named!r}")}
    if row.get(JSON_ANSWERS):
        parsed = parse(row[JSON_ANSWERS], f"{where}, column {JSON_ANSWERS!r}")
        form = parsed[0] if isinstance(parsed, list) and parsed else parsed
        return form if isinstance(form, dict) else {}
    answers: dict[str, Any] = {}
    for name, cell in row.items():
        if not name.startswith(ANSWER) or name == JSON_ANSWERS:
            continue
        question, _, option = name.removeprefix(ANSWER).rpartition(".")
        if not question or option in ("label", "labels"):
            answers[question or option] = _cell(cell, option, f"{where}, column {name!r}")
        elif cell.lower() in ("true", "false", ""):
            options = answers.setdefault(question, {})
            if isinstance(options, dict):
                options[option] = cell.lower() == "true"
        else:
            answers[f"{question}.{option}"] = cell
    return answers


def _cell(cell: str, option: str, where: str) -> Any:
    """Returns a cell's value; a classifier of several labels writes a list as JSON."""
    return parse(cell, where) if option == "labels" and cell.startswith("[") else cell
