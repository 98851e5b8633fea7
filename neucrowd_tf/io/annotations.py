"""Files of annotations in any layout: long, wide, votes, a matrix, or peerannot's JSON."""

from __future__ import annotations

import dataclasses
import difflib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files import check_regular, read_json, read_npy
from neucrowd_tf.io.ids import as_name_array, plain_integers, typed_names
from neucrowd_tf.io.importers import detect, read_export
from neucrowd_tf.io.long_form import (
    LabelTable,
    as_frame,
    check_classes,
    check_table,
    read_long,
    tell_missing,
)
from neucrowd_tf.io.names import MINUS_ONE, check_names, distinct, is_truth, same_header
from neucrowd_tf.io.tables import ALIASES, PLAIN, CsvFile, TableFormat, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = re.compile(r"-?\d+(\.0+)?")
COUNT = re.compile(r"(\d+(\.0+)?)?")
VOTES = "votes_"
ALONE = 3  # cells of an annotator who shares no label with others
MANY_ROWS = 10  # whose sums are not all the same by chance
EMPTY = ("", "nan", "NaN")
_POINT_ZERO = re.compile(r"(?<=\d)\.0+$")
HEADER = (
    "where there are ids the first line names the columns: task,worker,label (--task_column,"
    " --worker_column and --label_column say what they are called), or task and a column an"
    " annotator"
)
A_ROW_A_LABEL = (
    "if each row is one label, --worker_column and --label_column name the columns of annotators"
    " and labels"
)


def read_labels(
    path: Path, num_tasks: int | None = None, layout: TableFormat = PLAIN
) -> LabelTable:
    """Reads annotations in any layout.

    The export of an annotation tool is recognised (:mod:`neucrowd_tf.io.importers`); a warning
    counts what it leaves out. Any other `.json` file is peerannot's `answers.json`; a `.npy` file
    a dense matrix with -1 for missing. A CSV is long (`task, worker, label` or their aliases), wide
    (`task` and one column an annotator, empty where there is no label; if no cell is empty, -1 is
    "no label"), counts of votes (`task` and a column `votes_<class>` for each class) where it is
    not known who voted, or a dense matrix of class codes with -1 for missing, with or without a
    header of annotators.

    Args:
        path: the file.
        num_tasks: how many rows a dense matrix must have; None takes any number.
        layout: how a CSV is written.

    Raises:
        DataError: whatever is wrong with the file.
    """
    if path.is_dir() or path.suffix != ".npy":
        check_regular(path)
        if (tool := detect(path)) is not None:
            return _exported(path, tool, layout)
    for name in ("question", "first"):
        if getattr(layout, name):
            raise UsageError(
                f"--{name}: expected an annotation tool's export with it, received {path}"
            )
    if path.suffix == ".json":
        return read_answers(path, layout)
    if path.suffix == ".npy":
        return _dense(read_npy(path), None, num_tasks, path, lambda row: f"row {row}")
    csv = CsvFile.open(path, layout)
    columns = csv.header
    csv.check_separator()
    if all(WHOLE.fullmatch(column) for column in columns):
        return _dense_csv(csv, num_tasks, layout)
    roles = layout.roles(columns)
    others = [column for column in columns if column != roles.get("task")]
    if "task" in roles and others and all(column.startswith(VOTES) for column in others):
        return _votes(csv, layout)
    if {"worker", "label"} & set(roles) or ("task" in roles and _misspelt_long(columns)):
        return read_long(csv, layout)
    if "task" in roles:
        return _wide(csv, layout)
    return _dense_csv(csv, num_tasks, layout)


def _exported(path: Path, tool: str, layout: TableFormat) -> LabelTable:
    export = read_export(path, tool, question=layout.question, first=layout.first)
    if export.left_out:
        warnings.warn(f"{path}: {export.summary()}", stacklevel=2)
    triples = (export.tasks, export.workers, export.labels)
    check_table(LabelTable(path, triples, line=lambda i: export.places[i]), layout)
    frame = export.frame()
    return LabelTable(path, (frame["task"], frame["worker"], frame["label"]))


def _misspelt_long(columns: list[str]) -> bool:
    """Whether three columns look like `task,worker,label` with a slip: then the reader of that
    layout says which.
    """
    if len(columns) != 3:
        return False
    near = [
        difflib.get_close_matches(name, columns, n=1, cutoff=0.7)
        for role in ("worker", "label")
        for name in ALIASES[role]
    ]
    return any(near)


# ----------------------------------------------------------------- a row a task


