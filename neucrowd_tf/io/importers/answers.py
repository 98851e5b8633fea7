"""Annotators' answers to the questions of an export, collected as columns of one question."""

from __future__ import annotations

import operator
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from neucrowd_tf.declare.types import NamedValues
from neucrowd_tf.errors import DataError
from neucrowd_tf.io import checks
from neucrowd_tf.io.asking import WORDS
from neucrowd_tf.io.column_names import time_columns
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import listed

FEW = 20  # most values of a question that is used as classes without being named
SHOWN = 8
MOST_ODD = 0.1  # share of records of another form that are left out
# Why submissions are left out. If some are about parts of an item, empty ones are too.
OF_PARTS = "submissions that answer no question about the whole task"
SINGLE = (str, int, float)  # types of a choice
# The fields that hold what was labelled, if an export has several.
TEXT_FIELDS = ("text", "content", "sentence", "image", "url", "audio", "video", "filename")


def choices_of(value: Any) -> list[Any] | None:
    """Returns the choices in a form's value, or None if it holds something else (a box, a text).

    A form writes a value, a list of values, `{"label": value}`, `{"labels": [...]}`,
    `{"choices": [...]}`, a truth value per option, or the paths of a taxonomy.
    """
    if value is None or value == "":
        return []
    if isinstance(value, SINGLE):
        return [value]
    if isinstance(value, list):
        if value and {*map(type, value)} == {list}:
            return [" > ".join(map(str, path)) for path in value]
        return value if all(isinstance(entry, SINGLE) for entry in value) else None
    if not isinstance(value, dict):
        return None
    for key in ("label", "labels", "choices"):
        if key in value:
            return choices_of(value[key])
    if {*map(type, value.values())} == {bool}:
        return list(filter(value.get, value))
    return None


