"""The difference of two methods whose runs share one test set, from their predictions.csv."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.commands.predictions import PredictionTable, read_predictions
from neucrowd_tf.commands.run_files import FINISHED, PREDICTIONS
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.influence import instance_values
from neucrowd_tf.evaluation.intervals import Interval, crossed_interval
from neucrowd_tf.io.files.json import read_json

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class TestedRun:
    """A run's test instances.

    Attributes:
        digest: of their features; runs with other features do not share them.
        table: the run's predictions.
    """

    digest: str
    table: PredictionTable

    def shares_test_with(self, other: TestedRun) -> bool:
        """Whether both runs were tested on the same instances with the same labels."""
        return (
            self.digest == other.digest
            and self.table.tasks == other.table.tasks
            and np.array_equal(self.table.labels, other.table.labels)
        )

    def values(self, metric: str) -> NDArray[np.float64]:
        """Returns the `instance_values` of the labelled instances."""
        labelled = self.table.labels >= 0
        table = self.table
        return instance_values(metric, table.labels[labelled], table.probabilities[labelled])


def shared_test_interval(
    first: Sequence[Path], second: Sequence[Path], metric: str, confidence: float = 0.95
) -> Interval | None:
    """Returns the mean of first minus second, with an interval over seeds and instances.

    Args:
        first: folders of one method's runs, seed by seed.
        second: folders of the other method's runs of the same seeds.
        metric: see `instance_values`.
        confidence: of the interval.

    Returns:
        None if the runs do not share their test instances (simulated data that each seed draws),
        if the metric is undefined on them, or for fewer than two runs of each method.
    """
    if len(first) < 2 or len(first) != len(second):
        return None
    runs = [_read(folder) for folder in (*first, *second)]
    tested = [run for run in runs if run is not None]
    if len(tested) < len(runs) or not all(tested[0].shares_test_with(run) for run in tested):
        return None
    if (tested[0].table.labels >= 0).sum() < 2:
        return None
    values = np.stack([run.values(metric) for run in tested])
    differences = values[: len(first)] - values[len(first) :]
    return None if np.isnan(differences).any() else crossed_interval(differences, confidence)


def _read(folder: Path) -> TestedRun | None:
    """Returns a run's test instances; None without its files or the digest in metrics.json."""
    try:
        changed = tuple((folder / name).stat().st_mtime_ns for name in (PREDICTIONS, FINISHED))
    except OSError:
        return None
    return _parse(folder, changed)


# A summary is written after each run, and most of the runs are the same as before.
@functools.lru_cache(maxsize=512)
def _parse(folder: Path, changed: tuple[int, ...]) -> TestedRun | None:
    del changed  # only part of the cache's key
    try:
        metrics: Any = read_json(folder / FINISHED)
        table = read_predictions(folder / PREDICTIONS)
    except DataError:
        return None
    digest = metrics.get("test_digest") if isinstance(metrics, dict) else None
    return None if digest is None else TestedRun(str(digest), table)
