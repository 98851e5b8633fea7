"""The labels a command works on: a file in any layout, a tool's export, or standard input."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
import tempfile
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.files.reading import read_bytes, read_text
from neucrowd_tf.io.importers import TOOLS, detect
from neucrowd_tf.io.importers.records import rows
from neucrowd_tf.io.labels.files import read_annotations
from neucrowd_tf.io.names.ids import listed, spelt
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES, SAMPLE, separator_of
from neucrowd_tf.io.tables.tasks import beside, no_class, tell_without
from neucrowd_tf.io.tables.writing import name_of

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


def read_names(source: str | Path, known: Collection[str] = ()) -> list[str]:
    """Returns annotators' names: those in a file, a line each (the first cell of a CSV, whose
    header `annotator` or `worker` is left out), or those that a text separates by commas.

    Args:
        source: the file, or the text.
        known: the annotators that there are, as this project or the user may have written them:
            with an apostrophe before a formula's sign, or with a comma and without quotes.

    Raises:
        DataError: quotes that are not closed.
        UsageError: none, or one twice.
    """
    if isinstance(source, Path):
        names = [name for name in _first_cells(source, known) if name]
        names = names[names[:1] in [[alias] for alias in ALIASES["worker"]] :]
    else:
        names = [name for name in listed(source) if name]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if not names or twice:
        received = f"{twice[0]!r} again" if twice else "none"
        raise UsageError(f"--ask: expected annotators' names, each once, received {received}")
    return names


def _first_cells(path: Path, known: Collection[str]) -> Iterator[str]:
    """Yields the first cell of each line, or the line where that is a name."""
    text = read_text(path)
    sign = separator_of(text[:SAMPLE].encode())
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True)
    try:
        for cells in lines:
            whole = sign.join(cells).strip()
            yield name_of(whole if whole in known else cells[0].strip() if cells else "", known)
    except csv.Error as error:
        raise DataError(
            f"{path}: line {lines.line_num}: expected an annotator's name, received {error}"
        ) from None


def read_gold(
    path: Path, annotations: Annotations, layout: TableFormat = PLAIN
) -> dict[object, object]:
    """Reads labels that are known: CSV `task,label` or their aliases, as `read_truth` takes them;
    ids are compared as they are spelt. A warning counts tasks that are none of the annotations',
    as a tool's gold labels may have, and labels that stand for none.

    Args:
        path: the CSV.
        annotations: the labels beside.
        layout: how these are written: what names a column that the file has, or a separator in it,
            counts here too.

    Returns:
        label by task, with the annotations' own names.

    Raises:
        DataError: other columns, no task that has labels, an unknown class, or a task twice.
    """
    tasks = {str(name): name for name in annotations.instance_names.tolist()}
    classes = {str(name): name for name in annotations.class_names.tolist()}
    gold: dict[object, object] = {}
    layout = beside(path, layout)
    table = CsvFile.open(path, layout)
    frame = table.table()
    columns = layout.require(path, list(frame.columns), "task", "label")
    cells = zip(*(frame[column].tolist() for column in columns), strict=True)
    others: list[str] = []
    without = 0
    for number, (cell, given) in enumerate(cells):
        where = f"{path}: {table.line(number)}"
        task, label = name_of(cell, tasks), name_of(given, classes)
        if label.strip() in (layout.missing or ()):
            without += 1
        elif task not in tasks:
            others.append(f"{where}: expected a task that has labels, received {task!r}")
        elif label not in classes:
            raise DataError(
                f"{where}: expected one of the {no_class(label, classes, layout.missing)}"
            )
        elif gold.setdefault(tasks[task], classes[label]) != classes[label]:
            raise DataError(f"{where}: expected each task once, received {task!r} again")
    if others and not gold:
        raise DataError(others[0])
    if others:
        warnings.warn(f"{others[0]}; {len(others)} such lines are left out", stacklevel=2)
    tell_without(path, without)
    if not gold:
        raise DataError(f"{path}: expected at least one row of task,label, received none")
    return gold


def read_probabilities(
    path: Path, annotations: Annotations, layout: TableFormat = PLAIN
) -> tuple[NDArray[np.float64], list[str]]:
    """Reads a model's probabilities: CSV `task` and `p_<class>` for each class, as predictions.csv
    has them; `layout` as for `read_gold`.

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
    sign = beside(path, layout).separator or separator_of(read_bytes(path)[:SAMPLE])
    for place, row in rows(path, sign):
        where = f"{path}: {place}"
        for name in ("task", *classes):
            if name not in row:
                raise DataError(f"{path}: expected a column {name!r}, received none")
        other = next((name for name in row if name[:2] == "p_" and name not in classes), None)
        if other is not None:
            raise DataError(f"{path}: expected columns of the classes, received also {other!r}")
        task = name_of(row["task"], places)
        if task not in places:
            continue
        if not np.isnan(found[places[task], 0]):
            raise DataError(f"{where}: expected each task once, received {task!r} again")
        found[places[task]] = _probabilities([row[name] for name in classes], where)
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
