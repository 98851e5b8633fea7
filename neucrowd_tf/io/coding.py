"""Labels as codes: missing ones left out, several in a cell parted, names and values checked."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neucrowd_tf.annotations.codes import Duplicates, duplicates
from neucrowd_tf.declare.picking import of_type
from neucrowd_tf.declare.types import Array, Floats, Indices, Mask, Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.column_names import SHOWN, is_missing
from neucrowd_tf.io.column_values import are_many, repeats
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import encode
from neucrowd_tf.io.tables.writing import bare_name
from neucrowd_tf.io.times import read_times
from neucrowd_tf.io.values import (
    ALL,
    bin_names,
    check_classes,
    check_ids,
    check_names,
    check_not_names,
    check_ranking,
    check_several,
    classes_of,
    decimal_points,
    has_no_class,
    nothing_said,
    numbers_of,
    one_spelling,
    split_cell,
)
from neucrowd_tf.names import among, listed, positions

# What programs write for an id that is missing.
PLACEHOLDERS = ("nan", "NaN", "None", "null", "NULL", "<NA>", "NaT")
AGES = {"last": "newest", "first": "oldest"}  # of the label that counts if there are times


class Coded(NamedTuple):
    """A column of `LabelColumns`: the different names, and the code of each label `[A]`."""

    names: list[Any]
    codes: Indices

    @classmethod
    def of(cls, column: Any) -> Coded:
        """Returns a column as codes."""
        return cls(*(column if isinstance(column, tuple) else encode(column)))

    def counts(self) -> Indices:
        """Returns how many labels each name has."""
        return np.bincount(self.codes, minlength=len(self.names))

    def at(self, chosen: Array, *, every: bool = False) -> Coded:
        """Returns some of the labels, with every name or those in use in order of appearance."""
        if every:
            return self._replace(codes=self.codes[chosen])
        used, codes = encode(self.codes[chosen].tolist())
        return Coded(list(map(self.names.__getitem__, used)), codes)

    def renamed(self, names: list[str]) -> Coded:
        """Returns the labels with other names, of which several may be equal."""
        distinct, codes = encode(names)
        return Coded(distinct, codes[self.codes])


class CodedLabels:
    """The labels of a file as codes, and notes on what became of them.

    Attributes:
        items, annotators, labels: the columns; without annotators if there are vote counts alone.
        written: the labels as the file has them.
        rows: `[A]` where the file has each label.
        pairs: the item and the class of each item here, if cells had several labels.
        sizes: how many labels, items and annotators the file has.
        notes: sentences to print.
    """

    def __init__(self, columns: LabelColumns, options: TableOptions, path: Path) -> None:
        """Codes and checks what a reader returns.

        Raises:
            DataError: names or labels that cannot be used.
            UsageError: an option that the labels have no use for.
        """
        several = options.multi_label is not None
        if columns.counts is not None and (options.bins or several):
            flag = "multi_label" if several else "bins"
            raise UsageError(f"--{flag}: {path} has vote counts. Leave it out.")
        if options.bins and several:
            raise UsageError("--bins: not with --multi_label, whose questions have two classes.")
        self.columns = columns
        self.options = options
        self.path = path
        self.notes: list[str] = []
        self.items = Coded.of(columns.items)
        self.annotators = Coded.of(columns.annotators)
        self.labels = Coded.of(self._one_label_cells())
        self.written = self.labels
        self.rows = np.arange(len(self.items.codes))
        self.pairs: tuple[tuple[str, str], ...] | None = None
        self._times_problem = ""  # why the times are not read
        self._seconds = self._seconds_of_rows()
        if columns.counts is None:
            self._leave_out_missing()
            people = int((self.annotators.counts() > 0).sum())
            self.sizes = {
                "label": len(self.labels.codes),
                "item": len(self.items.names),
                "annotator": people,
            }
            self._check_repeats()
            self.written = self.labels
            if options.multi_label is None:
                self._spell_labels()
            else:
                self._ask_for_each_class(options.multi_label)
            self._check()
            if columns.wrong is not None:
                raise columns.wrong

    def _seconds_of_rows(self) -> Floats | None:
        if not len(self.columns.times):
            return None
        dated = Coded.of(self.columns.times)
        seconds, self._times_problem = read_times(dated.names)
        if seconds is None:
            return None
        return seconds[dated.codes]

    @property
    def times(self) -> Floats | None:
        """Seconds since 1970 of each label, NaN if it is missing; None if the file has none."""
        if self._seconds is None:
            return None
        return self._seconds[self.rows]

    def _check_repeats(self) -> None:
        """Raises DataError if many labels would be dropped that a column tells apart."""
        if self.options.duplicates is None:
            keys = self._keys
            counts = repeats(keys)
            if are_many(*counts):
                self.columns.ask_about_repeats(keys, self.rows, counts)

    @property
    def _keys(self) -> Indices:
        """A code for the item and annotator of each label."""
        return self.items.codes * len(self.annotators.names) + self.annotators.codes

    def _one_label_cells(self) -> Any:
        """Returns the column of labels; a list of one label is the label."""
        labels = self.columns.labels
        if isinstance(labels, tuple):
            return labels
        cells: list[Any] = []
        for cell in labels:
            if isinstance(cell, str):
                cells.append(cell)
            elif len(cell) == 1 or (cell and self.options.first):
                cells.append(cell[0])
            else:
                cells.append(tuple(cell))
        return cells

    def _leave_out_missing(self) -> None:
        """Leaves out labels that are missing, or without item or annotator, and counts them."""
        options = self.options
        columns = self.columns
        labels = self.labels
        coded = columns.coded and options.missing is None
        several = options.multi_label is not None and columns.rows_are_answers
        missing = np.zeros(len(labels.names), dtype=bool)
        without_class = np.zeros(len(labels.names), dtype=bool)
        for at, name in enumerate(labels.names):
            if several and has_no_class(name):
                without_class[at] = True
            elif isinstance(name, str):
                missing[at] = is_missing(name, options) or (coded and name == "-1")
        if none := int(without_class[labels.codes].sum()):
            self.notes.append(f"{none:,} answers have no class: they are a no to each class.")
        texts = list(itertools.compress(labels.names, missing))
        used = ~missing[labels.codes]
        if not used.all() and not columns.annotators_in_columns:
            self.notes.append(missing_line(int((~used).sum()), texts))
        for side, word in ((self.items, "item"), (self.annotators, "annotator")):
            names = np.array(list(map(str.strip, side.names)), dtype=object)
            named = names.astype(bool)[side.codes]
            if nameless := int((used & ~named).sum()):
                self.notes.append(nameless_line(nameless, word))
                used &= named
        if not used.any():
            raise error("no_labels", self.path, problem="; all are missing" if len(used) else "")
        lost = 0
        if not used.all():
            num_named = sum(map(bool, map(str.strip, self.items.names)))
            self.rows = self.rows[used]
            self.items = self.items.at(used)
            self.annotators = self.annotators.at(used, every=columns.annotators_in_columns)
            self.labels = labels.at(used)
            lost = num_named - len(self.items.names)
        if options.missing is None and not options.bins:
            counts = self.labels.counts()
            self.notes += nothing_said(self.labels.names, counts, list(filter(None, texts)))
        for side, word in ((self.items, "item"), (self.annotators, "annotator")):
            counts = side.counts()
            sizes = {}
            for name in among(PLACEHOLDERS, set(side.names)):
                sizes[name] = int(counts[side.names.index(name)])
            self.notes += id_lines(word, twice_spelt(side.names), sizes)
        if lost:
            self.notes.append(f"Items without a label: {lost:,}.")

    def place(self, side: Coded) -> Callable[[int], str]:
        """Returns where the first label of a column's code is."""

        def place(code: int) -> str:
            for row in self.rows[side.codes == code].tolist():
                return self.columns.place(row)
            return ""

        return place

    def _spell_labels(self) -> None:
        """Spells numbers in one way, and makes bins of ratings.

        Raises:
            DataError: cells of several labels, or ratings that have no bin.
        """
        names = self.labels.names
        orders = of_type(names, tuple)
        check_ranking(self.path, self.columns.layout, orders)
        place = self.place(self.labels)
        structured = self.columns.structured
        classes, self.options, notes = spelt_labels(
            self.path, names, self.options, place, structured=structured
        )
        self.labels = self.labels.renamed(classes)
        self.notes += notes

    def _ask_for_each_class(self, sign: str) -> None:
        """Makes a yes/no question of each class of those that cells have, parted by a sign."""
        place = self.place(self.labels)
        parted = []
        for at, name in enumerate(self.labels.names):
            if name and self._is_one_label(name):
                parted.append([name])
            else:
                parted.append(split_cell(self.path, name, sign, place(at)))
        check_ranking(self.path, self.columns.layout, list(filter(None, parted)))
        used = list(dict.fromkeys(itertools.chain.from_iterable(parted)))
        check_names(self.path, "label", used, lambda at: "", self.options)
        classes = classes_of(self.path, used, self.options, lambda at: "")
        width = len(classes)
        code_of = positions(classes)
        ones = np.zeros((len(parted), width), dtype=np.int64)
        for row, cell in enumerate(parted):
            ones[row, list(map(code_of.__getitem__, cell))] = 1
        self.pairs = tuple(itertools.product(self.items.names, classes))
        self.items = Coded(
            list(itertools.starmap("{} [{}]".format, self.pairs)),
            (self.items.codes[:, None] * width + np.arange(width)).ravel(),
        )
        repeated = np.repeat(np.arange(len(self.rows)), width)
        self.annotators = self.annotators.at(repeated, every=True)
        self.rows = self.rows[repeated]
        self.labels = Coded(["no", "yes"], ones[self.labels.codes].ravel())
        self.options = dataclasses.replace(self.options, classes=("no", "yes"))
        shown = listed(classes, SHOWN)
        self.notes.append(f"Each of {width} classes is a yes/no question: {shown}.")

    def _is_one_label(self, name: Any) -> bool:
        """Whether a cell is one label whatever is in it: in JSON a text is."""
        return self.columns.structured and isinstance(name, str)

    def _check(self) -> None:
        """Raises DataError for names and labels that cannot be used."""
        path = self.path
        options = self.options
        names = self.labels.names
        items = self.items.names
        annotators = self.annotators.names
        where = self.place(self.annotators)
        check_ids(path, "item", items, self.place(self.items))
        check_names(path, "annotator", annotators, where, options)
        check_ids(path, "annotator", annotators, where)
        column = self.columns.roles.get("label", "label")
        self.notes += check_classes(path, column, names, self.labels.counts(), options)
        lines = names
        if self.columns.structured:
            lines = list(map(" ".join, map(str.split, names)))
        check_names(path, "label", lines, self.place(self.labels), options)
        check_not_names(path, names, items, annotators, options)

    def without_duplicates(self) -> Mask:
        """Returns which labels count if an annotator labelled an item several times."""
        rule = self.options.duplicates or "last"
        keys = self._keys
        counted = np.ones(len(keys), dtype=bool)
        extra, by_time = superseded(keys, rule, self.times)
        if len(extra) and rule == "error":
            row = int(extra[0])
            raise error(
                "duplicate_pair",
                self.path,
                self.columns.place(int(self.rows[row])),
                item=self.items.names[self.items.codes[row]],
                annotator=self.annotators.names[self.annotators.codes[row]],
            )
        if len(extra):
            line = duplicates_line(
                len(extra), rule, self.columns, self._times_problem, by_time=by_time
            )
            self.notes.insert(0, line)
            counted[extra] = rule == "all"
        return counted


