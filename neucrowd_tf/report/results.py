"""A run's results for the report, from its folder and, if available, its fitted method."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.commands.predictions import read_predictions
from neucrowd_tf.commands.run_files import (
    ANNOTATORS,
    FINISHED,
    PREDICTIONS,
    Metrics,
    other_results,
    read_config,
)
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.inferred_labels import held_out_predictions
from neucrowd_tf.evaluation.intervals import Interval
from neucrowd_tf.evaluation.shared_test import shared_test_interval
from neucrowd_tf.io.files.reading import digest, read_text

# Training instances of more numbers than this are not predicted for the report.
MOST_PREDICTED = 50_000_000


@dataclasses.dataclass(frozen=True)
class ModelResults:
    """A fitted model's results.

    Attributes:
        method: its name.
        class_names: `[C]`.
        labels: `[M]` test class codes, -1 if unknown.
        probabilities: `[M, C]` the model's for the test instances.
        labels_are: "truth" or "majority vote".
        training: `[N, C]` the model's probabilities of the instances of `whole_crowd`, or None.
        comparison: a row for each method on the same data: `method`, `seed`, and metrics.
        recommendation: of `--method=auto`, or None.
        metrics: test metrics that the run recorded; others are computed.
        settings: the run's seed and parameters, by name.
        meaning: of the metrics, if there is no truth.
        annotators: the run's annotators.csv, or None.
        digest: of its predictions.csv, which identifies the page as this run's.
    """

    method: str
    class_names: NDArray[Any]
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    labels_are: str = "truth"
    training: NDArray[np.float64] | None = None
    comparison: Sequence[Mapping[str, Any]] = ()
    recommendation: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    meaning: str = ""
    annotators: str | None = None
    digest: str = ""


def read_run(
    folder: Path,
    dataset: CrowdDataset | None = None,
    estimator: Any = None,
    metrics: Mapping[str, Any] | None = None,
) -> ModelResults:
    """Returns the results of a run.

    Args:
        folder: of a run that wrote predictions.csv.
        dataset: that was trained on. Without it or the method, only the folder's files are used.
        estimator: the fitted method.
        metrics: the content of metrics.json, if it has not been written yet.

    Raises:
        DataError: the folder does not have a run's files.
    """
    if metrics is None:
        metrics = _metrics(folder)
        for path in other_results(folder, metrics.get("digests", {})):
            raise DataError(
                f"{path}: expected the file that the run wrote, received another; remove it and"
                " start the run again with --resume, which makes it again"
            )
    table = read_predictions(folder / PREDICTIONS)
    training = None
    if dataset is not None and estimator is not None and dataset.features.size <= MOST_PREDICTED:
        training = np.asarray(estimator.predict_proba(dataset.features))
        training = held_out_predictions(dataset, estimator, training)[0]
    annotators = folder / ANNOTATORS
    return ModelResults(
        method=read_method(folder, metrics),
        # The file spells class names out and quotes formulas.
        class_names=table.class_names if dataset is None else dataset.class_names,
        labels=table.labels,
        probabilities=table.probabilities,
        labels_are=str(metrics.get("test_labels", "truth")),
        training=training,
        comparison=siblings(folder, metrics),
        recommendation=getattr(estimator, "recommendation_", None) or metrics.get("recommendation"),
        metrics=metrics.get("test") or {},
        meaning=str(metrics.get("test_meaning", "")),
        annotators=read_text(annotators) if annotators.exists() else None,
        settings={"seed": metrics.get("seed"), "parameters": read_config(folder).parameters},
        digest=digest(folder / PREDICTIONS),
    )


def read_method(folder: Path, metrics: Mapping[str, Any] | None = None) -> str:
    """Returns the name of a run's method."""
    method = (_metrics(folder) if metrics is None else metrics).get("method")
    return str(method or read_config(folder).method or folder.parent.name)


def _metrics(folder: Path) -> dict[str, Any]:
    path = folder / FINISHED
    return Metrics.read(path).content if path.exists() else {}


def siblings(folder: Path, mine: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Returns the test metrics of all methods' finished runs of the same dataset and seed.

    The rows are ordered by accuracy. The runs are in `<dataset>/<method>/seed-<s>[/fold-<k>]`. If
    several seeds have finished on one test set, `lead` is the difference in accuracy between this
    run's method and the row's, with an interval over seeds and instances.

    Args:
        folder: of this run.
        mine: this run's metrics, if they have not been written yet.
    """
    here = folder.resolve()
    fold = here.name.startswith("fold-")
    method = here.parents[1 if fold else 0]
    run = here.relative_to(method)
    if not run.parts[0].startswith("seed-"):
        return []
    rows = []
    for path in sorted(method.parent.glob("*")):
        this = path == method
        metrics = mine if this and mine is not None else _metrics(path / run)
        if isinstance(metrics.get("test"), dict) and "method" in metrics:
            test = metrics["test"].items()
            rows.append(
                {
                    "method": str(metrics["method"]),
                    **{name: value for name, value in test if isinstance(value, (int, float))},
                    "fit_seconds": (metrics.get("timings") or {}).get("fit_seconds"),
                    "lead": None if fold or this else _lead(method, path),
                }
            )
    return sorted(rows, key=lambda row: -(row.get("accuracy") or -math.inf))


def _lead(mine: Path, theirs: Path) -> Interval | None:
    """Returns the difference in accuracy of two methods over the seeds that both have."""
    pairs = [(path, theirs / path.name) for path in sorted(mine.glob("seed-*"))]
    finished = [pair for pair in pairs if all((path / FINISHED).is_file() for path in pair)]
    folders = [[pair[side] for pair in finished] for side in (0, 1)]
    return shared_test_interval(folders[0], folders[1], "accuracy")
