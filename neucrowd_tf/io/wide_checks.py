"""What is no annotator's column and no task's row of a wide table: true labels, comments, counts,
times, sums, headers.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.column_names import (
    AN_ID,
    ANSWERS,
    is_model,
    is_sums,
    is_task_header,
    no_annotator,
    of_one_annotator,
)
from neucrowd_tf.io.long_form import is_fraction
from neucrowd_tf.io.names import same_header
from neucrowd_tf.io.tables import CsvFile, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOTES = "votes_"
ALONE = 3  # cells of an annotator who shares no label with others
MANY_ROWS = 10  # whose sums are not all the same by chance
_NUMBER = re.compile(r"-?\d+([.,]\d+)?")
A_ROW_A_LABEL = (
    "if each row is one label, --worker_column and --label_column name the columns of annotators"
    " and labels"
)


def check_annotators(
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
    _check_rows(ids, values, csv)
    check_last_row(ids, missing, csv)
    check_columns(names, csv, layout)
    if layout.classes:
        return
    _check_first_row(ids, values, missing, csv)
    if len(names) > 2:
        _check_values(names, values, missing, csv)


def check_columns(names: list[str], csv: CsvFile, layout: TableFormat) -> None:
    """Raises DataError for a column that is named as none of an annotator's; tells of a model's."""
    for name in names:
        votes = name.lower().startswith(VOTES) and not layout.classes
        if what := "counts of votes" if votes else no_annotator(name, names):
            hint = f"; --task_column={name} says that it names the tasks" if what == AN_ID else ""
            raise DataError(
                f"{csv.path}: column {name!r}: expected an annotator's labels, received a column"
                f" named as {what}; take it out, or rename it if it is an annotator's{hint}"
            )
        if is_model(name):
            warnings.warn(
                f"{csv.path}: column {name!r}, named as a model's predictions, is taken for an"
                " annotator; --model_annotator counts it apart",
                stacklevel=5,
            )
    pair = None if layout.classes else of_one_annotator(names)
    if pair is not None:
        raise DataError(
            f"{csv.path}: columns {pair[0]!r} and {pair[1]!r}: expected one column an annotator,"
            " received two that seem to say two things of one label; write a row a label"
            " (task,worker,label), or take out what is no label; --classes=... takes both for"
            " annotators"
        )


def _check_values(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a column of values that are nobody else's, or of numbers most of which
    are, or that differ from row to row as nobody else's do; tells of a few cells.
    """
    cells = [values[~missing[:, j], j].tolist() for j in range(len(names))]
    found = [set(column) for column in cells]
    times = Counter(label for labels in found for label in labels)
    if max(times.values(), default=0) < 2:
        return
    own = [{label for label in labels if times[label] == 1} for labels in found]
    alone = np.array(
        [np.mean([v in mine for v in column]) if mine else 0.0
         for column, mine in zip(cells, own, strict=True)]
    )  # fmt: skip
    kinds = [len(labels) / max(len(column), 1) for labels, column in zip(found, cells, strict=True)]
    apart = np.median(kinds) < 0.5
    for place, column in enumerate(cells):
        numbers = len(column) >= MANY_ROWS and all(map(_NUMBER.fullmatch, found[place]))
        mine, at = own[place], 0
        if numbers and apart and kinds[place] >= 0.9 and _alike(cells, place) < 0.5:
            what = "one of a different number in (nearly) each row"
        elif alone[place] == 1 or (
            numbers and alone[place] >= 0.5 and np.delete(alone, place).max() <= 0.1
        ):
            at = next(i for i, label in enumerate(column) if label in mine)
            part = "all" if alone[place] == 1 else "most"
            what = f"as {part} of the column one that nobody else gives"
        else:
            continue
        row = int(np.flatnonzero(~missing[:, place])[at])
        said = (
            f"{csv.path}: {csv.line(row)}, column {names[place]!r}: expected labels, received"
            f" {column[at]!r}, {what};"
        )
        if len(column) >= ALONE:
            raise DataError(f"{said} take the column out, or --classes=... names all classes")
        warnings.warn(f"{said} it is taken for a label (a comment?)", stacklevel=5)


def _alike(cells: list[list[str]], place: int) -> float:
    """Returns the share of different labels that a column would have if it were drawn from the
    others.
    """
    pool = Counter(label for j, column in enumerate(cells) if j != place for label in column)
    shares = np.array(list(pool.values())) / max(pool.total(), 1)
    size = len(cells[place])
    return float((1 - (1 - shares) ** size).sum()) / size