def read_wide_frame(frame: Any) -> LabelTable:
    """Returns the triples of a frame with a row an instance and a column an annotator; whole floats
    become ints (NaN turns an integer column into floats).

    Raises:
        DataError: a repeated row or column name.
    """
    frame = as_frame(frame)
    for axis, what in ((frame.index, "row"), (frame.columns, "column")):
        if not axis.is_unique:
            raise DataError(
                f"wide frame: expected each {what} name once, received"
                f" {axis[axis.duplicated()][0]!r} again"
            )
    values = frame.to_numpy(dtype=object)
    rows, columns = np.nonzero(frame.notna().to_numpy())
    given = values[rows, columns].tolist()
    if all(isinstance(v, (float, np.floating)) and float(v).is_integer() for v in given):
        given = [int(v) for v in given]
    return LabelTable(
        "wide frame",
        (as_name_array(frame.index)[rows], as_name_array(frame.columns)[columns], given),
        instance_names=frame.index,
        annotator_names=frame.columns,
        by_task=True,
    )


def _cells(csv: CsvFile, layout: TableFormat) -> tuple[NDArray[Any], pd.DataFrame]:
    """Returns the task ids `[N]` and the other columns as text."""
    frame = csv.table()
    try:
        ids = task_ids(frame, csv.path, layout, csv)
    except DataError as error:
        hint = f"; {A_ROW_A_LABEL}" if "each task once" in str(error) else ""
        raise DataError(f"{error}{hint}") from None
    one = np.ones(len(ids), dtype=np.int64)
    check_names(
        ids.tolist(),
        one,
        np.arange(len(ids)),
        "task",
        lambda row: f"{csv.path}: {csv.line(row)}",
        exact=layout.exact_names,
        markers=layout.missing is None,
    )
    cells = frame.drop(columns=[layout.roles(list(frame.columns))["task"]])
    if cells.empty and not len(cells.columns):
        raise DataError(
            f"{csv.path}: {csv.line(0, header=False)}: expected columns of annotators beside the"
            " tasks', received none"
        )
    return ids, cells


def _wide(csv: CsvFile, layout: TableFormat) -> LabelTable:
    ids, cells = _cells(csv, layout)
    values = cells.to_numpy(dtype=object)
    missing = cells.isna().to_numpy() | np.isin(values.astype(str), EMPTY)
    if layout.missing is not None:
        named = np.isin(np.char.strip(values.astype(str)), layout.missing) & ~missing
        if named.any():
            tell_missing(csv.path, int(named.sum()), "cells")
        missing |= named
    elif not missing.any():
        missing = values == MINUS_ONE
    _check_annotators(cells.columns.tolist(), ids, values, missing, csv, layout)
    rows, columns = np.nonzero(~missing)
    # NaN turns a column of whole numbers into 1.0, 2.0, and leaves others of the table as they are.
    labels = [_POINT_ZERO.sub("", label) for label in values[rows, columns].tolist()]
    annotators = as_name_array(cells.columns.tolist())
    table = LabelTable(
        csv.path,
        (ids[rows], annotators[columns], labels),
        instance_names=ids,
        annotator_names=annotators,
        by_task=True,
        line=lambda i: f"{csv.line(rows[i])}, column {annotators[columns[i]]!r}",
    )
    names, counts, first = distinct(annotators)
    where = f"{csv.path}: {csv.line(0, header=False)}"
    check_names(
        names,
        counts,
        first,
        "annotator",
        lambda _: where,
        exact=layout.exact_names,
        markers=layout.missing is None,
    )
    check_table(table, layout, wide=True)
    if not layout.classes:
        _check_no_triples(cells.columns.tolist(), values, missing, csv)
    if len(set(labels)) < 2 and (values == MINUS_ONE).any():
        raise DataError(
            f"{csv.path}: expected labels of at least two classes, received only"
            f" {labels[0] if labels else 'none'!r} beside -1, which stands for no label where no"
            " cell is empty; --missing= takes -1 for a class"
        )
    if labels and plain_integers(labels):
        codes = np.array(labels, dtype=np.int64)
        if not layout.classes:
            _check_no_counts(codes, missing, list(cells.columns), csv.path)
        table = dataclasses.replace(table, triples=(ids[rows], annotators[columns], codes.tolist()))
    return table


