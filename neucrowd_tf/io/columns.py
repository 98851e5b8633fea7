"""Labels as three columns of text: what the reader of each layout returns."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError

# Texts in the order of the file, or the different texts and the code of each place.
Column = Texts | tuple[list[str], Any]


@dataclasses.dataclass(frozen=True)
class LabelColumns:
    """A labels, each of one item by one annotator, in the order of the file.

    A reader does not judge names or values: missing labels, duplicates, spelling, numbers and
    several labels in a cell are handled once, for all layouts.

    Attributes:
        items, annotators: `[A]` ids as text, or the different texts and the code of each label.
        labels: `[A]` labels as text, likewise; "" if it is missing. A list is a cell of several
            labels.
        place: where the file has label i: "line 3", "record 2".
        layout: what the file is, in words: "Label Studio", "long table".
        roles: the columns or fields of the roles task, worker, label and time, for the printed
            lines.
        reason: why the label's column was used, if neither an alias nor a flag says so.
        notes: further lines to print: what was assumed and how to change it.
        left_out: how many labels were left out, by reason ("spans", "without annotator").
        unused: columns that could have been meant, for the printed line.
        further: unused columns that have one of the classes for each item, as a model's labels in
            a column beside people's are.
        gold: labels that the tool marks as true, by item.
        texts: what was labelled (a text, an image's address), by item.
        times: `[A]` when labels were given, as `items`; empty if the file does not say.
        annotators_in_columns: whether the annotators are columns of a wide table.
        counts: `[A]` votes if annotators are unknown: row i is an item, a class in `labels` and
            its number of votes; `annotators` is empty.
        structured: whether a text is one label, as in JSON: rules for cells do not hold.
        rows_are_answers: whether each label is a row or a submission of its own: with several
            labels in a cell, one without a class is a no to each class, not a missing label.
        coded: whether -1 is a missing label, as in a matrix without a header.
        rows: the numbers of the rows if items have no ids.
        wrong: the error of a row of a wrong length, which is raised after those of the values.
        ask_about_repeats: raises an error if many pairs of item and annotator have several labels
            and the file's columns tell them apart. Takes the pair's code and the place in the file
            of each label, and how many pairs repeat and how many there are.
    """

    items: Column
    annotators: Column
    labels: Column | Sequence[str | list[str]]
    place: Callable[[int], str]
    layout: str = ""
    roles: Mapping[str, str] = dataclasses.field(default_factory=dict)
    reason: str = ""
    notes: tuple[str, ...] = ()
    left_out: Counter[str] = dataclasses.field(default_factory=Counter)
    unused: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    gold: Mapping[str, str] = dataclasses.field(default_factory=dict)
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    times: Column = ()
    annotators_in_columns: bool = False
    counts: Sequence[int] | None = None
    structured: bool = False
    rows_are_answers: bool = False
    coded: bool = False
    rows: Texts = ()
    wrong: DataError | None = None
    ask_about_repeats: Callable[[Any, Any, tuple[int, int]], None] = lambda *_: None