def as_text(value: Any) -> str:
    """Returns an id or a label as text: "" for None, "3" for 3.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return ""
    return str(value).strip()


class Answers:
    """Collects answers of annotators to questions, and makes `LabelColumns` of one question.

    Attributes:
        left_out: how many answers were left out, by reason.
        counted: how many records were read in a way that the reader states.
        structured: whether a text is one choice, as in JSON, and never several in a cell.
    """

    def __init__(
        self, head: Head, name: str, options: TableOptions, *, item: str, annotator: str
    ) -> None:
        """Begins an export.

        Args:
            head: the file.
            name: the tool's.
            options: of which `question`, or else `label_column`, names the question.
            item: the field of the items' ids, for the printed line.
            annotator: the field of the annotators' ids.
        """
        self.head = head
        self.name = name
        self.item = item
        self.annotator = annotator
        self.left_out: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.structured = not head.columns
        self._wanted = options.question or ",".join(options.label_column) or None
        self._ignored: list[str] = []
        named = {"task": ",".join(options.task_column), "worker": ",".join(options.worker_column)}
        for role, field in zip(named, (item, annotator), strict=True):
            if named[role] not in ("", field):
                self._ignored.append(
                    f"--{role}_column={named[role]} is not used: the {WORDS[role]} of {name} is"
                    f" {field}. For another one, write a CSV with the columns task, annotator and"
                    " label."
                )
        self._time = ""
        self._answers: dict[str, list[tuple[str, str, str, str, str | list[str]]]] = {}
        self._submissions: list[tuple[str, str, str, str]] = []
        self._gold: dict[str, dict[str, str]] = {}
        self._texts: dict[str, str] = {}

    def read(
        self, entries: Iterable[tuple[str, Any]], add: Callable[[Answers, str, Any], None]
    ) -> LabelColumns:
        """Adds each record and returns the labels; see `columns`.

        Args:
            entries: the place and the content of each record.
            add: called with these answers, the place and the content.

        Raises:
            DataError: more than a tenth of the records have another form than the tool's; it names
                the first.
        """
        count = 0
        odd: dict[str, DataError] = {}
        for place, record in entries:
            count += 1
            try:
                if isinstance(record, Mapping):
                    self.at(record)
                add(self, place, record)
            except DataError as bad:
                odd[place] = bad
            except KeyError as bad:
                odd[place] = self.fail(place, f"{bad} is missing in a record of {self.name}")
            except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
                odd[place] = self.fail(place)
        if odd:
            place, first = next(iter(odd.items()))
            if len(odd) > count * MOST_ODD:
                raise first from None
            self.left_out[f"records of another form than {self.name} writes ({place})"] += len(odd)
        return self.columns()

    def fail(self, place: str, problem: str = "") -> DataError:
        """Returns the error of a record that has another form than the tool's."""
        problem = problem or f"this has another form than {self.name} writes"
        advice = "Export the file again."
        return checks.error("unknown_layout", self.head.path, place, problem=problem, advice=advice)

    def at(self, fields: NamedValues) -> None:
        """Sets when what is added next was given: the first field that is named as a time."""
        times = map(fields.__getitem__, time_columns(tuple(fields)))
        self._time = next(filter(None, map(as_text, times)), "")

    def add(
        self, place: str, item: Any, annotator: Any, question: str, choices: Iterable[Any]
    ) -> None:
        """Adds the choices of one annotator for one item; there may be none."""
        names = as_text(item), as_text(annotator)
        if not all(names):
            self.left_out["without an item" if names[1] else "without an annotator"] += 1
            return
        labels = list(filter(None, map(as_text, choices)))
        label = labels if len(labels) > 1 else "".join(labels)
        self._answers.setdefault(question, []).append((*names, place, self._time, label))

    def add_form(self, place: str, item: Any, annotator: Any, form: NamedValues) -> None:
        """Adds the values of a form, one per question; values that are no choice are left out."""
        for question, value in form.items():
            choices = choices_of(value)
            if choices is None:
                self.left_out[f"no choice ({question})"] += 1
            else:
                self.add(place, item, annotator, question, choices)

    def submission(self, place: str, item: Any, annotator: Any) -> None:
        """Adds that an annotator submitted something for an item.

        What has no answer to the question that is read has an answer without a class.
        """
        names = as_text(item), as_text(annotator)
        if all(names):
            self._submissions.append((*names, place, self._time))

    def gold(self, item: Any, question: str, choices: Iterable[Any]) -> None:
        """Adds a label that the tool marks as true; the first of an item counts."""
        labels = list(map(as_text, choices))
        if len(labels) == 1:
            self._gold.setdefault(question, {}).setdefault(as_text(item), labels[0])

    def text(self, item: Any, fields: NamedValues) -> None:
        """Adds what was labelled: a field called text or image, otherwise the first with text."""
        for name in (*TEXT_FIELDS, *fields):
            text = fields.get(name)
            if text and isinstance(text, str):
                self._texts.setdefault(as_text(item), text)
                return

    def columns(self) -> LabelColumns:
        """Returns the labels of the question that was named, or of the only one with classes.

        Raises:
            DataError: there are no labels, or several questions and none is named.
        """
        for name, rows in list(self._answers.items()):
            if not any(map(operator.itemgetter(-1), rows)):
                del self._answers[name]
        if not self._answers:
            raise self.nothing()
        question, reason = self._question()
        rows = self._answers.pop(question)
        answered_pairs = set(map(operator.itemgetter(0, 1), rows))
        for submission in dict.fromkeys(self._submissions):
            if submission[:2] in answered_pairs:
                continue
            if self.left_out[OF_PARTS]:
                self.left_out[OF_PARTS] += 1
            else:
                rows.append((*submission, ""))
        items, annotators, places, times, labels = map(list, zip(*rows, strict=True))
        others = sum(map(len, self._answers.values()))
        return LabelColumns(
            layout=self.name,
            items=items,
            annotators=annotators,
            labels=labels,
            place=lambda row: places[row],
            roles={"task": self.item, "worker": self.annotator, "label": question},
            reason=reason,
            notes=(*self._ignored, *map("{}.".format, checks.amounts(self.counted))),
            left_out=self.left_out + Counter({"answers to other questions": others}),
            gold=self._gold.get(question, {}),
            texts=self._texts,
            times=times if any(times) else (),
            structured=self.structured,
            rows_are_answers=True,
        )

    def _question(self) -> tuple[str, str]:
        """Returns the question, and why it is used if it was not named and others exist."""
        if self._wanted in self._answers:
            return str(self._wanted), ""
        if len(self._answers) == 1 and self._wanted is None:
            return next(iter(self._answers)), ""
        few = list(filter(self._has_classes, self._answers))
        if len(few) == 1 and self._wanted is None:
            return few[0], "the only question with few values that differ between annotators"
        counts = []
        for name, rows in self._answers.items():
            values = set(map(str, filter(None, map(operator.itemgetter(-1), rows))))
            counts.append(f"{name} ({len(values):,} values, {len(rows):,} answers)")
        problem = f"{self.name} with several questions"
        if self._wanted is not None:
            problem = f"{self.name} has no answers to the question {self._wanted!r}, only to others"
        raise checks.error(
            "several_questions",
            self.head.path,
            problem=f"{problem}: {listed(counts, SHOWN)}",
            advice=f"Choose one: --question={shlex.quote(next(iter(few or self._answers)))}.",
        )

    def _has_classes(self, question: str) -> bool:
        """Whether a question has few values, and several of them for some item."""
        values: dict[str, set[str]] = {}
        for item, *_, label in self._answers[question]:
            if label:
                values.setdefault(item, set()).add(str(label))
        return len(set().union(*values.values())) <= FEW and max(map(len, values.values())) > 1

    def nothing(self) -> DataError:
        """Returns the error of a file without labels, with what was left out."""
        reason = ", ".join(checks.amounts(self.left_out))
        return checks.error(
            "nothing_to_aggregate",
            self.head.path,
            tool=self.name,
            reason=f"there are no labels of items by annotators ({reason or 'no answers'})",
            advice="Aggregation needs classes that annotators chose for whole items",
        )
