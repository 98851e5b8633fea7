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
    runs = [run for run in map(_read, (*first, *second)) if run is not None]
    if len(runs) < len(first) + len(second):
        return None
    tables = [table for _, table in runs]
    labels = tables[0].labels
    labelled = labels >= 0
    same = (t.tasks == tables[0].tasks and np.array_equal(t.labels, labels) for t in tables)
    if labelled.sum() < 2 or len({digest for digest, _ in runs}) > 1 or not all(same):
        return None
    scored = (instance_values(metric, labels[labelled], t.probabilities[labelled]) for t in tables)
    values = np.stack(list(scored))
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
