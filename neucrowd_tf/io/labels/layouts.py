"""Files of annotations in any layout: which one it is, and who reads it."""

from __future__ import annotations

import dataclasses
import difflib
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.arrays import read_npy
from neucrowd_tf.io.files.reading import check_regular, ending
from neucrowd_tf.io.importers import Export, detect, read_export
from neucrowd_tf.io.importers.heads import read_head
from neucrowd_tf.io.labels.answers import RECORDS, read_answers
from neucrowd_tf.io.labels.checks.like_counts import VOTES
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.long import read_long
from neucrowd_tf.io.labels.matrix import is_row, matrix_table, read_matrix
from neucrowd_tf.io.labels.table import LabelTable, is_task_marker
from neucrowd_tf.io.labels.vote_counts import read_votes
from neucrowd_tf.io.labels.wide import read_wide
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

# A name, and the number or the letter that tells it from others like it.
MOST_CELLS = 10**9  # of a matrix, 8 GB in memory
_NUMBERED = re.compile(r"(\D*?)[\s_.-]*(?:\d+|(?<=[\s_.-])[^\W\d_])")


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
    if path.is_dir() or ending(path) != ".npy":
        check_regular(path)
        if (tool := detect(path, layout.separator)) is not None:
            return _exported(path, tool, layout)
    for name in ("question", "first"):
        if getattr(layout, name):
            raise UsageError(
                f"--{name}: expected an annotation tool's export with it, received {path}"
            )
    if ending(path) in (".jsonl", ".ndjson"):
        raise DataError(
            f"{path}: expected an annotation tool's export, received lines of JSON that are none's:"
            f" {read_head(path).shown()}{RECORDS}"
        )
    if ending(path) == ".json":
        return read_answers(path, layout)
    if ending(path) == ".npy":
        matrix = read_npy(path, MOST_CELLS)
        return matrix_table(matrix, None, num_tasks, path, lambda row: f"row {row}", layout)
    csv = CsvFile.open(path, layout)
    columns = csv.header
    csv.check_separator()
    roles = layout.roles(columns)
    if not roles and is_row(columns):
        return read_matrix(csv, num_tasks, layout)
    others = [column for column in columns if column not in ("", roles.get("task"))]
    if "task" in roles and others and all(column.startswith(VOTES) for column in others):
        return read_votes(csv, layout)
    if {"worker", "label"} & set(roles) or ("task" in roles and _misspelt_long(columns)):
        return read_long(csv, layout)
    if "task" in roles:
        return read_wide(csv, layout)
    return read_matrix(csv, num_tasks, layout)


def _exported(path: Path, tool: str, layout: TableFormat) -> LabelTable:
    export = read_export(path, tool, question=layout.question, first=layout.first, layout=layout)
    if layout.missing:
        export = _without_missing(export, layout.missing)
    if export.left_out:
        warnings.warn(f"{path}: {export.summary()}", stacklevel=2)
    triples = (export.tasks, export.workers, export.labels)
    table = LabelTable(path, triples, line=lambda i: export.places[i])
    check_table(table, layout)
    frame = export.frame()
    return dataclasses.replace(table, triples=(frame["task"], frame["worker"], frame["label"]))


def _without_missing(export: Export, missing: Sequence[str]) -> Export:
    """Leaves out the labels that the user says stand for none, and tasks and annotators so named
    (see `is_task_marker`), and counts them.
    """
    names = {name for name in missing if is_task_marker(name)}
    columns = (export.tasks, export.workers, export.labels)
    kept = [
        row
        for row, (task, worker, label) in enumerate(zip(*columns, strict=True))
        if not {task.strip(), worker.strip()} & names and label.strip() not in missing
    ]
    if not kept:
        raise DataError(f"{export.path}: expected labels beside --missing, received none")
    lost = Counter({"without a label (--missing)": len(export.labels) - len(kept)})
    tasks, workers, labels, places = (
        [column[row] for row in kept] for column in (*columns, export.places)
    )
    gold = {task: label for task, label in export.gold.items() if label.strip() not in missing}
    return dataclasses.replace(
        export,
        tasks=tasks,
        workers=workers,
        labels=labels,
        places=places,
        gold=gold,
        left_out=export.left_out + lost,  # without counts of none
    )


def _misspelt_long(columns: list[str]) -> bool:
    """Whether three columns look like `task,worker,label` with a slip: then the reader of that
    layout says which.
    """
    alike = [found[1] for name in columns if (found := _NUMBERED.fullmatch(name))]
    if len(columns) != 3 or len(set(alike)) < len(alike):  # two annotators: annotator_1, _2
        return False
    near = [
        difflib.get_close_matches(name, columns, n=1, cutoff=0.7)
        for role in ("worker", "label")
        for name in ALIASES[role]
    ]
    return any(near)
