"""Prodigy's JSONL, as `prodigy db-out` writes it.

A line is one answer. `_annotator_id` (or `_session_id`) is the annotator, `answer` is accept,
reject or ignore. With several options `accept` holds the ids of the chosen ones. With one `label`,
accept and reject say whether it fits. The item is `id` if all lines have one and it repeats,
otherwise `_input_hash`. If an item has lines with other options, these are other questions.

References:
    prodi.gy/docs/review, prodi.gy/docs/api-interfaces (choice, classification).
"""

from __future__ import annotations

import functools
from collections import defaultdict

from neucrowd_tf.declare.picking import entries_of, starting_with
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import without

NAME = "Prodigy"
MARKS = {"_input_hash", "_task_hash", "cats", "spans", "options"}
CHOICE = "accept"  # the question of lines with options


def matches(head: Head) -> bool:
    """Whether a file looks like Prodigy's."""
    first = head.first or {}
    return first.get("answer") in ("accept", "reject", "ignore") and not MARKS.isdisjoint(first)


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the lines; a line with a `label` answers the question of that name."""
    lines = list(head.records())
    ids = {line.get("id") for _, line in lines if not isinstance(line.get("id"), (list, dict))}
    item = "_input_hash"
    if None not in ids and len(ids) < len(lines):
        item = "id"
    asked: defaultdict[str, set[str]] = defaultdict(set)
    for _, line in lines:
        if isinstance(line.get("accept"), list):
            asked[str(line.get(item))].add(_options(line))
    several = max(map(len, asked.values()), default=0) > 1
    answers = Answers(head, NAME, options, item=item, annotator="_annotator_id")
    return answers.read(lines, functools.partial(_add, several=several))


def _options(line: Fields) -> str:
    """Returns the ids of a line's options in a fixed order, which name its question."""
    options = line.get("options") or []
    return "/".join(sorted(str(option.get("id")) for option in options if isinstance(option, dict)))


def _add(answers: Answers, place: str, line: Fields, *, several: bool) -> None:
    answer = line.get("answer")
    name = line.get(answers.item)
    annotator = line.get("_annotator_id") or line.get("_session_id")
    others = without(line, ("answer", "label", "id"))
    answers.text(name, entries_of(line, without(others, starting_with(others, "_"))))
    if answer == "ignore":
        answers.left_out["ignored by the annotator"] += 1
    elif isinstance(line.get("accept"), list):
        if answer == "reject":
            answers.left_out["rejected by the annotator"] += 1
        else:
            question = _options(line) if several else CHOICE
            answers.add(place, name, annotator, question or CHOICE, line["accept"])
    elif isinstance(line.get("label"), str):
        answers.add(place, name, annotator, line["label"], [answer])
    elif isinstance(line.get("cats"), dict):
        answers.add_form(place, name, annotator, {"cats": line["cats"]})
    else:
        answers.left_out["spans" if "spans" in line else "without 'accept' or 'label'"] += 1