def missing_line(count: int, texts: Texts) -> str:
    """Returns how many labels are missing, and which texts they are."""
    return f"{count:,} labels are missing ({', '.join(map(repr, texts))})."


def nameless_line(count: int, word: str) -> str:
    """Returns how many labels have no item, or no annotator."""
    return f"{count:,} labels without {word} are left out."


def twice_spelt(names: Texts) -> Floats:
    """Returns how many ids look like others, and how many are the numbers of others.

    These are compared exactly above 2**53 too; NaN if not all ids are numbers.
    """
    alike = len(names) - len({*map(bare_name, names)})
    twice = math.nan
    numbers = numbers_of(names)
    if numbers is not None:
        twice = len(names) - len(set(numbers))
        if twice:
            twice = len(names) - len(set(map(Decimal, names)))
    return np.array([alike, twice], dtype=np.float64)


def id_lines(word: str, twice: Floats, sizes: Mapping[str, int]) -> list[str]:
    """Returns lines on ids that may be the same, or may be missing.

    Args:
        word: "item" or "annotator".
        twice: see `twice_spelt`.
        sizes: how many labels are of each name.
    """
    lines = []
    alike, numbers = twice.tolist()
    if alike:
        lines.append(f"{alike:,.0f} more {word}s differ only in spaces or Unicode form.")
    if numbers > 0:
        lines.append(f"{numbers:,.0f} more {word}s are numbers written in two ways (7, 7.0).")
    for name in among(PLACEHOLDERS, sizes):
        lines.append(f"{sizes[name]:,} labels are of {word} {name}, which may be missing.")
    return lines