def _check_annotators(
    names: list[str],
    ids: NDArray[Any],
    values: NDArray[Any],
    missing: NDArray[np.bool_],
    csv: CsvFile,
    layout: TableFormat,
) -> None:
    """Raises DataError for what is no annotator's column of a wide table (a true label, a comment,
    counts) and for a row that is the header again.
    """
    task = layout.roles(csv.header)["task"]
    for row in [row for row, name in enumerate(ids) if same_header(str(name), task)]:
        if all(map(same_header, map(str, values[row]), map(str, names))):
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task and labels, received the header"
                " again (several files in one?)"
            )
    for name in names:
        if is_truth(name) or (name.lower().startswith(VOTES) and not layout.classes):
            what = "a true label's" if is_truth(name) else "counts of votes"
            raise DataError(
                f"{csv.path}: column {name!r}: expected an annotator's labels, received a column"
                f" named as {what}; take it out, or rename it if it is an annotator's"
            )
    if layout.classes or len(names) < 3:
        return
    found = [set(values[~missing[:, j], j].tolist()) for j in range(len(names))]
    times = Counter(label for labels in found for label in labels)
    shared = {label for label, count in times.items() if count > 1}
    for place, labels in enumerate(found):
        if not shared or not labels or labels & shared:
            continue
        first = int(np.flatnonzero(~missing[:, place])[0])
        said = (
            f"{csv.path}: {csv.line(first)}, column {names[place]!r}: expected labels, received"
            f" {values[first, place]!r}, as all of the column one that nobody else gives;"
        )
        if (~missing[:, place]).sum() >= ALONE:
            raise DataError(f"{said} take the column out, or --classes=... names all classes")
        warnings.warn(f"{said} it is taken for a label (a comment?)", stacklevel=4)


def _check_no_triples(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for full columns that are a row's annotator and label (and what else was
    kept of it) under names that are not known, rather than annotators: two columns, most of one's
    values never in the other, or more of which no two share a value.

    Annotators are known by agreeing more than by chance, or by names that differ in a number.
    """
    stems = {re.sub(r"\d+", "", name) for name in names}
    if missing.any() or len(values) < 2 or len(names) < 2 or len(stems) == 1:
        return
    found = [set(column) for column in values.T.tolist()]
    if len(names) > 2:
        if sum(map(len, found)) > len(set.union(*found)):
            return
    else:
        alone = [np.isin(values[:, j], list(found[1 - j]), invert=True).mean() for j in (0, 1)]
        if max(alone) < 0.5 or _agree_more_than_chance(values[:, 0], values[:, 1]):
            return
    shown = " and ".join(repr(name) for name in names[:2])
    raise DataError(
        f"{csv.path}: columns {shown}: expected two annotators' labels, received values that hardly"
        f" occur in both; {A_ROW_A_LABEL}, and --classes=... takes the columns for annotators"
    )


def _agree_more_than_chance(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns hold equal values in more rows than chance explains (one side, 5 %)."""
    rows = len(first)
    chance = sum((first == v).sum() * (second == v).sum() for v in set(first)) / rows**2
    return bool((first == second).mean() - chance > 1.645 * np.sqrt(chance * (1 - chance) / rows))


def _check_no_counts(
    labels: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str], path: Path
) -> None:
    """Raises DataError for full rows of numbers that look like a vote count a class: rows with one
    sum, or columns that agree less than by chance, as those of annotators do not.
    """
    if missing.any() or len(missing) < MANY_ROWS or len(set(labels.tolist())) == 1:
        return
    matrix = labels.reshape(missing.shape)
    sums = matrix.sum(axis=1)
    if labels.min() < 0 or missing.shape[1] < 2:
        return
    if (sums == sums[0]).all():
        what = f"numbers that sum to {sums[0]} in every row"
    elif _agree_less_than_chance(matrix):
        what = "numbers whose columns agree less than by chance"
    else:
        return
    named = ", ".join(VOTES + name for name in columns[:3]) + (", ..." if len(columns) > 3 else "")
    raise DataError(
        f"{path}: expected a label in each cell, received {what}, as counts of votes do; if they"
        f" are, name the columns {named}, if not, --classes=... names the classes"
    )


def _agree_less_than_chance(matrix: NDArray[np.int64]) -> bool:
    """Whether pairs of columns hold equal numbers in fewer rows than their shares of each number
    would make them.
    """
    rows, width = matrix.shape
    observed = expected = 0.0
    for value in np.unique(matrix):
        here = matrix == value
        a_row, a_column = here.sum(axis=1), here.sum(axis=0) / rows
        observed += float((a_row * (a_row - 1)).sum()) / rows
        expected += float(a_column.sum() ** 2 - (a_column**2).sum())
    return observed < expected - 1e-9 and width > 1


