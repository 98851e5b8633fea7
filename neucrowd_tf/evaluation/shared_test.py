"""The difference of two methods whose runs share one test set, from their predictions.csv."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.influence import instance_values
from neucrowd_tf.evaluation.intervals import Interval, crossed_interval
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.predictions import PredictionTable, read_predictions
from neucrowd_tf.io.run_files import FINISHED, PREDICTIONS


def shared_test_interval(
    first: Sequence[Path], second: Sequence[Path], metric: str
) -> Interval | None:
    """Returns the mean of first minus second, with an interval over seeds and instances.

    Args:
        first: folders of one method's runs, seed by seed.
        second: folders of the other method's runs of the same seeds.
        metric: see `instance_values`.

    Returns:
        None if the runs do not share their test instances (simulated data that each seed draws),
        if the metric is undefined on them, or for fewer than two runs of each method.
    """
    if len(first) < 2 or len(first) != len(second):
        return None
    runs = []
    for run in map(_read, (*first, *second)):
        if run is None:
            return None
        runs.append(run)
    digest, shared = runs[0]
    labelled = shared.labels >= 0
    if labelled.sum() < 2:
        return None
    scored = []
    for other_digest, table in runs:
        same = other_digest == digest and table.tasks == shared.tasks
        if not same or not np.array_equal(table.labels, shared.labels):
            return None
        probabilities = table.probabilities[labelled]
        scored.append(instance_values(metric, shared.labels[labelled], probabilities))
    values = np.stack(scored)
    differences = values[: len(first)] - values[len(first) :]
    if np.isnan(differences).any():
        return None
    return crossed_interval(differences)


def _read(folder: Path) -> tuple[str, PredictionTable] | None:
    """Returns the digest of a run's test features, from metrics.json, and its predictions.

    None if one of them is missing.
    """
    try:
        changed = tuple((folder / name).stat().st_mtime_ns for name in (PREDICTIONS, FINISHED))
    except OSError:
        return None
    return _parse(folder, changed)


# A summary is written after each run, and most of the runs are the same as before.
@functools.lru_cache(maxsize=512)
def _parse(folder: Path, changed: tuple[int, ...]) -> tuple[str, PredictionTable] | None:
    del changed  # only part of the cache's key
    try:
        metrics = read_json(folder / FINISHED)
        table = read_predictions(folder / PREDICTIONS)
    except DataError:
        return None
    if isinstance(metrics, dict):
        digest = metrics.get("test_digest")
    else:
        digest = None
    if digest is None:
        return None
    return (str(digest), table)