def spelt_labels(
    path: Path,
    names: Sequence[Any],
    options: TableOptions,
    place: Callable[[int], str],
    *,
    structured: bool = False,
) -> tuple[list[str], TableOptions, list[str]]:
    """Returns the class of each label, numbers in one spelling and ratings as bins.

    Besides, the options, with the bins as classes, and notes.

    Args:
        path: the file.
        names: the different labels.
        options: how they are read.
        place: where name i is first.
        structured: whether a text is one label, see `LabelColumns`.

    Raises:
        DataError: cells of several labels, or ratings that have no bin.
    """
    notes = []
    classes = decimal_points(names)
    if classes != names:
        notes.append(f"Commas are decimal: {names[0]} is read as {classes[0]}.")
    cells = ["" if structured and isinstance(name, str) else name for name in classes]
    notes += check_several(path, cells, place)
    if not options.exact_names:
        classes = one_spelling(classes, options.classes)
    if options.bins:
        classes, ranges = bin_names(path, classes, options.bins)
        if options.classes in ((), ALL):  # empty bins have their places too
            options = dataclasses.replace(options, classes=tuple(ranges))
    return classes, options, notes


def code_together(
    columns: Sequence[LabelColumns], options: Sequence[TableOptions], paths: Sequence[Path]
) -> list[CodedLabels]:
    """Codes files whose labels become one table: classes are spelt and cut as if it were one file.

    Args:
        columns: what each file contains.
        options: how each is read; several labels in a cell, bins and classes are the same.
        paths: the files; the last one is named if their names do not go together.

    Raises:
        DataError: names or labels that cannot be used, in one of them or together.
    """
    files = list(map(CodedLabels, columns, options, paths))
    path = paths[-1]
    annotators = []
    classes = []
    written = []
    for coded in files:
        annotators += coded.annotators.names
        written += coded.written.names
        classes += [name for _, name in coded.pairs or ()]
    check_names(path, "annotator", [*dict.fromkeys(annotators)], lambda at: "", options[-1])
    if classes and all(coded.pairs for coded in files):
        named = classes_of(path, [*dict.fromkeys(classes)], options[-1], lambda at: "")
        with_classes = functools.partial(dataclasses.replace, classes=tuple(named))
        files = list(map(CodedLabels, columns, map(with_classes, options), paths))
    elif not classes:
        classes, spelling, _ = spelt_labels(
            path, written, options[-1], lambda at: "", structured=True
        )
        names = iter(classes)
        for coded in files:
            coded.labels = coded.written.renamed(
                list(itertools.islice(names, len(coded.written.names)))
            )
            coded.options = spelling
    lines = list(map(" ".join, map(str.split, dict.fromkeys(classes))))
    check_names(path, "label", lines, lambda at: "", options[-1])
    return files


