"""Test instances that are training instances."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.io.features.table import FeatureTable
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.names.spelling import same_task

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY_ALIKE = 0.9


def check_apart(
    training: FeatureTable, tasks: NDArray[Any], rows: NDArray[Any], path: Path, exact: bool
) -> None:
    """Warns of test tasks that are training tasks, have the features of one, or its id in another
    spelling, unless names are `exact`.

    Args:
        training: the training instances.
        tasks, rows: `[T]` ids of the test instances and their features or texts.
        path: the test instances' file.
        exact: whether ids that are spelt alike are others.
    """
    place = pd.Index(training.tasks).get_indexer(pd.Index(tasks))
    numbered = ending(path) == ".npy"  # an array's tasks are the numbers of its rows
    if not numbered and not exact and (place < 0).any():
        _tell_twins(training.tasks, tasks[place < 0], path)
    shared = np.flatnonzero(place >= 0)
    if not len(shared) or numbered:
        plain = rows.dtype != object  # texts otherwise
        known = {hash(row.tobytes() if plain else row) for row in training.rows}
        alike = sum(hash(row.tobytes() if plain else row) in known for row in rows)
        if alike >= MANY_ALIKE * len(rows):
            warnings.warn(
                f"{path}: {alike} of {len(rows)} test instances have the features of training"
                " instances: the test metrics do not speak of new instances",
                stacklevel=4,
            )
        return
    same = (training.rows[place[shared]] == rows[shared]).reshape(len(shared), -1).all(axis=1)
    what = (
        f"{int(same.sum())} test tasks are training tasks, with the same features: the test metrics"
        " do not speak of new instances"
        if same.any()
        else f"{len(shared)} test tasks have the id of a training task and other features: they are"
        " taken for other instances"
    )
    warnings.warn(f"{path}: {what} (the first is {tasks[shared[0]]!r})", stacklevel=4)


def _tell_twins(training: NDArray[Any], tasks: NDArray[Any], path: Path) -> None:
    """Warns of test tasks that are training tasks but for case, spaces or how a number is spelt."""
    known = {same_task(task): task for task in training.tolist()}
    twins = [task for task in tasks.tolist() if same_task(task) in known]
    if twins:
        warnings.warn(
            f"{path}: {len(twins)} test tasks are training tasks but for case, spaces or how a"
            f" number is spelt (the first is {twins[0]!r}, beside {known[same_task(twins[0])]!r}):"
            " they are taken for other instances (--exact_names, if they are)",
            stacklevel=5,
        )
