"""The labels a command works on: a file in any layout, a tool's export, or standard input."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers import TOOLS, detect
from neucrowd_tf.io.importers.records import rows
from neucrowd_tf.io.names.ids import listed, spelt
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

if TYPE_CHECKING:
    from numpy.typing import NDArray

STDIN = Path("-")
ROUNDED = 0.006  # of a probability with two digits


def read_crowd(
    path: Path, tasks: NDArray[Any] | None = None, layout: TableFormat = PLAIN
) -> tuple[Annotations, list[str]]:
    """Reads labels.

    Args:
        path: a file in any layout that --dataset=table reads, the export of an annotation tool, or
            "-" for standard input.
        tasks: `[N]` task ids of a features table, as text; None takes the file's own.
        layout: how a table is written, and what is taken of an export.

    Returns:
        the annotations, and lines for stderr: what was warned of, and whose export it is.

    Raises:
        UsageError, DataError: what is wrong, with the file and, where known, the place in it.
    """
    with _on_disk(path) as file, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            crowd = read_annotations(file, tasks, layout=layout)
            tool = detect(file, layout.separator)
        except DataError as error:
            raise DataError(str(error).replace(str(file), str(path))) from None
    notes = [f"warning: {one_line(w.message)}" for w in told]  # type: ignore[arg-type]
    used = np.flatnonzero(crowd.vote_counts().sum(axis=0))
    if len(used) == 1:
        name = spelt(crowd.class_names[used[0]])
        notes.append(f"warning: {path}: all {crowd.num_annotations:,} labels are {name}")
    if tool is not None and not notes:
        notes.append(
            f"{TOOLS[tool].title}: {crowd.num_annotations:,} labels of"
            f" {int(crowd.annotated.sum()):,} tasks by {crowd.num_annotators:,} annotators"
        )
    return crowd, [note.replace(str(file), str(path)) for note in notes]


@contextlib.contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """Yields the path, or that of a temporary file with what comes from standard input."""
    if path != STDIN:
        yield path
        return
    content = sys.stdin.buffer.read()
    ending = ".json" if content.lstrip()[:1] in (b"{", b"[") else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"stdin{ending}"
        file.write_bytes(content)
        yield file


def read_names(source: str | Path) -> list[str]:
    """Returns annotators' names: those in a file, a line each (the first cell of a CSV, whose
    header `annotator` or `worker` is left out), or those that a text separates by commas.

    Raises:
        UsageError: none, or one twice.
    """
    if isinstance(source, Path):
        cells = [line.split(",")[0].strip() for line in read_text(source).splitlines()]
        names = [name for name in cells if name]
        names = names[names[:1] in [[alias] for alias in ALIASES["worker"]] :]
    else:
        names = [name for name in listed(source) if name]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if not names or twice:
        received = f"{twice[0]!r} again" if twice else "none"
        raise UsageError(f"--ask: expected annotators' names, each once, received {received}")
    return names


def read_gold(path: Path, annotations: Annotations) -> dict[object, object]:
    """Reads labels that are known: CSV `task,label` or their aliases, as `read_truth` takes them;
    ids are compared as they are spelt.

    Returns:
        label by task, with the annotations' own names.

    Raises:
        DataError: other columns, a task that has no labels, an unknown class, or a task twice.
    """
    tasks = {str(name): name for name in annotations.instance_names.tolist()}
    classes = {str(name): name for name in annotations.class_names.tolist()}
    gold: dict[object, object] = {}
    table = CsvFile.open(path)
    frame = table.table()
    columns = PLAIN.require(path, list(frame.columns), "task", "label")
    cells = zip(*(frame[column].tolist() for column in columns), strict=True)
    for number, (task, label) in enumerate(cells):
        where = f"{path}: {table.line(number)}"
        if task not in tasks:
            raise DataError(f"{where}: expected a task that has labels, received {task!r}")
        if label not in classes:
            shown = ", ".join(repr(name) for name in list(classes)[:8])
            raise DataError(f"{where}: expected one of the classes {shown}, received {label!r}")
        if gold.setdefault(tasks[task], classes[label]) != classes[label]:
            raise DataError(f"{where}: expected each task once, received {task!r} again")
    if not gold:
        raise DataError(f"{path}: expected at least one row of task,label, received none")
    return gold


def read_probabilities(
    path: Path, annotations: Annotations
) -> tuple[NDArray[np.float64], list[str]]:
    """Reads a model's probabilities: CSV `task` and `p_<class>` for each class, as predictions.csv
    has them.

    Returns:
        `[N, C]` in the annotations' order, rows summing to one, and lines for stderr: a task that
        the file does not have gets the mean.

    Raises:
        DataError: a column that is missing or of no class, no probabilities, a task twice, or no
            task of the annotations.
    """
    classes = [f"p_{name}" for name in annotations.class_names.tolist()]
    places = {str(name): code for code, name in enumerate(annotations.instance_names.tolist())}
    found = np.full((annotations.num_instances, len(classes)), np.nan)
    for place, row in rows(path, ","):
        where = f"{path}: {place}"
        for name in ("task", *classes):
            if name not in row:
                raise DataError(f"{path}: expected a column {name!r}, received none")
        other = next((name for name in row if name[:2] == "p_" and name not in classes), None)
        if other is not None:
            raise DataError(f"{path}: expected columns of the classes, received also {other!r}")
        if row["task"] not in places:
            continue
        if not np.isnan(found[places[row["task"]], 0]):
            raise DataError(f"{where}: expected each task once, received {row['task']!r} again")
        found[places[row["task"]]] = _probabilities([row[name] for name in classes], where)
    bare = int(np.isnan(found[:, 0]).sum())
    if bare == len(found):
        raise DataError(f"{path}: expected tasks of the annotations, received none of them")
    notes = [f"warning: {path}: {bare:,} tasks are not there, and get the mean"] if bare else []
    return np.where(np.isnan(found), np.nanmean(found, axis=0), found), notes


def _probabilities(cells: list[str], where: str) -> NDArray[np.float64]:
    """Returns a row of probabilities, which sum to one but for how they are rounded."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        numbers = np.array([-1.0])
    if not (numbers >= 0).all() or not abs(numbers.sum() - 1) <= ROUNDED * len(cells):
        shown = ", ".join(map(repr, cells[:8]))
        raise DataError(f"{where}: expected probabilities from 0 that sum to 1, received {shown}")
    return np.asarray(numbers / numbers.sum())
