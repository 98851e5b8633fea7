"""Files of labels in any layout: read, checked, and reported in one to three lines."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.codes import duplicates
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.column_names import SHOWN, few, is_missing, is_model
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.files.npy import read_npy
from neucrowd_tf.io.head import Head, unknown
from neucrowd_tf.io.importers import find
from neucrowd_tf.io.items import matched
from neucrowd_tf.io.layouts import columns_of, of_matrix
from neucrowd_tf.io.roles import WORDS
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.values import (
    bin_names,
    check_classes,
    check_ids,
    check_names,
    check_not_names,
    check_several,
    classes_of,
    nothing_said,
    split_cell,
    without_point,
)
from neucrowd_tf.names import encode, typed_names

MOST_CELLS = 10**9  # of a matrix in an NPY file
RAREST = 5  # classes that are shown besides the most frequent ones


@dataclasses.dataclass(frozen=True)
class Reading:
    """Labels and what is to be said of how they were read.

    Attributes:
        annotations: the labels.
        lines: what was read; a command prints it before anything else.
        gold: labels that the file's tool marks as true, by item.
        texts: what was labelled, by the name of the instance, if the file has it.
        pairs: the item and the class of each instance, if cells had several labels.
    """

    annotations: Annotations
    lines: tuple[str, ...]
    gold: Mapping[str, str]
    texts: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...] | None = None


def report_on_stderr(line: str) -> None:
    """Prints a line on stderr."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def read_annotations(
    path: str | Path,
    options: TableOptions | None = None,
    *,
    items: Sequence[str] | NDArray[Any] | None = None,
    unmatched: Literal["error", "drop"] = "error",
    report: Callable[[str], None] = report_on_stderr,
) -> Reading:
    """Reads labels in any layout.

    Args:
        path: a CSV, TSV, Parquet, JSON or NPY file, or an annotation tool's export.
        options: how it is written, and which columns have which role. None is the defaults of the
            commands, but several labels of an item by one annotator are an error.
        items: `[N]` ids of a table of features; the annotations get their order. None takes the
            file's own items.
        unmatched: whether labels of other items are an error, or are left out and counted.
        report: takes each line about what was read.

    Returns:
        the annotations, and what was read.

    Raises:
        DataError: a file that cannot be used; the message ends with the id of a check.
        UsageError: an option that the file has no use for.
    """
    path, options = Path(path), options or TableOptions(duplicates="error")
    columns = read_columns(path, options)
    values = _Values(columns, options, path)
    reading = values.reading(None if items is None else [str(item) for item in items], unmatched)
    for line in reading.lines:
        report(line)
    return reading


def read_columns(path: Path, options: TableOptions) -> LabelColumns:
    """Returns items, annotators and labels as the file has them.

    Raises:
        DataError: a file whose layout or roles are not known.
    """
    head = Head(path, options)
    if head.kind == "npy":
        return of_matrix(read_npy(path, MOST_CELLS), path)
    importer = None if options.header == "none" or options.votes_columns else find(head)
    if importer is not None:
        return importer.read(head, options)  # type: ignore[no-any-return]
    if head.kind in ("zip", "folder"):
        problem = f"no known tool writes {'this archive' if head.kind == 'zip' else 'this folder'}"
        raise unreadable(path, problem, "Name a file of labels")
    nested = head.first is None or any(isinstance(v, (dict, list)) for v in head.first.values())
    if head.is_json and (head.keys or nested):
        list(head.records())  # damaged JSON is an error of its own
        raise unknown(head)
    if options.first:
        raise UsageError(f"--first: {path} is a table, not a tool's export. Remove the flag.")
    return columns_of(head.table(strict=False), options)