def _check_first_row(
    ids: NDArray[Any], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a first row that is a second header: its task is named as a column of
    tasks is, or its cells, several different ones, are in no other row of a table of few classes.
    """
    here, rest = set(values[0].tolist()), values[1:][~missing[1:]].tolist()
    words = not missing[0].any() and not any(map(_NUMBER.fullmatch, here))
    apart = len(here) > 1 and words and here.isdisjoint(rest) and 4 * len(set(rest)) <= len(rest)
    others = list(map(str, ids[1:]))
    if others and ((len(ids) > ALONE and apart) or is_task_header(str(ids[0]), others)):
        raise DataError(
            f"{csv.path}: {csv.line(0)}: expected a task and its labels, received {ids[0]!r} and"
            f" {', '.join(map(repr, values[0][:3]))}, as a second header has; take the line out, or"
            " --classes=... names all classes"
        )


def _check_rows(ids: NDArray[Any], values: NDArray[Any], csv: CsvFile) -> None:
    """Raises DataError for a row that repeats its task in every cell, as a line of types does."""
    same = (values == ids.astype(object)[:, None]).all(axis=1)
    for row in np.flatnonzero(same).tolist() if values.shape[1] > 1 else ():
        if not str(ids[row]).isdigit():
            raise DataError(
                f"{csv.path}: {csv.line(row)}: expected a task and its labels, received"
                f" {ids[row]!r} in every cell (a line of types?)"
            )


def check_last_row(ids: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile) -> None:
    """Raises DataError for last rows that are named as sums are, of which it names the first; tells
    of one without labels.
    """
    last = len(ids)
    while last > 1 and is_sums(str(ids[last - 1]), list(map(str, ids[: last - 1]))):
        last -= 1
    if last < len(ids):
        said = (
            f"{csv.path}: {csv.line(last)}: expected a task, received {ids[last]!r}, as a line of"
            " sums is named"
        )
        if not missing[last].all():
            raise DataError(f"{said}; take the line out, or rename the task")
        warnings.warn(f"{said}, without labels", stacklevel=5)


def check_no_triples(
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
    if all(map(is_fraction, map(str, values[0]))):  # numbers of other kinds, which is said better
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


def check_no_counts(
    labels: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str], path: Path
) -> None:
    """Raises DataError for rows of numbers that look like a vote count a class (`like_counts`)."""
    matrix = np.zeros(missing.shape, dtype=np.int64)
    matrix[~missing] = labels
    if what := like_counts(matrix, missing, columns):
        named = ", ".join(VOTES + name for name in columns[:3])
        named += ", ..." if len(columns) > 3 else ""
        raise DataError(
            f"{path}: expected a label in each cell, received {what}, as counts of votes do; if"
            f" they are, name the columns {named}, if not, --classes=... names the classes"
        )


def like_counts(matrix: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str]) -> str:
    """Returns what makes numbers, 0 where there are none, look like a vote count a class: columns
    that are named as answers, rows with one sum (blanks being zeros), or full columns that agree
    less than by chance, as those of annotators do not; "" where nothing does.
    """
    sums = matrix.sum(axis=1)
    if matrix.min(initial=0) < 0 or missing.shape[1] < 2:
        return ""
    enough = len(missing) >= MANY_ROWS and len(np.unique(matrix[~missing])) > 1
    if enough and sums[0] and (sums == sums[0]).all():
        return f"numbers that sum to {sums[0]} in every row"
    if enough and not missing.any() and _agree_less_than_chance(matrix):
        return "numbers whose columns agree less than by chance"
    if columns and {name.strip().lower() for name in columns} <= ANSWERS:
        return "numbers in columns that are named as answers"
    return ""


def _agree_less_than_chance(matrix: NDArray[np.int64]) -> bool:
    """Whether pairs of columns hold equal numbers in fewer rows than their shares of each number
    would make them (one side, 5 %).
    """
    rows, width = matrix.shape
    equal, expected = np.zeros(rows), 0.0
    for value in np.unique(matrix):
        here = matrix == value
        a_row, a_column = here.sum(axis=1), here.sum(axis=0) / rows
        equal += a_row * (a_row - 1)
        expected += float(a_column.sum() ** 2 - (a_column**2).sum())
    by_chance = 1.645 * equal.std() / np.sqrt(rows)
    return bool(equal.mean() < expected - by_chance - 1e-9) and width > 1
