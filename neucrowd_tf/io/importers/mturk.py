"""Amazon Mechanical Turk's results of a batch: a CSV with a row per assignment.

`HITId` is the item, `WorkerId` the annotator, `AssignmentStatus` Submitted, Approved or Rejected,
`Input.*` what was shown and `Answer.*` the answers. Forms write a value; a column of true and false
per option (`Answer.<question>.<option>`); a classifier's `Answer.<question>.label`; or JSON in
`Answer.taskAnswers`. A HIT of several items has `Input.image1`, `Input.image2`, ... with
`Answer.image1`, `Answer.image2`, ...: then the inputs are the items.

References:
    Requester UI guide, "Reviewing assignments offline"; API reference, Assignment data structure.
    The header as a whole is not documented there; it is that of published batches.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Fields, Texts
from neucrowd_tf.io.column_names import flagged_columns
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.importers.tables import after, joined, named_columns, of_columns, rows
from neucrowd_tf.io.schema import TableOptions

NAME = "Mechanical Turk"
INPUT = "Input."
ANSWER = "Answer."
JSON_ANSWERS = "Answer.taskAnswers"
NUMBERED = re.compile(r"(.*?)\d+")


def matches(head: Head) -> bool:
    """Whether a file looks like a batch's results."""
    return {"HITId", "WorkerId"} <= {*head.columns} and bool(starting_with(head.columns, ANSWER))


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the assignments that were not rejected."""
    table = head.table()
    pairs = () if options.task_column or options.label_column else _pairs(table.columns)
    stem = "" if not pairs else NUMBERED.fullmatch(pairs[0]).group(1)  # type: ignore[union-attr]
    hits = named_columns(table, options, "task", ["HITId"])
    items = [f"{INPUT}{stem}*"] if pairs else hits
    annotators = named_columns(table, options, "worker", ["WorkerId"])
    named = flagged_columns(table, options, "label")
    answers = of_columns(head, NAME, options, items, annotators)

    def add(answers: Answers, place: str, cells: dict[str, str]) -> None:
        if cells.get("AssignmentStatus", "").lower() == "rejected" or cells.get("Reject"):
            answers.left_out["rejected by the requester"] += 1
            return
        item = joined(cells, hits)
        annotator = joined(cells, annotators)
        for pair in pairs:
            chosen = [cells[ANSWER + pair]]
            answers.add(place, cells[INPUT + pair], annotator, f"{ANSWER}{stem}*", chosen)
        if not pairs:
            answers.text(item, after(INPUT, cells))
            answers.add_form(place, item, annotator, _form(cells, named))

    return answers.read(rows(table), add)


def _pairs(columns: Texts) -> list[str]:
    """Returns the names K of `Input.K` with `Answer.K` if several differ in a number alone."""
    stems: dict[str, list[str]] = defaultdict(list)
    for name in columns:
        pair = name.removeprefix(INPUT)
        if name != pair and ANSWER + pair in columns and (match := NUMBERED.fullmatch(pair)):
            stems[match.group(1)].append(pair)
    return next((pairs for pairs in stems.values() if len(pairs) > 1), [])


def _form(cells: Mapping[str, str], named: Texts) -> Fields:
    """Returns the answers of an assignment by question."""
    if cells.get(JSON_ANSWERS) and not named:
        form = json.loads(cells[JSON_ANSWERS])
        if isinstance(form, list) and form:
            form = form[0]
        if isinstance(form, dict):
            return form
        return {}
    form = {}
    for name in named or starting_with(cells, ANSWER):
        question, _, option = name.rpartition(".")
        if named or question in ("", ANSWER[:-1]):
            form[name] = cells[name]
        elif option in ("label", "labels"):
            form[question] = cells[name]
        elif cells[name].lower() in ("true", "false", ""):
            form.setdefault(question, {})[option] = cells[name].lower() == "true"
        else:
            form[name] = cells[name]
    return form