def _votes(csv: CsvFile, layout: TableFormat) -> LabelTable:
    """Reads counts of votes: `task` and a column for each class, whose empty cells count as 0."""
    ids, cells = _cells(csv, layout)
    names = [str(column) for column in cells.columns]
    counts = np.zeros(cells.shape)
    for place, name in enumerate(names):
        texts = cells[name].fillna("").str.strip()
        bad = np.flatnonzero(~texts.str.fullmatch(COUNT).to_numpy())
        if len(bad):
            raise DataError(
                f"{csv.path}: {csv.line(bad[0])}, column {name!r}: expected a count of votes from"
                f" 0, received {texts.iloc[bad[0]]!r}"
            )
        counts[:, place] = texts.where(texts != "", "0").astype(float)
    if not layout.classes and len(counts) > 2:
        _check_no_sums(counts, names, csv)
    plain = [name.removeprefix(VOTES).strip() for name in names]
    where = f"{csv.path}: {csv.line(0, header=False)}"
    found = distinct(plain)
    check_names(
        *found,
        "class",
        lambda _: where,
        known=layout.classes,
        exact=layout.exact_names,
        markers=layout.missing is None,
    )
    if not layout.classes and not layout.exact_names:
        header = LabelTable(csv.path, line=lambda _: csv.line(0, header=False))
        check_classes(found[0], 0 * found[1], found[2], header, layout, None)
    return LabelTable(
        csv.path,
        counts=counts,
        instance_names=ids,
        class_names=typed_names(plain),
        by_task=True,
        line=csv.line,
    )


def _check_no_sums(counts: NDArray[np.float64], names: list[str], csv: CsvFile) -> None:
    """Raises DataError for a first or last row or a column that holds the sums of the others."""
    total = counts.sum(axis=0)
    for row in (0, len(counts) - 1):
        if counts[row].any() and (2 * counts[row] == total).all():
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task's counts of votes, received the sums"
                " of the other rows; take the row out, or --classes=... names all classes"
            )
    sums = counts.sum(axis=1, keepdims=True) - counts
    for place in np.flatnonzero((counts == sums).all(axis=0)):
        if len(names) > 2 and len(counts) >= MANY_ROWS:
            raise DataError(
                f"{csv.path}: column {names[place]!r}: expected a class's counts of votes, received"
                " the sums of the others; take the column out, or --classes=... names all classes"
            )


def _is_header(csv: CsvFile, frame: pd.DataFrame, num_tasks: int | None) -> bool:
    """Whether a first line of whole numbers is a header: they differ and make one row too many, or,
    where nobody says how many rows there are, they number the columns, as in a matrix that was
    saved as a frame. Which it is taken for is told then.

    Raises:
        DataError: other numbers that all differ, some of them nowhere else.
    """
    first = [int(float(cell)) for cell in csv.header]
    if len(set(first)) < len(first):
        return False
    if num_tasks is not None:
        return len(frame) == num_tasks + 1
    if len(first) < 2 or len(frame) < 3:
        return False
    rest = set(frame.iloc[1:].to_numpy().ravel().tolist())
    counting = first == [*range(len(first))]
    elsewhere = set(frame.iloc[0].tolist()) <= rest
    if counting:
        what = "labels" if elsewhere else "a header, the columns' numbers"
        warnings.warn(
            f"{csv.path}: {csv.line(0, header=False)}: {csv.separator.join(csv.header)[:60]} is"
            f" taken for {what}",
            stacklevel=5,
        )
    elif not elsewhere:
        raise DataError(
            f"{csv.path}: {csv.line(0, header=False)}: expected class codes, or annotators' names"
            f" that are no numbers, received {csv.separator.join(csv.header)[:60]}, some of which"
            " are in no other line"
        )
    return counting and not elsewhere


def _check_header(names: list[str], csv: CsvFile, layout: TableFormat) -> None:
    """Checks the annotators that a matrix' first line names."""
    where = f"{csv.path}: {csv.line(0, header=False)}"
    for name in names:
        if is_truth(name):
            raise DataError(
                f"{where}, column {name!r}: expected an annotator's labels, received a column named"
                " as a true label's; take it out, or rename it if it is an annotator's"
            )
    check_names(
        *distinct(names),
        "annotator",
        lambda _: where,
        exact=layout.exact_names,
        markers=layout.missing is None,
    )