class _Values:
    """Labels as codes, checked; and the lines about them."""

    def __init__(self, columns: LabelColumns, options: TableOptions, path: Path) -> None:
        self.columns, self.options, self.path = columns, options, path
        self.notes: list[str] = []
        self.item_codes: Any
        self.annotator_codes: Any
        self.items, self.item_codes = _encoded(columns.items)
        self.names, self.codes = self._labels()
        self.pairs: tuple[tuple[str, str], ...] | None = None
        self.rows = np.arange(len(self.item_codes))
        if columns.counts is not None:
            self.counts = np.asarray(columns.counts)
            return
        self.annotators, self.annotator_codes = _encoded(columns.annotators)
        self._leave_out_missing()
        self.summary = self._summary()
        self._split()
        self._check()
        if columns.wrong is not None:
            raise columns.wrong

    def _labels(self) -> tuple[list[Any], NDArray[np.int64]]:
        """Returns the different labels, and the code of each; a list of one label is the label."""
        labels: Any = self.columns.labels
        if isinstance(labels, tuple):
            return labels
        most = 1 if self.options.first else None
        cells = [tuple(cell[:most]) if isinstance(cell, list) else (cell,) for cell in labels]
        return encode(cell[0] if len(cell) == 1 else cell for cell in cells)  # type: ignore[misc]

    def _leave_out_missing(self) -> None:
        """Leaves out labels that are missing, or without item or annotator, and counts them."""
        options = self.options
        coded = self.columns.coded and options.missing is None
        absent = [
            isinstance(name, str) and (is_missing(name, options) or (coded and name == "-1"))
            for name in self.names
        ]
        held = ~np.array(absent, dtype=bool)[self.codes]
        missing = int((~held).sum())
        wide = self.columns.annotators_in_columns
        if missing and not wide:
            shown = ", ".join(repr(n) for n, out in zip(self.names, absent, strict=True) if out)
            self.notes.append(f"{missing:,} labels are missing ({shown}).")
        if options.missing is None and not options.bins:
            texts = [text for text, out in zip(self.names, absent, strict=True) if out and text]
            counts = np.bincount(self.codes, minlength=len(self.names))
            self.notes += nothing_said(self.names, counts, texts)
        for names, codes, role_word in (
            (self.items, self.item_codes, "item"),
            (self.annotators, self.annotator_codes, "annotator"),
        ):
            nameless = [at for at, name in enumerate(names) if not name.strip()]
            if nameless and (empty := np.isin(codes, nameless) & held).any():
                self.notes.append(f"{int(empty.sum()):,} labels without {role_word} are left out.")
                held &= ~empty
        if not held.any():
            problem = "; all are missing" if len(held) else ""
            raise error("no_labels", self.path, problem=problem)
        if not held.all():
            named = sum(bool(name.strip()) for name in self.items)
            self._select(held)
            if lost := named - len(self.items):
                self.notes.append(f"{lost:,} items have no label.")

    def _select(self, chosen: NDArray[Any]) -> None:
        """Continues with some of the labels; annotators of a wide table stay."""
        self.rows = self.rows[chosen]
        self.names, self.codes = _in_use(self.names, self.codes[chosen])
        self.items, self.item_codes = _in_use(self.items, self.item_codes[chosen])
        self.annotator_codes = self.annotator_codes[chosen]
        if not self.columns.annotators_in_columns:
            self.annotators, self.annotator_codes = _in_use(self.annotators, self.annotator_codes)

    def _place(self, codes: NDArray[Any]) -> Callable[[int], str]:
        """Returns where the first label of code i is."""

        def place(code: int) -> str:
            hits = np.flatnonzero(codes == code)
            return self.columns.place(int(self.rows[hits[0]])) if len(hits) else ""

        return place

    def _split(self) -> None:
        """Makes bins of ratings, and a yes/no question of each class of several in a cell."""
        options, place = self.options, self._place(self.codes)
        if options.multi_label is None:
            names, structured = self.names, self.columns.structured
            cells = ["" if structured and isinstance(n, str) else n for n in names]
            self.notes += check_several(self.path, cells, place)
            if not options.exact_names:
                self.names, codes = encode(without_point(self.names))
                self.codes = codes[self.codes]
            if options.bins:
                binned = bin_names(self.path, self.names, options.bins)
                self.names, codes = encode(binned)
                self.codes = codes[self.codes]
            return
        cells = [
            [name]
            if self.columns.structured and isinstance(name, str)
            else split_cell(self.path, name, options.multi_label, place(at))
            for at, name in enumerate(self.names)
        ]
        used = list(dict.fromkeys(label for cell in cells for label in cell))
        check_names(self.path, "label", used, lambda at: "", options)
        classes = classes_of(self.path, used, options, lambda at: "")
        chosen = np.array([[name in cell for name in classes] for cell in cells], dtype=np.int64)
        width = len(classes)
        self.pairs = tuple((item, name) for item in self.items for name in classes)
        self.items = [f"{item} [{name}]" for item, name in self.pairs]
        self.item_codes = (self.item_codes[:, None] * width + np.arange(width)).ravel()
        self.annotator_codes = np.repeat(self.annotator_codes, width)
        self.rows = np.repeat(self.rows, width)
        self.names, self.codes = ["no", "yes"], chosen[self.codes].ravel()
        self.options = dataclasses.replace(options, classes=("no", "yes"))
        shown = ", ".join(classes[:SHOWN]) + ", ..." * (len(classes) > SHOWN)
        self.notes.append(f"Each of {len(classes)} classes is a yes/no question: {shown}.")

    def _check(self) -> None:
        """Raises DataError for names and labels that cannot be used."""
        path, options = self.path, self.options
        check_ids(path, "item", self.items, self._place(self.item_codes))
        where = self._place(self.annotator_codes)
        check_names(path, "annotator", self.annotators, where, options)
        check_ids(path, "annotator", self.annotators, where)
        where = self._place(self.codes)
        counts = np.bincount(self.codes, minlength=len(self.names))
        column = self.columns.roles.get("label", "label")
        self.notes += check_classes(path, column, self.names, counts, options)
        lines = [" ".join(n.split()) if self.columns.structured else n for n in self.names]
        check_names(path, "label", lines, where, options)
        check_not_names(path, self.names, self.items, self.annotators)

    # ------------------------------------------------------------- results

    def reading(self, items: list[str] | None, unmatched: str) -> Reading:
        """Returns the annotations and the lines."""
        classes = classes_of(self.path, self.names, self.options, self._place(self.codes))
        order = {name: code for code, name in enumerate(classes)}
        labels = np.array([order[name] for name in self.names], dtype=np.int64)[self.codes]
        if self.columns.counts is not None:
            return self._of_counts(classes, labels, items, unmatched)
        shown = np.bincount(labels, minlength=len(classes))
        held = self._without_duplicates()
        instances, names = self._over(items, unmatched, held)
        triple = (array[held] for array in (instances, self.annotator_codes, labels))
        crowd = Annotations(
            *triple,
            instance_names=names,
            annotator_names=typed_names(self.annotators),
            class_names=typed_names(classes),
            duplicates="all" if self.options.duplicates == "all" else "error",
        )
        return self._reading(crowd, shown)

    def _reading(self, crowd: Annotations, counts: NDArray[Any]) -> Reading:
        columns = self.columns
        lines = [self.summary, " ".join(self._classes_line(crowd, counts)), *columns.notes]
        texts = columns.texts
        if self.pairs is not None:
            named = zip(self.items, self.pairs, strict=True)
            texts = {name: texts[item] for name, (item, _) in named if item in texts}
        return Reading(crowd, tuple(lines), columns.gold, texts, self.pairs)

    def _of_counts(
        self, classes: list[str], labels: NDArray[np.int64], items: list[str] | None, unmatched: str
    ) -> Reading:
        """Returns annotations of vote counts alone."""
        if not self.counts.any():
            raise error("no_labels", self.path, problem="; all counts are 0")
        check_ids(self.path, "item", self.items, self._place(self.item_codes))
        held = np.ones(len(labels), dtype=bool)
        instances, names = self._over(items, unmatched, held)
        votes = np.zeros((len(names), len(classes)), dtype=np.int64)
        np.add.at(votes, (instances[held], labels[held]), self.counts[held])
        crowd = Annotations.from_votes(
            votes, instance_names=names, class_names=typed_names(classes)
        )
        total = int(self.counts.sum())
        self.summary = (
            f"{self.path.name}: {self.columns.layout}, {total:,} votes on {len(self.items):,} items"
            f"; item {self.columns.roles['task']}"
        )
        return self._reading(crowd, votes.sum(axis=0))

    def _without_duplicates(self) -> NDArray[np.bool_]:
        """Returns which labels count if an annotator labelled an item several times."""
        rule = self.options.duplicates
        keys = self.item_codes * len(self.annotators) + self.annotator_codes
        held = np.ones(len(keys), dtype=bool)
        extra = duplicates(keys, rule)
        if not len(extra):
            return held
        if rule == "error":
            row = int(extra[0])
            item = self.items[self.item_codes[row]]
            annotator = self.annotators[self.annotator_codes[row]]
            place = self.columns.place(int(self.rows[row]))
            raise error("duplicate_pair", self.path, place, item=item, annotator=annotator)
        line = f"Duplicate (item, annotator) pairs: {len(extra):,}, {rule} used (--duplicates)."
        self.notes.insert(0, line)
        if rule != "all":
            held[extra] = False
        return held

    def _over(
        self, items: list[str] | None, unmatched: str, held: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Returns the instance of each label, and the instances' names; changes `held`."""
        if items is None:
            return self.item_codes, typed_names(self.items)
        if self.columns.rows:
            if len(self.columns.rows) != len(items):
                problem = f"{len(self.columns.rows):,} rows without ids for {len(items):,} items"
                raise broken(self.path, problem)
            places = np.array([int(item) for item in self.items], dtype=np.int64)
        elif self.pairs is not None:
            raise UsageError("--multi_label: training uses one question per item. Remove it.")
        else:
            where = self._place(self.item_codes)
            drop = unmatched == "drop"
            places = matched(self.path, self.items, items, where, drop=drop, other="the features")
        instances = places[self.item_codes]
        if lost := int((places < 0).sum()):
            self.notes.append(
                f"{int((instances < 0).sum()):,} labels of {lost:,} items without features are"
                " left out (--unmatched)."
            )
        held &= instances >= 0
        return instances, typed_names(items)

    # ------------------------------------------------------------- lines

    def _summary(self) -> str:
        """Returns the first line."""
        columns = self.columns
        roles = ", ".join(
            f"{word} {columns.roles[role]}" for role, word in WORDS.items() if role in columns.roles
        )
        people = int((np.bincount(self.annotator_codes) > 0).sum())
        line = (
            f"{self.path.name}: {columns.layout}, {_number(len(self.codes), 'label')} of"
            f" {_number(len(self.items), 'item')} by {_number(people, 'annotator')}"
        )
        line += f"; {roles}" if roles else ""
        return line + (f" ({columns.reason})" if columns.reason else "")

    def _classes_line(self, crowd: Annotations, counts: NDArray[Any]) -> Iterator[str]:
        """Yields the sentences of the second line."""
        yield class_line(crowd.class_names.tolist(), counts)
        columns = self.columns
        if columns.annotators_in_columns:
            yield f"Annotators: {few(self.annotators)}."
        if columns.unused:
            yield f"Unused columns: {few(columns.unused)}."
        if models := list(filter(is_model, self.annotators if columns.counts is None else ())):
            flag = f"--model_annotator={shlex.quote(','.join(models))}"
            yield f"Annotators named as models: {few(models)} ({flag})."
        if columns.left_out:
            out = ", ".join(f"{count:,} {reason}" for reason, count in columns.left_out.items())
            yield f"Left out: {out}."
        yield from self.notes
        if columns.counts is None:
            if len(self.annotators) == 1:
                yield "There is one annotator."
            elif int(crowd.vote_counts().sum(axis=1).max(initial=0)) == 1:
                yield "Each item has one label."
            if np.sum(counts > 0) == 1:
                yield "All labels are the same."


def class_line(names: Sequence[Any], counts: NDArray[Any]) -> str:
    """Returns the classes with their counts: up to 12, otherwise 12 and the five rarest."""
    order = np.argsort(-counts, kind="stable").tolist()
    texts = [" ".join(str(name).split()) for name in names]
    shown = [f"{texts[code]} ({int(counts[code]):,})" for code in order]
    if len(shown) <= SHOWN + RAREST:
        return f"classes: {', '.join(shown)}."
    rare = f"; rarest: {', '.join(shown[-RAREST:])}; {len(shown) - SHOWN - RAREST} others"
    return f"classes: {', '.join(shown[:SHOWN])}{rare}."


def _encoded(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Returns the different texts of a column of `LabelColumns`, and the code of each label."""
    return column if isinstance(column, tuple) else encode(column)


def _in_use(names: list[Any], codes: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Returns the names that occur, in order of appearance, and their codes."""
    old, codes = encode(codes.tolist())
    return [names[int(code)] for code in old], codes


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
