"""What an annotation tool's export says, in plain columns, and how it is collected from records."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.ids import typed_names

Duplicates: TypeAlias = Literal["error", "first", "last"]
FURTHER = "further choices of an answer"
OTHERS = "answers to other questions"
SHOWN = 6
LONGEST = 40  # letters of a text that an error shows
# The fields that hold what was labelled, where an export has several.
TEXT_FIELDS = ("text", "content", "sentence", "image", "url", "audio", "video", "filename")


@dataclasses.dataclass(frozen=True)
class Export:
    """An annotation tool's export: A labels, each of one task by one worker.

    Attributes:
        tool: the tool's name in the catalogue.
        path: the file.
        tasks, workers, labels: `[A]` ids and labels as text.
        places: `[A]` where in the file each stands ("line 3", "record 2"), for errors.
        gold: the label of each task that the tool knows for certain.
        texts: what was labelled (a text, an image's address) by task, where the export has it.
        left_out: how many answers were left out, by reason.
    """

    tool: str
    path: Path
    tasks: list[str]
    workers: list[str]
    labels: list[str]
    places: list[str]
    gold: dict[str, str]
    texts: dict[str, str]
    left_out: Counter[str]

    def frame(self) -> pd.DataFrame:
        """Returns `task, worker, label`, a row a label, as `Annotations.from_frame` takes it.

        A column whose every text is how a whole number is spelt holds whole numbers, as if it had
        been read from a CSV.
        """
        columns = {"task": self.tasks, "worker": self.workers, "label": self.labels}
        return pd.DataFrame({name: typed_names(texts) for name, texts in columns.items()})

    def summary(self) -> str:
        """Returns what was read and what was left out, in a line."""
        text = (
            f"{len(self.labels):,} labels of {len(set(self.tasks)):,} tasks by"
            f" {len(set(self.workers)):,} annotators"
        )
        if self.gold:
            text += f", gold labels of {len(self.gold):,} tasks"
        return text + (f"; left out: {counted(self.left_out)}" if self.left_out else "")


def _same_text(text: str) -> str:
    """Returns a text without its spaces; an address without its query, which may be a signature."""
    return "".join((text.partition("?")[0] if "://" in text[:8] else text).split())


def _cut(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")


def counted(left_out: Mapping[str, int]) -> str:
    """Returns counts by reason as words."""
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())


@dataclasses.dataclass(frozen=True)
class _Answer:
    place: str
    task: str
    worker: str
    question: str
    choices: list[str]


class Collector:
    """Takes what a tool's reader finds, and makes an `Export` of it.

    Attributes:
        path: the file, for errors.
        wanted: the question asked for, None where there should be one only.
        last: where the latest answer stands.
    """

    last = ""

    def __init__(self, path: Path, wanted: str | None = None) -> None:
        self.path = path
        self.wanted = wanted
        self._answers: list[_Answer] = []
        self._gold: list[_Answer] = []
        self._texts: dict[str, tuple[str, str]] = {}
        self._left_out: Counter[str] = Counter()
        self._other_kinds: Counter[str] = Counter()

    def fail(self, place: str, expected: str, received: str) -> NoReturn:
        """Raises the one-line error that names file and place."""
        where = f"{self.path}: {place}" if place else str(self.path)
        raise DataError(f"{where}: expected {expected}, received {received}")

    def leave_out(self, reason: str) -> None:
        """Counts an answer that is left out."""
        self._left_out[reason] += 1

    def leave_out_kind(self, kind: str) -> None:
        """Counts a part of an answer that is no choice among classes (a box, a span, a text)."""
        self._other_kinds[f"no choices ({kind})"] += 1

    def answer(
        self, place: str, task: Any, worker: Any, question: str, choices: Sequence[Any]
    ) -> None:
        """Takes what one worker chose for one task."""
        self.last = place
        self._answers.append(
            _Answer(
                place,
                self.identity(place, "task", task),
                self.identity(place, "worker", worker),
                question,
                self._labels(place, choices),
            )
        )

    def gold(self, place: str, task: Any, question: str, choices: Sequence[Any]) -> None:
        """Takes a task's certain label."""
        labels = self._labels(place, choices)
        self._gold.append(_Answer(place, self.identity(place, "task", task), "", question, labels))

    def _labels(self, place: str, choices: Sequence[Any]) -> list[str]:
        """Returns choices as text, without blank ones, which are none."""
        given = [choice for choice in choices if choice is not None and str(choice).strip()]
        return [self.identity(place, "label", choice) for choice in given]

    def text(self, place: str, task: Any, fields: Mapping[str, Any], way_out: str = "") -> None:
        """Takes what was labelled: a field called text or image, else the first with text.

        Raises:
            DataError: the task had another text, as where two projects number their tasks alike.
        """
        texts = {name: value for name, value in fields.items() if isinstance(value, str) and value}
        name = next((name for name in (*TEXT_FIELDS, *texts) if name in texts), None)
        if name is None:
            return
        known, text = self._texts.setdefault(str(task), (name, texts[name]))
        if known == name and _same_text(text) != _same_text(texts[name]):
            self.fail(
                place,
                f"one {name} of task {str(task)!r}",
                f"{_cut(texts[name])} after {_cut(text)} (two projects in one file?); convert each"
                f" alone{way_out}",
            )

    def identity(self, place: str, what: str, value: Any) -> str:
        """Returns an id or a label as text.

        Raises:
            DataError: none is there, or it is no text, number or truth value.
        """
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        whole = not isinstance(value, float) or (what == "label" and abs(value) < float("inf"))
        if not isinstance(value, (str, int, float)) or not whole or not str(value).strip():
            received = "none" if value is None or value == "" else repr(value)[:80]
            self.fail(place, f"a {what}", f"{received}; take it out")
        text = str(value)
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            self.fail(place, f"a {what} of text", repr(text)[:80])
        return text

    def finish(self, tool: str, *, first: bool = False, duplicates: Duplicates = "error") -> Export:
        """Makes the export: one question, one choice an answer, one answer of a worker to a task.

        Args:
            tool: the tool's name.
            first: takes the first of several choices, where it is an error otherwise.
            duplicates: what to do where a worker answered a task again with another label.

        Raises:
            DataError: several questions and none asked for, or one that is not there; several
                choices; a second answer; no label at all.
        """
        question = self._question()
        left_out = self._left_out + self._other_kinds
        rows: dict[tuple[str, str], tuple[str, str]] = {}
        for answer in self._answers:
            if answer.question != question:
                left_out[OTHERS] += 1
                continue
            label = self._one_choice(answer, first, left_out)
            if label is None:
                continue
            key = (answer.task, answer.worker)
            if key in rows:
                self._again(answer, label, rows[key], duplicates, left_out)
                if duplicates == "first" or rows[key][0] == label:
                    continue
            rows[key] = (label, answer.place)
        if not rows:
            why = f" ({counted(left_out)})" if left_out else ""
            raise DataError(f"{self.path}: expected at least one label, received none{why}")
        return Export(
            tool,
            self.path,
            [task for task, _ in rows],
            [worker for _, worker in rows],
            [label for label, _ in rows.values()],
            [place for _, place in rows.values()],
            self._gold_labels(question, first, left_out),
            {task: text for task, (_, text) in self._texts.items()},
            left_out,
        )

    def _question(self) -> str:
        found = list(dict.fromkeys(answer.question for answer in self._answers))
        shown = ", ".join(repr(name) for name in found[:SHOWN]) + (
            ", ..." if len(found) > SHOWN else ""
        )
        if self.wanted is not None:
            if found and self.wanted not in found:
                self.fail("", f"the question {self.wanted!r}", f"answers to {shown}")
            return self.wanted
        if len(found) > 1:
            place = next(a.place for a in self._answers if a.question == found[1])
            self.fail(place, "answers to one question", f"{shown}; --question names one")
        return found[0] if found else ""

    def _one_choice(self, answer: _Answer, first: bool, left_out: Counter[str]) -> str | None:
        if not answer.choices:
            left_out["without a choice"] += 1
            return None
        if len(answer.choices) > 1:
            if not first:
                shown = ", ".join(repr(choice) for choice in answer.choices[:SHOWN])
                self.fail(
                    answer.place,
                    "one choice an answer (--first takes the first)",
                    f"{len(answer.choices)}: {shown}",
                )
            left_out[FURTHER] += len(answer.choices) - 1
        return answer.choices[0]

    def _again(
        self,
        answer: _Answer,
        label: str,
        before: tuple[str, str],
        duplicates: Duplicates,
        left_out: Counter[str],
    ) -> None:
        if before[0] != label and duplicates == "error":
            self.fail(
                answer.place,
                f"one answer of worker {answer.worker!r} to task {answer.task!r}"
                " (`neucrowd convert --duplicates=first`, or last, takes one)",
                f"{label!r} after {before[0]!r} of {before[1]}",
            )
        left_out["repeated answers of a worker to a task"] += 1

    def _gold_labels(self, question: str, first: bool, left_out: Counter[str]) -> dict[str, str]:
        gold: dict[str, str] = {}
        for answer in self._gold:
            if answer.question != question:
                continue
            label = self._one_choice(answer, first, left_out)
            if label is None:
                continue
            if gold.setdefault(answer.task, label) != label:
                self.fail(
                    answer.place,
                    f"one gold label of task {answer.task!r}",
                    f"{label!r} after {gold[answer.task]!r}",
                )
        return gold
