"""Files of annotations in any layout, over the tasks of a features table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.annotations.codes import matched
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.errors import DataError, RowError
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.labels.layouts import read_labels
from neucrowd_tf.io.labels.table import LabelTable
from neucrowd_tf.io.names.checks import AS_TEXT
from neucrowd_tf.io.names.ids import as_name_array, distinct, typed_names
from neucrowd_tf.io.tables.format import PLAIN, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CLASSES = 50  # where there are fewer tasks than classes
MANY_CELLS = 10**7  # where there are fewer tasks than classes that the user names
MOST_CELLS = 10**9  # of all confusion matrices: 8 GB


def read_annotations(
    path: Path,
    tasks: NDArray[Any] | None = None,
    *,
    layout: TableFormat = PLAIN,
    unmatched: Literal["error", "drop"] = "error",
) -> Annotations:
    """Reads annotations of the given tasks, or of all that the file has, in any layout that
    `neucrowd_tf.io.labels.layouts.read_labels` knows.

    Args:
        path: the file.
        tasks: `[N]` task ids of the features table, as text; None takes the file's own (a dense
            matrix has none: its rows are numbered from 0). A dense matrix has its rows in the
            order of `tasks`.
        layout: how a CSV is written, and all classes in their order, where the user names them.
        unmatched: whether labels of other tasks are an error, or left out and counted in a warning.

    Returns:
        annotations of N instances in the order of `tasks`.

    Raises:
        DataError: whatever is wrong with the file; a task that the features table does not have.
    """
    table = read_labels(path, None if tasks is None else len(tasks), layout)
    if table.matrix is not None:
        codes = table.matrix.dtype.kind == "i"
        size = int(table.matrix.max(initial=-1)) + 1 if codes else 0
        rows, columns = table.matrix.shape
        _check_classes(size, rows, columns, path)
        if codes and not size:
            raise DataError(f"{path}: expected at least one label, received none")
        return _with_classes(annotations_of(table, tasks), layout, path, table)
    crowd = annotations_of(table)
    _check_classes(crowd.num_classes, crowd.num_instances, crowd.num_annotators, path)
    plain: dict[str, Any] = {}
    for name in crowd.class_names.tolist():
        if (other := plain.setdefault(str(name).strip(), name)) is not name:
            spaces = isinstance(name, str) and isinstance(other, str)
            raise DataError(
                f"{path}: expected labels that differ in more than spaces or quotes, received"
                f" {other!r} and {name!r}; {'take the spaces out of one' if spaces else AS_TEXT}"
            )
    if not crowd.num_annotations:
        raise DataError(f"{path}: expected at least one label, received none")
    if tasks is not None:
        crowd = _over(crowd, tasks, table, path, unmatched)
    return _with_classes(crowd, layout, path, table)


def annotations_of(table: LabelTable, tasks: NDArray[Any] | None = None) -> Annotations:
    """Returns the annotations of a table that a reader returned.

    Raises:
        DataError: what is wrong, with its place in the file.
    """
    names = {
        "instance_names": table.instance_names if tasks is None else tasks,
        "class_names": table.class_names,
    }
    try:
        if table.counts is not None:
            return Annotations.from_votes(table.counts, **names)
        names["annotator_names"] = table.annotator_names
        if table.matrix is not None:
            return Annotations.from_dense(table.matrix, **names)
        return Annotations.from_arrays(*(table.triples or ((),) * 3), **names)
    except RowError as error:
        raise table.error(error.row, error.rest) from None
    except DataError as error:
        raise DataError(f"{table.source}: {error}") from None


def _with_classes(
    crowd: Annotations, layout: TableFormat, path: Path, table: LabelTable
) -> Annotations:
    """Returns the annotations with the classes that the user names, in that order."""
    if not layout.classes:
        return crowd
    wanted = list(layout.classes)
    cells = crowd.num_annotators * len(wanted) ** 2
    if len(wanted) > crowd.num_instances and cells > MANY_CELLS:
        raise DataError(
            f"--classes: expected no more classes than the {crowd.num_instances:,} tasks of {path},"
            f" where all confusion matrices have {cells:,} cells, received {len(wanted):,}"
        )
    found = [str(name) for name in crowd.class_names.tolist()]
    for code in np.flatnonzero(crowd.vote_counts().sum(axis=0)):
        if found[code] not in wanted:
            raise DataError(
                f"{_place(table, found[code])}: expected one of {', '.join(map(repr, wanted))},"
                f" received {found[code]!r}"
            )
    typed = dict(zip(found, crowd.class_names.tolist(), strict=True))
    names = (
        as_name_array([typed[name] for name in wanted])
        if set(wanted) <= set(found)
        else typed_names(wanted)
    )
    places = matched(as_name_array(found), as_name_array(wanted), "class")
    return crowd._moved("class", places, names)


def _place(table: LabelTable, label: str) -> str:
    """Returns where a label is first, the file where that is not known."""
    if table.triples is None:
        return str(table.source)
    names, _, first = distinct(table.triples[2])
    row = min(int(at) for name, at in zip(names, first, strict=True) if str(name) == label)
    named = table.line is not None and ", column " in table.line(row)  # as a wide table's has
    return table.place(row, None if named else "label")


def _over(
    crowd: Annotations, tasks: NDArray[Any], table: LabelTable, path: Path, unmatched: str
) -> Annotations:
    """Returns the annotations over all of `tasks`, in their order; ids are compared as spelt."""
    names = [str(name) for name in crowd.instance_names.tolist()]
    places = matched(as_name_array(names), tasks, "task")
    lost = np.flatnonzero(places < 0)
    if len(lost) and (unmatched == "error" or len(lost) == len(names)):
        code = int(lost[0])
        where = _line_of(crowd, table, code)
        answers = ending(path) == ".json"
        where = "" if answers or not where else f"{where}, "
        hint = (
            "; --dataset=table --unmatched=drop leaves such labels out"
            if len(lost) < len(names)
            else "; no task is there, and those of the features are spelt like"
            f" {tasks.tolist()[0]!r}"
        )
        raise DataError(
            f"{path}: {where}column 'task': expected a task of the features table, received"
            f" {names[code]!r}{hint}"
        )
    if len(lost):
        labels = int(crowd.vote_counts()[lost].sum())
        warnings.warn(
            f"{path}: {labels} labels of {len(lost)} tasks that the features table does not have"
            f" are left out (the first is task {names[lost[0]]!r})",
            stacklevel=3,
        )
    return crowd._moved("instance", places, tasks, "drop")


def _line_of(crowd: Annotations, table: LabelTable, task: int) -> str:
    """Returns the line in which a task first stands, "" where that is not known."""
    rows = np.flatnonzero(crowd.instances == task)[:1] if crowd.has_identities else np.array([task])
    if not len(rows):
        return ""
    row = int(rows[0])
    return f"row {row}" if table.line is None else table.line(row).partition(", ")[0]


def _check_classes(classes: int, tasks: int, annotators: int, path: Path) -> None:
    """Raises DataError for labels that are no classes (a table of features, say, or ids), and for
    more of them than confusion matrices fit into memory.
    """
    if classes > max(MOST_CLASSES, tasks):
        raise DataError(
            f"{path}: expected labels from a set of classes, received {classes:,} different ones"
            f" for {tasks:,} tasks"
        )
    if annotators * classes**2 > MOST_CELLS:
        raise DataError(
            f"{path}: expected {annotators:,} annotators' confusion matrices to have at most"
            f" {MOST_CELLS:,} cells, received {classes:,} classes"
        )
