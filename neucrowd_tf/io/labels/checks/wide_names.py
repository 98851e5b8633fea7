"""What is no annotator's column and no task's row of a wide table by its name: true labels, counts,
times, sums, headers.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.like_counts import VOTES
from neucrowd_tf.io.labels.checks.wide_values import (
    ALONE,
    NUMBER,
    check_no_sums,
    check_numbers,
    check_values,
    tell_consensus,
)
from neucrowd_tf.io.names.shell import flag
from neucrowd_tf.io.names.spelling import same_header
from neucrowd_tf.io.tables.column_names import (
    AN_ID,
    is_model,
    is_sums,
    is_task_header,
    no_annotator,
    of_one_annotator,
)
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    check_ends(ids, missing, csv)
    check_columns(names, csv, layout)
    tell_consensus(names, values, missing, csv)
    if layout.classes:
        return
    _check_first_row(ids, values, missing, csv)
    check_no_sums(ids, values, missing, csv)
    if len(names) > 2:
        check_values(names, values, missing, csv)
        check_numbers(names, values, missing, csv)


def check_columns(names: list[str], csv: CsvFile, layout: TableFormat) -> None:
    """Raises DataError for a column that is named as none of an annotator's; tells of a model's."""
    counts = [name for name in names if name.startswith(VOTES)]
    other = next((name for name in names if name not in counts), None)
    if len(counts) > 1 and other is not None and not layout.classes:
        raise DataError(
            f"{csv.path}: column {other!r}: expected counts of votes beside {counts[0]!r}, received"
            " a column of another name; take it out"
        )
    for name in names:
        votes = name.lower().startswith(VOTES) and not layout.classes
        if what := "counts of votes" if votes else no_annotator(name, names):
            hint = f"; {flag('task_column', name)} says that it names the tasks" * (what == AN_ID)
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


def _check_first_row(
    ids: NDArray[Any], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a first row that is a second header: its task is named as a column of
    tasks is, or its cells, several different ones, are in no other row of a table of few classes.
    """
    here, rest = set(values[0].tolist()), values[1:][~missing[1:]].tolist()
    words = not missing[0].any() and not any(map(NUMBER.fullmatch, here))
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


def check_ends(ids: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile) -> None:
    """Raises DataError for first or last rows that are named as sums are, of the last ones for the
    first; tells of one without labels.
    """
    names = list(map(str, ids))
    last = len(names)
    while last > 1 and is_sums(names[last - 1], names[: last - 1]):
        last -= 1
    first = len(names) > 1 and is_sums(names[0], names[1:])
    for row in [0] * first + [last] * (last < len(names)):
        said = (
            f"{csv.path}: {csv.line(row)}: expected a task, received {names[row]!r}, as a line of"
            " sums is named"
        )
        if not missing[row].all():
            raise DataError(f"{said}; take the line out, or rename the task")
        warnings.warn(f"{said}, without labels", stacklevel=5)
