"""Files of labels in any layout: read, checked, and reported in one to three lines."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Fields, Floats, Indices, Texts
from neucrowd_tf.errors import DataError, UsageError, printable
from neucrowd_tf.io.asking import Asked, Proposal
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.coding import CodedLabels, code_together
from neucrowd_tf.io.column_names import few, named_columns
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.fields import (
    ANY,
    Field,
    columns_of_fields,
    fields_of,
    lists_of,
    path_of,
    proposals_of,
    with_keys_as_annotators,
)
from neucrowd_tf.io.files.npy import read_npy
from neucrowd_tf.io.folders import joined, tables_in
from neucrowd_tf.io.head import Head, unknown_keys
from neucrowd_tf.io.importers import find, peerannot
from neucrowd_tf.io.items import item_columns, matched
from neucrowd_tf.io.layouts import MOST_TRIED, columns_of, completed, of_annotators, of_matrix
from neucrowd_tf.io.lines import class_line, lines_of
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, encode, read_table
from neucrowd_tf.io.values import check_ids, classes_of
from neucrowd_tf.names import positions, typed_names

__all__ = ["Reading", "class_line", "read_annotations", "read_columns", "report_on_stderr"]

MOST_FIELDS = 24  # that a message names
PLAIN = "a CSV with the columns task, annotator and label"
MOST_CELLS = 10**9  # of a matrix in an NPY file


@dataclasses.dataclass(frozen=True)
class Reading:
    """Labels and what is to be said of how they were read.

    Attributes:
        annotations: the labels.
        lines: what was read; a command prints it before anything else.
        gold: labels that the file's tool marks as true, by item.
        texts: what was labelled, by the name of the instance, if the file has it.
        pairs: the item and the class of each instance, if cells had several labels.
        times: `[A]` seconds since 1970 of each label of `annotations`, NaN if it is missing; None
            if the file has no times, or cells had several labels.
        further: unused columns that may be an annotator each, see `LabelColumns`.
    """

    annotations: Annotations
    lines: tuple[str, ...]
    gold: Mapping[str, str]
    texts: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...] | None = None
    times: Floats | None = None
    further: tuple[str, ...] = ()


def report_on_stderr(line: str) -> None:
    """Prints a line on stderr, without characters that hide or rearrange others."""
    print(printable(line), file=sys.stderr, flush=True)  # noqa: T201


def read_annotations(
    path: str | Path,
    options: TableOptions | None = None,
    *,
    items: Texts | Array | None = None,
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
    path = Path(path)
    options = options or TableOptions(duplicates="error")
    coded = CodedLabels(read_columns(path, options), options, path)
    reading = _reading(coded, None if items is None else list(map(str, items)), unmatched)
    for line in reading.lines:
        report(line)
    return reading


def read_together(
    columns: Sequence[LabelColumns], options: Sequence[TableOptions], paths: Sequence[Path]
) -> list[Reading]:
    """Returns the annotations of files whose labels become one table, see `code_together`.

    The lines of files, not those of columns that a flag names, are printed.
    """
    readings = []
    for coded in code_together(columns, options, paths):
        readings.append(_reading(coded, None, "error"))
        for line in readings[-1].lines if coded.columns.layout else ():
            report_on_stderr(line)
    return readings


def read_annotator_columns(path: Path, options: TableOptions, columns: Texts) -> LabelColumns:
    """Reads columns that have an annotator's labels each, in a table whose rows may repeat items.

    Args:
        path: the table.
        options: how it is read; columns of annotators and labels are not used.
        columns: the columns' names, which are those of the annotators.

    Raises:
        DataError: no such column.
    """
    table = read_table(path, options)
    items = item_columns(table, options)
    labels = named_columns(path, table.columns, columns, "annotator_columns")
    table = table.only([*items, *labels])
    _, codes = encode(table.cells_by_row(table.columns))
    _, first = np.unique(codes, return_index=True)
    table = table.rows(first.tolist())
    return of_annotators(table, items, labels)


def read_columns(path: Path, options: TableOptions) -> LabelColumns:
    """Returns items, annotators and labels as the file has them.

    Raises:
        DataError: a file whose layout or roles are not known.
    """
    head = Head(path, options)
    if head.kind == "folder" and find(head) is None and (files := tables_in(path)):
        return joined(path, files, [read_columns(file, options) for file in files])
    if head.kind == "npy":
        return of_matrix(read_npy(path, MOST_CELLS), path, options)
    if options.votes_columns and peerannot.matches(head):
        return columns_of(peerannot.counts_of(head), options)
    by_path = "." in "".join((*options.task_column, *options.worker_column))
    if options.header == "first" and not options.votes_columns:
        importer = find(head)
        if importer is not None and not (by_path and head.has_records):
            return importer.read(head, options)  # type: ignore[no-any-return]
    if head.has_members and head.first is None:
        noun = {"zip": "archive"}.get(head.kind, head.kind)
        raise unreadable(path, f"no known tool writes this {noun}", "Name a file of labels")
    if head.has_members or (head.has_records and head.is_nested):
        return _by_path(head, options)
    if options.first:
        raise UsageError(f"--first: {path} is a table, not a tool's export. Remove the flag.")
    return columns_of(head.table(strict=False), options)


def _by_path(head: Head, options: TableOptions) -> LabelColumns:
    """Returns the labels of records whose fields the flags name by path.

    Raises:
        DataError: no fields are named; it proposes fields with which the records can be read.
    """
    records = [("file", head.value)] if head.keys else list(head.records())
    fields = fields_of(records)
    if not fields:
        raise error("no_labels", head.path, problem="; there are no rows")
    if options.task_column or options.worker_column or options.label_column:
        options = with_keys_as_annotators(records, options)
        table = columns_of_fields(head.path, records, options)
        if isinstance(table, Table):
            return columns_of(table, options)
        return table

    def complete(proposal: Proposal) -> Proposal | None:
        flags = TableOptions.of(**proposal)
        try:
            table = columns_of_fields(head.path, records[:MOST_TRIED], flags)
        except DataError:
            return None
        if isinstance(table, Table):
            return completed(table, flags, proposal)
        return proposal

    paths = list(map(path_of, fields))
    if head.keys:
        paths = _paths_of_keyed(head.value, fields)
    otherwise = [f"Convert it to {PLAIN}."]
    if paths:
        otherwise = [
            f"Its fields by path are {few(paths, MOST_FIELDS)}.",
            "Name them with --task_column, --worker_column and --label_column, or convert the file"
            f" to {PLAIN}.",
        ]
    words = {"problem": unknown_keys(head)}
    asked = Asked("unknown_layout", head.path, words, proposals_of(fields), otherwise=otherwise)
    raise asked.answered(complete)


def _paths_of_keyed(value: Fields, fields: Sequence[Field]) -> list[str]:
    """Returns the paths of the fields of an object that can be roles.

    It has a list of objects for each item, which `*` stands for, or lists beside each other.
    """
    within = fields_of([("", {ANY: of_item}) for of_item in value.values()])
    if all(map(lists_of, within)):
        return [ANY, *map(path_of, within)]
    are_lists = set(map(type, value.values())) == {list}
    are_columns = are_lists and len(value) < min(map(len, value.values()))
    if are_columns or any(map(lists_of, fields)):
        return list(map(path_of, fields))
    return []


def _reading(coded: CodedLabels, items: list[str] | None, unmatched: str) -> Reading:
    """Returns the annotations of coded labels, over `items` if there are any, and the lines."""
    path = coded.path
    names = coded.labels.names
    columns = coded.columns
    classes = classes_of(path, names, coded.options, coded.place(coded.labels))
    code_of = positions(classes)
    labels = np.array(list(map(code_of.__getitem__, names)), dtype=np.int64)[coded.labels.codes]
    texts = columns.texts
    times = None
    if columns.counts is None:
        counted = coded.without_duplicates()
        instances, tasks = _instances(coded, items, unmatched)
        counted &= instances >= 0
        crowd = Annotations(
            instances[counted],
            coded.annotators.codes[counted],
            labels[counted],
            instance_names=tasks,
            annotator_names=typed_names(coded.annotators.names),
            class_names=typed_names(classes),
            duplicates="all" if coded.options.duplicates == "all" else "error",
        )
        class_counts = np.bincount(labels, minlength=len(classes))
        if coded.times is not None and coded.pairs is None:
            times = coded.times[counted]
    else:
        counts = np.asarray(columns.counts)
        if not counts.any():
            raise error("no_labels", path, problem="; all counts are 0")
        check_ids(path, "item", coded.items.names, coded.place(coded.items))
        instances, tasks = _instances(coded, items, unmatched)
        votes = np.zeros((len(tasks), len(classes)), dtype=np.int64)
        counted = instances >= 0
        np.add.at(votes, (instances[counted], labels[counted]), counts[counted])
        crowd = Annotations.from_votes(
            votes, instance_names=tasks, class_names=typed_names(classes)
        )
        class_counts = votes.sum(axis=0)
    if coded.pairs is not None:
        named = zip(coded.items.names, coded.pairs, strict=True)
        texts = {name: texts[item] for name, (item, _) in named if item in texts}
    lines = lines_of(coded, crowd, class_counts)
    return Reading(crowd, lines, columns.gold, texts, coded.pairs, times, columns.further)


def _instances(
    coded: CodedLabels, items: list[str] | None, unmatched: str
) -> tuple[Indices, Array]:
    """Returns the instance of each label, -1 if it is left out, and the instances' names."""
    names = coded.items.names
    rows = coded.columns.rows
    if items is None:
        return coded.items.codes, typed_names(names)
    if rows:
        if len(rows) != len(items):
            raise broken(coded.path, f"{len(rows):,} rows without ids for {len(items):,} items")
        places = np.array(list(map(int, names)))
    elif coded.pairs is not None:
        raise UsageError("--multi_label: training uses one question per item. Remove it.")
    else:
        where = coded.place(coded.items)
        drop = unmatched == "drop"
        places = matched(coded.path, names, items, where, drop=drop, other="the features")
    instances = places[coded.items.codes]
    if lost := int((places < 0).sum()):
        coded.notes.append(
            f"{int((instances < 0).sum()):,} labels of {lost:,} items without features are"
            " left out (--unmatched)."
        )
    return instances, typed_names(items)
