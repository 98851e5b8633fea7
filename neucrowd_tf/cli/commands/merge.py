"""The command `neucrowd merge`: adds new labels to a table of labels."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TypeAlias

import numpy as np

from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.merge_flags import Merge
from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.coding import Coded
from neucrowd_tf.io.column_names import num_roles
from neucrowd_tf.io.columns import Column, LabelColumns
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.gold import ANSWERS
from neucrowd_tf.io.items import match_items, options_beside
from neucrowd_tf.io.labels import Reading, read_annotator_columns, read_columns, read_together
from neucrowd_tf.io.roles import as_list, command_line
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import head_of
from neucrowd_tf.io.tables.writing import name_of, to_csv

ONE = {"items": "item", "annotators": "annotator", "classes": "class"}
TABLES = (".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq")
# The labels by item (with the class if cells had several labels) and annotator.
Labels: TypeAlias = dict[tuple[str, ...], list[str]]


def run(flags: Merge) -> list[str]:
    """Writes the labels of both files; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {"--annotations": flags.annotations, "--labels": flags.labels}
    check_outputs({"--output": flags.output}, inputs)
    readings = _read(flags)
    table, new = map(_labels, readings)
    further = readings[1].further
    if not flags.annotator_columns and further and table.items() >= new.items():
        raise DataError(_question(flags, further))
    before = _names(table)
    size = _size(table)
    equal = 0
    replaced = 0
    for pair, labels in entries_of(new, table).items():
        if table[pair] == labels:
            equal += len(labels)
        else:
            replaced += len(labels)
    table.update(new)
    header = ["task", "class", "annotator", "label"]
    if readings[0].pairs is None:
        header.remove("class")
    # As the files have them: the table is read again, with further labels.
    rows = ([*pair, label] for pair, labels in table.items() for label in labels)
    write_outputs({flags.output: to_csv(header, rows)})
    added = _size(new) - replaced - equal
    notes = [
        f"{size:,} labels and {_size(new):,} new ones: {added:,} added, {replaced:,} replaced,"
        f" {equal:,} equal to earlier ones; {_size(table):,} labels in all."
    ]
    after = _names(new)
    if flags.annotator_columns:
        del after["annotators"]  # columns of the file, which a flag names
    for title, every in after.items():
        if names := every - before[title]:
            first = ", ".join(map(repr, sorted(names)[:5]))
            if len(names) == 1:
                notes.append(f"1 {ONE[title]} is new: {first}. Check its spelling.")
            else:
                notes.append(f"{len(names):,} {title} are new: {first}. Check their spelling.")
    return notes


def _labels(reading: Reading) -> Labels:
    """Returns the labels; several ones of a pair are there with --duplicates=all."""
    crowd = reading.annotations
    items = reading.pairs or list(zip(map(str, crowd.instance_names.tolist()), strict=True))
    annotators = list(map(str, crowd.annotator_names.tolist()))
    classes = list(map(str, crowd.class_names.tolist()))
    table: Labels = {}
    columns = (crowd.instances, crowd.annotators, crowd.labels)
    for item, annotator, label in zip(*map(np.ndarray.tolist, columns), strict=True):
        table.setdefault((*items[item], annotators[annotator]), []).append(classes[label])
    return table


def _size(table: Labels) -> int:
    return sum(map(len, table.values()))


def _names(table: Labels) -> dict[str, set[str]]:
    """Returns the items, annotators and classes of a table."""
    items, *classes, annotators = map(set, zip(*table, strict=True))
    classes = classes or [set().union(*table.values())]
    return {"items": items, "annotators": annotators, "classes": classes[0]}


def _read(flags: Merge) -> list[Reading]:
    """Returns the labels at hand, and those to add.

    Raises:
        UsageError: no flag names the labels to add.
        DataError: a file that cannot be used.
    """
    path = flags.labels or flags.annotations
    if flags.labels is None and not flags.annotator_columns:
        raise UsageError(
            "--labels: required. Name the file of new labels, or columns with --annotator_columns."
        )
    before = _columns(flags.annotations, flags)
    options = _options_of_new(path, flags)
    if flags.annotator_columns:
        options = dataclasses.replace(options, duplicates="error")
        new = read_annotator_columns(path, options, flags.annotator_columns)
    else:
        new = _columns(path, options)
    items = _named_as(new.items, before.items)
    annotators = _named_as(new.annotators, before.annotators)
    new = dataclasses.replace(new, items=items, annotators=annotators)
    if options.multi_label is not None and _answers_questions(new):
        options = dataclasses.replace(options, multi_label=None, classes=ANSWERS)
    first, second = read_together([before, new], [flags, options], [flags.annotations, path])
    if first.pairs is not None and second.pairs is None:
        questions = list(map(str, first.annotations.instance_names.tolist()))
        names = list(map(str, second.annotations.instance_names.tolist()))
        places = match_items(names, questions)
        if (places < 0).any():
            raise error(
                "unmatched_item",
                path,
                advice=f"Write it as {questions[0]}",
                item=names[int(places.argmin())],
                count=len(questions),
                other="the labels",
            )
        pairs = tuple(map(first.pairs.__getitem__, places.tolist()))
        second = dataclasses.replace(second, pairs=pairs)
    return [first, second]


def _columns(path: Path, options: TableOptions) -> LabelColumns:
    """Returns the labels of a file that names annotators."""
    columns = read_columns(path, options)
    if columns.counts is not None:
        raise DataError(f"{path}: vote counts do not name annotators. Merge labels of annotators.")
    return columns


def _named_as(column: Column, other: Column) -> Column:
    """Returns names that commands wrote, with an apostrophe before a sign, as the other file's."""
    names = set(Coded.of(other).names)
    coded = Coded.of(column)
    return coded.renamed([name_of(name, names) for name in coded.names])


def _answers_questions(columns: LabelColumns) -> bool:
    """Whether labels are yes or no to each `item [class]`, as relabel.csv lists them."""
    labels = columns.labels[0] if isinstance(columns.labels, tuple) else columns.labels
    items = Coded.of(columns.items).names
    return {"", *ANSWERS}.issuperset(labels) and all(item.endswith("]") for item in items)


def _options_of_new(path: Path, flags: Merge) -> TableOptions:
    """Returns the options that count for the labels to add.

    A table may have a header beside one without, and no question beside a file of several.
    """
    if ending(path) not in TABLES:
        return flags
    options = options_beside(path, flags)
    columns = head_of(path, options, 1).columns
    if flags.header == "none" and num_roles(columns) < 2:
        return flags
    question = flags.question
    if question is not None and question.partition("=")[0] not in columns:
        question = None
    return dataclasses.replace(options, question=question, first=False)


def _question(flags: Merge, columns: Texts) -> str:
    """Returns what to do if all labels are there already, and columns may have others."""
    named = as_list(columns)
    command = command_line(flags.annotations, [f"--annotator_columns={shlex.quote(named)}"])
    return (
        f"{flags.labels}: no label is new. Is {' or '.join(columns)} an annotator? To add"
        f" the labels of this column:\n  {command}"
    )