def superseded(keys: Indices, rule: Duplicates, times: Floats | None) -> tuple[Indices, bool]:
    """Returns which labels do not count because another has their key, and whether times decided.

    If there are times, the last one is the newest and the first one the oldest; one whose time is
    missing is neither.
    """
    extra = duplicates(keys, rule)
    if rule in AGES and len(extra) and times is not None:
        never_used = -np.inf if rule == "last" else np.inf
        oldest_first = np.argsort(np.where(np.isnan(times), never_used, times), kind="stable")
        others = np.sort(oldest_first[duplicates(keys[oldest_first], rule)])
        if not np.array_equal(others, np.sort(extra)):
            return others, True
    return extra, False


def duplicates_line(
    count: int, rule: str, columns: LabelColumns, problem: str, *, by_time: bool
) -> str:
    """Returns how many labels repeat an item and annotator, and which of them are used.

    Args:
        count: how many.
        rule: "last", "first" or "all".
        columns: the file's.
        problem: why times were not read.
        by_time: whether another label counts than without times.
    """
    used = rule
    if by_time:
        used = f"the {AGES[rule]} by {columns.roles.get('time', 'their times')}"
    line = f"Duplicate (item, annotator) pairs: {count:,}, {used} used (--duplicates)."
    if rule in AGES and problem:
        line += f" Times of {columns.roles.get('time', 'labels')} were not used: {problem}."
    return line
