"""Two methods whose runs share one test set: their difference with an interval over seeds and
instances, from the predictions that the runs left.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.crossed import crossed_interval, instance_values
from neucrowd_tf.evaluation.intervals import Interval
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.predictions import PredictionTable, read_predictions
from neucrowd_tf.io.run_files import FINISHED, PREDICTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class TestedRun:
    """What a run left of its test instances.

    Attributes:
        digest: of their features; runs with other features do not share them.
        table: the predictions.
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
        """Returns what each labelled instance adds to a metric."""
        known = self.table.labels >= 0
        return instance_values(metric, self.table.labels[known], self.table.probabilities[known])


def shared_test_interval(
    first: Sequence[Path], second: Sequence[Path], metric: str, confidence: float = 0.95
) -> Interval | None:
    """Returns the paired difference of two methods (first minus second) in a metric, with an
    interval that holds for other seeds and other instances.

    Args:
        first, second: folders of the methods' runs, seed by seed.
        metric: see `instance_values`.
        confidence: of the interval.

    Returns:
        None where the runs do not share their test instances (simulated data that each seed draws
        anew), where a metric is not defined on them, and where there are fewer than two of each.
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
    """Returns what a run left; None where there is none of it, or not of a version that says which
    instances it was tested on.
    """
    try:
        changed = tuple((folder / name).stat().st_mtime_ns for name in (PREDICTIONS, FINISHED))
    except OSError:
        return None
    return _parse(folder, changed)


# A summary is written after each run, and most of the runs are the same as before.
@functools.lru_cache(maxsize=512)
def _parse(folder: Path, changed: tuple[int, ...]) -> TestedRun | None:
    del changed  # part of the key alone
    try:
        metrics: Any = read_json(folder / FINISHED)
        table = read_predictions(folder / PREDICTIONS)
    except DataError:
        return None
    digest = metrics.get("test_digest") if isinstance(metrics, dict) else None
    return None if digest is None else TestedRun(str(digest), table)