def _dense_csv(csv: CsvFile, num_tasks: int | None, layout: TableFormat) -> LabelTable:
    """Reads a matrix of codes. A first line of whole numbers is a row of the matrix, unless they
    differ and make one row too many, or are a header's.
    """
    columns = csv.header
    numeric = all(WHOLE.fullmatch(column) for column in columns)
    frame = csv.table(header=None) if numeric else csv.table()
    if numeric and _is_header(csv, frame, num_tasks):
        frame, numeric = frame.iloc[1:].reset_index(drop=True), False
    if not numeric:
        _check_header(columns, csv, layout)
    values = frame.to_numpy(dtype=object)
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            if not (isinstance(cell, str) and WHOLE.fullmatch(cell.strip())):
                name = column if numeric else columns[column]
                where = f"{csv.path}: {csv.line(row, header=not numeric)}, column {name!r}"
                hint = "" if column else f"; {HEADER}"
                raise DataError(
                    f"{where}: expected a class code, or -1 for no label, received {cell!r}{hint}"
                )
    matrix = values.astype(np.float64).astype(np.int64)
    named = None if numeric else columns
    return _dense(matrix, named, num_tasks, csv.path, lambda row: csv.line(row, not numeric))


def _dense(
    matrix: NDArray[Any],
    annotators: list[str] | None,
    num_tasks: int | None,
    path: Path,
    line: Callable[[int], str],
) -> LabelTable:
    if matrix.ndim != 2:
        raise DataError(
            f"{path}: expected a row an instance and a column an annotator, received shape"
            f" {matrix.shape}"
        )
    if matrix.dtype.kind == "u" and matrix.max(initial=0) < 1 << 63:
        matrix = matrix.astype(np.int64)  # -1, for no label, is none of its numbers
    elif matrix.dtype.kind == "u":
        raise DataError(f"{path}: expected class codes, received {matrix.max()}")
    if num_tasks is not None and len(matrix) != num_tasks:
        hint = f"; {HEADER}" if matrix.shape[1:] == (3,) and path.suffix != ".npy" else ""
        raise DataError(
            f"{path}: expected {num_tasks} rows, one for each row of the features table, received"
            f" shape {matrix.shape}{hint}"
        )
    if len(matrix) >= MANY_ROWS and matrix.dtype.kind in "iu":
        _check_no_ids(matrix, path)
    return LabelTable(path, matrix=matrix, annotator_names=annotators, by_task=True, line=line)


def _check_no_ids(matrix: NDArray[Any], path: Path) -> None:
    """Raises DataError for columns that are no annotator's: a number of its own in each row, or the
    tasks and workers of triples.
    """
    for column in range(matrix.shape[1]):
        if len(np.unique(matrix[:, column])) == len(matrix) and matrix.shape[1] > 1:
            raise DataError(
                f"{path}: column {column}: expected class codes, received a different number in"
                f" each row, as ids of tasks are; {HEADER}"
            )
    if matrix.shape[1] == 3 and (matrix >= 0).all():
        pairs = len(np.unique(matrix[:, :2], axis=0))
        if pairs == len(matrix):
            raise DataError(
                f"{path}: expected class codes, received three columns whose first two are never"
                f" the same, as tasks and workers; {HEADER}"
            )


# ----------------------------------------------------------------- JSON


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
    if not isinstance(answers, Mapping):
        raise DataError(f"{where}: expected an object of tasks, received {type(answers).__name__}")
    triples: list[tuple[Hashable, Hashable, Hashable]] = []
    lost = 0
    for task, given in answers.items():
        if not isinstance(given, Mapping):
            raise DataError(
                f"{where}: task {task!r}: expected an object of workers and labels, received"
                f" {type(given).__name__}"
            )
        for worker, label in given.items():
            if label is None or not isinstance(label, Hashable):
                raise DataError(
                    f"{where}: task {task!r}, worker {worker!r}: expected a label, received"
                    f" {label!r}"
                )
            if layout.missing is not None and str(label).strip() in layout.missing:
                lost += 1
            else:
                triples.append((task, worker, label))
    if lost:
        tell_missing(where, lost, "answers")
    for triple in triples:
        _check_text(triple, where)
    tasks, workers, labels = (
        (list(column) for column in zip(*triples, strict=True)) if triples else ([], [], [])
    )
    table = LabelTable(
        where,
        (tasks, workers, labels),
        instance_names=list(answers),
        line=lambda i: f"task {tasks[i]!r}, worker {workers[i]!r}",
    )
    if of_file:
        check_table(table, layout)
    return table


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
