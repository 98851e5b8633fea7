"""Features that contain what the annotators said, and test items among the training items."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats, Texts
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.features import FeatureTable
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.names import positions

MOST_CELLS = 100_000_000  # of features that are compared with votes
ENOUGH = 10  # rows, before a column that equals the votes is no chance
SAME = 1e-6  # below one, of a correlation: the same numbers except for their unit


def check_no_leak(table: FeatureTable, crowd: Annotations, path: Path) -> None:
    """Rejects a column that is an annotator's, or exactly the majority or a share of votes.

    Args:
        table: the features, in the order of the annotations' instances.
        crowd: the annotations.
        path: the file of features.

    Raises:
        DataError: there is such a column.
    """
    names = [] if ending(path) == ".npy" else table.names
    annotators = set(map(str, crowd.annotator_names))
    for name in names:
        if name in annotators and not name.isdigit():
            problem = f"column {name!r} is named as an annotator of the labels is"
            raise error("leak", path, problem=problem, advice=_advice(names, name))
    labelled = np.flatnonzero(crowd.annotated)
    rows = table.rows
    plain = rows.ndim == 2 and rows.dtype.kind == "f" and rows.size <= MOST_CELLS
    if not plain or len(labelled) < ENOUGH:
        return
    votes = crowd.vote_counts()[labelled].astype(np.float64)
    shares = votes / votes.sum(axis=1, keepdims=True)
    most = (votes == votes.max(axis=1, keepdims=True)).astype(np.float64)
    voted = np.hstack([most, shares, votes])
    alike = np.abs(_standard(rows[labelled]).T @ _standard(voted))
    for column in np.flatnonzero(alike.max(axis=1) > 1.0 - SAME).tolist():
        kind, code = divmod(int(alike[column].argmax()), votes.shape[1])
        meaning = "how many labels are" if kind else "whether most labels are"
        shown = names[column] if names else str(column)
        problem = f"column {shown!r} is {meaning} {str(crowd.class_names[code])!r}"
        raise error("leak", path, problem=f"{problem}, in every row", advice=_advice(names, shown))


def _advice(names: Texts, name: str) -> str:
    if names:
        return f"Leave it out with --ignore_columns={shlex.quote(name)}"
    return "Remove it"


def _standard(columns: Array) -> Floats:
    """Returns columns without their means and of unit length; constant ones are zeros."""
    values = columns.astype(np.float64) - columns.mean(axis=0, dtype=np.float64)
    length = np.sqrt((values**2).sum(axis=0))
    return np.asarray(values / np.where(length > 0, length, np.inf))


def check_apart(training: FeatureTable, test: FeatureTable, path: Path) -> None:
    """Rejects test items that are training items; other items may have their ids.

    Args:
        training: the training items.
        test: the test items; those of an NPY file have no ids.
        path: the test items' file.

    Raises:
        DataError: an item has the id and the features of a training item.
    """
    if ending(path) == ".npy":
        return
    places = positions(training.items.tolist())
    same = []
    for item, values in zip(test.items.tolist(), test.rows, strict=True):
        if item in places and np.array_equal(values, training.rows[places[item]]):
            same.append(item)
    if same:
        problem = f"{len(same):,} test items are training items (the first is {same[0]!r})"
        raise error("leak", path, problem=problem, advice="Remove them from one of the files")
