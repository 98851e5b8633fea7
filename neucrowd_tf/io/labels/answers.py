"""peerannot's `answers.json`: tasks, each with its workers and their labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.labels.checks.like_counts import check_no_counts
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.checks.wide_values import tell_turned
from neucrowd_tf.io.labels.matrix import MOST_CODE
from neucrowd_tf.io.labels.table import LabelTable, is_task_marker, tell_missing
from neucrowd_tf.io.names.missing import missing_flag
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

_ROLES = frozenset(alias.lower() for role in ("worker", "label") for alias in ALIASES[role])
_TASKS = frozenset(alias.lower() for alias in ALIASES["task"])
# The way out where each record is a label.
RECORDS = "; records of a label each python -m neucrowd_tf.convert --from=table makes a CSV of"
_MOST_CLASSES = 50  # of counts of votes; more names than these are annotators'


def read_answers(
    source: str | Path | Mapping[str, Mapping[str, Hashable]], layout: TableFormat = PLAIN
) -> LabelTable:
    """Returns the triples of peerannot's `{task: {worker: label}}`; a task without answers is
    named, without labels.

    Raises:
        DataError: not JSON, a key that is there twice, not tasks that hold workers that hold
            labels, or names that `check_table` refuses.
    """
    of_file = not isinstance(source, Mapping)
    answers: Any = source
    where = "answers"
    if not isinstance(source, Mapping):
        answers, where = read_json(source, each_key_once=True), str(source)
    if of_file and isinstance(answers, Mapping) and set(ALIASES) <= set(answers):
        raise DataError(
            f"{where}: expected an object of tasks, received the columns {', '.join(ALIASES)}"
        )
    if not isinstance(answers, Mapping):
        way_out = RECORDS if isinstance(answers, list) else ""
        raise DataError(
            f"{where}: expected an object of tasks, received {type(answers).__name__}{way_out}"
        )
    given = list(
        _triples(answers, where, layout.missing, fields=of_file and not layout.exact_names)
    )
    missing = () if layout.missing is None else layout.missing
    named = {name for name in missing if is_task_marker(name)}
    nobody = named | {""} & set(missing)
    nameless = {task for task in answers if str(task).strip() in named}
    if nameless:
        tell_missing(where, len(nameless), "objects", "a task")
        given = [triple for triple in given if triple[0] not in nameless]
    triples = [
        triple
        for triple in given
        if str(triple[2]).strip() not in missing and str(triple[1]).strip() not in nobody
    ]
    if len(triples) < len(given):
        tell_missing(where, len(given) - len(triples), "answers")
    for triple in triples:
        _check_text(triple, where)
    tasks, workers, labels = (
        (list(column) for column in zip(*triples, strict=True)) if triples else ([], [], [])
    )
    table = LabelTable(
        where,
        (tasks, workers, labels),
        instance_names=[task for task in answers if task not in nameless],
        line=lambda i: f"task {tasks[i]!r}, worker {workers[i]!r}",
    )
    if of_file:
        if not layout.classes:
            _check_no_frame(triples, where)
            _check_no_counts(triples, where)
        check_table(table, layout)
    return table


def _check_no_frame(triples: list[tuple[Hashable, Hashable, Hashable]], where: str) -> None:
    """Raises DataError for a data frame's columns in the place of tasks or workers: one named as
    the column of tasks, with labels that no other has; tells of what may be workers that hold
    tasks.
    """
    for place, role in enumerate(("task", "worker")):
        labels: dict[Hashable, set[Hashable]] = defaultdict(set)
        for triple in triples:
            labels[triple[place]].add(triple[2])
        for name in [name for name in labels if str(name).strip().lower() in _TASKS]:
            others = set().union(*(held for other, held in labels.items() if other != name))
            if others and labels[name].isdisjoint(others):
                raise DataError(
                    f"{where}: expected tasks that hold workers and their labels, received the"
                    f" {role} {name!r}, whose labels no other has, as the columns of a data frame"
                    " are written; save the frame as a CSV, or --classes=... names all classes"
                )
    tasks, workers = (len({triple[place] for triple in triples}) for place in (0, 1))
    if 2 * len(triples) >= tasks * workers:  # many annotators of few tasks have labelled few each
        tell_turned(tasks, workers, where, "{task: {worker: label}}")


def _check_no_counts(triples: list[tuple[Hashable, Hashable, Hashable]], where: str) -> None:
    """Raises DataError for numbers that look like a vote count a class."""
    names = list(dict.fromkeys(triple[1] for triple in triples))
    if len(names) > _MOST_CLASSES or not all(
        isinstance(label, int) and abs(label) < MOST_CODE for *_, label in triples
    ):
        return
    tasks = {task: row for row, task in enumerate(dict.fromkeys(triple[0] for triple in triples))}
    columns = {name: column for column, name in enumerate(names)}
    counts = np.zeros((len(tasks), len(names)), dtype=np.int64)
    missing = np.ones(counts.shape, dtype=bool)
    for task, name, label in triples:
        counts[tasks[task], columns[name]] = int(label)  # type: ignore[call-overload]
        missing[tasks[task], columns[name]] = False
    expected = "tasks that hold workers and their labels"
    check_no_counts(counts, missing, list(map(str, names)), where, expected)


def _triples(
    answers: Mapping[Hashable, Any], where: str, missing: Sequence[str] | None, *, fields: bool
) -> Iterator[tuple[Hashable, Hashable, Hashable]]:
    """Yields tasks, workers and labels.

    Args:
        missing: what the user says stands for none; with the blank null does, too.
        fields: whether workers that are named as a record's fields are refused.
    """
    for task, given in answers.items():
        if not isinstance(given, Mapping):
            raise DataError(
                f"{where}: task {task!r}: expected an object of workers and labels, received"
                f" {type(given).__name__}"
            )
        for worker, label in given.items():
            if fields and str(worker).lower() in _ROLES:
                raise DataError(
                    f"{where}: task {task!r}: expected workers and their labels, received"
                    f" {worker!r}, as a record's fields are named; --exact_names takes it for a"
                    " worker"
                )
            if label is None and "" in (missing or ()):
                label = ""
            if label is None or not isinstance(label, Hashable):
                hint = f"; {missing_flag(missing, '')} leaves null out" * (label is None)
                raise DataError(
                    f"{where}: task {task!r}, worker {worker!r}: expected a label, received"
                    f" {label!r}{hint}"
                )
            yield task, worker, label


def _check_text(triple: tuple[Hashable, Hashable, Hashable], where: str | Path) -> None:
    """Raises DataError for text that JSON can hold and a CSV in UTF-8 cannot."""
    for what, value in zip(ALIASES, triple, strict=True):
        if not isinstance(value, str):
            continue
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            bad = "half a surrogate pair"
        elif "\0" in value:
            bad = "a NUL character"
        else:
            continue
        raise DataError(f"{where}: expected text, received a {what} with {bad}: {value!r}")
