"""What the report says of a model: read from a run's folder, and from the fitted method where that
is at hand.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.inferred_labels import held_out_predictions
from neucrowd_tf.evaluation.shared_test import shared_test_interval
from neucrowd_tf.io.files.reading import digest, read_text
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.io.run_files import (
    ANNOTATORS,
    CONFIG,
    FINISHED,
    PREDICTIONS,
    WAY_OUT,
    digests_of,
    other_results,
    read_object,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.datasets import CrowdDataset
    from neucrowd_tf.evaluation.intervals import Interval

Curve = tuple["NDArray[np.int64]", "NDArray[np.float64]"]

MOST_MAPPED = 2000
# Predicting the training instances costs a pass over them; beyond this many numbers the report does
# without.
MOST_PREDICTED = 50_000_000
MOST_STAGES = 8


@dataclasses.dataclass(frozen=True)
class ModelResults:
    """A fitted model's results.

    Attributes:
        method: its name.
        class_names: `[C]`.
        labels: `[M]` test class codes, -1 where not known; `probabilities` `[M, C]` what the model
            says.
        labels_are: "truth" or "majority vote".
        training: `[N, C]` what the model says of the instances with a place in the crowd (see
            `whole_crowd`), or None.
        points: `[K, 2]` test instances in the plane with their class codes `[K]`, whether they were
            predicted wrongly `[K]`, and what the plane shows; or None.
        curves: for each value that was logged, a line a stage of training.
        comparison: a row a method on the same data: `method`, `seed`, and metrics.
        recommendation: what `--method=auto` found, or None.
        metrics: test metrics that the run recorded; others are computed.
        settings: what else to know of the run, by name.
        meaning: what the metrics can and cannot mean, where no truth is known.
        annotators: the run's annotators.csv, or None.
        digest: of its predictions.csv, by which the page is known as this run's.
    """

    method: str
    class_names: NDArray[Any]
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    labels_are: str = "truth"
    training: NDArray[np.float64] | None = None
    points: tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_], str] | None = None
    curves: Mapping[str, Mapping[str, Curve]] = dataclasses.field(default_factory=dict)
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
        dataset, estimator: what was trained on and the fitted method; without them the folder's
            files alone are used, and what needs the training instances is left out.
        metrics: what metrics.json is going to hold, where it has not been written yet.

    Raises:
        DataError: the folder does not hold a run's files.
    """
    if metrics is None:
        metrics = _json(folder / FINISHED)
        if metrics and not isinstance(metrics.get("test"), dict):
            raise DataError(
                f"{folder / FINISHED}: expected the metrics of a run, received something else;"
                f" {WAY_OUT[FINISHED]}"
            )
        _check_results(folder, metrics)
    config = _json(folder / CONFIG)
    if (folder / CONFIG).exists() and config.keys().isdisjoint(("method", "settings")):
        raise DataError(
            f"{folder / CONFIG}: expected the settings of a run, received something else;"
            f" {WAY_OUT[CONFIG]}"
        )
    parameters = config.get("parameters")
    if not isinstance(parameters, dict | None):
        raise DataError(
            f"{folder / CONFIG}: expected the run's parameters by name, received"
            f" {repr(parameters)[:50]}; remove the folder to make the run afresh"
        )
    found = read_predictions(folder / PREDICTIONS)
    labels, probabilities = found.labels, found.probabilities
    # The file spells class names out and quotes formulas.
    class_names = found.class_names if dataset is None else dataset.class_names
    training, points = None, None
    if dataset is not None and estimator is not None:
        training = _training_probabilities(dataset, estimator)
        points = plane(dataset, estimator, labels, probabilities)
    annotators = folder / ANNOTATORS
    return ModelResults(
        method=read_method(folder, metrics),
        class_names=class_names,
        labels=labels,
        probabilities=probabilities,
        labels_are=str(metrics.get("test_labels", "truth")),
        training=training,
        points=points,
        curves=learning_curves(folder / "tensorboard"),
        comparison=siblings(folder, metrics),
        recommendation=getattr(estimator, "recommendation_", None) or metrics.get("recommendation"),
        metrics=metrics.get("test") or {},
        meaning=str(metrics.get("test_meaning", "")),
        annotators=read_text(annotators) if annotators.exists() else None,
        settings={"seed": metrics.get("seed"), "parameters": parameters or {}},
        digest=digest(folder / PREDICTIONS),
    )


def read_method(folder: Path, metrics: Mapping[str, Any] | None = None) -> str:
    """Returns the name of a run's method."""
    found = _json(folder / FINISHED) if metrics is None else metrics
    return str(found.get("method") or _json(folder / CONFIG).get("method") or folder.parent.name)


def _json(path: Path) -> dict[str, Any]:
    return read_object(path) if path.exists() else {}


def _check_results(folder: Path, metrics: Mapping[str, Any]) -> None:
    """Raises DataError for a file of results that is not as the run wrote it."""
    for path in other_results(folder, digests_of(metrics, folder / FINISHED)):
        raise DataError(
            f"{path}: expected the file that the run wrote, received another; remove it and start"
            " the run again with --resume, which makes it again"
        )


def _training_probabilities(dataset: CrowdDataset, estimator: Any) -> NDArray[np.float64] | None:
    """Returns what the model says of the instances of `whole_crowd` `[N, C]`, of each when it was
    held out, where the method knows that; None where there is too much to predict.
    """
    if dataset.features.size > MOST_PREDICTED:
        return None
    training = np.asarray(estimator.predict_proba(dataset.features))
    return held_out_predictions(dataset, estimator, training)[0]


def plane(
    dataset: CrowdDataset,
    estimator: Any,
    labels: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_], str] | None:
    """Returns test instances in the plane of the two largest principal components, of the embedding
    where the method has one.
    """
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    rows = np.linspace(0, len(labels) - 1, min(len(labels), MOST_MAPPED)).astype(int)
    features = dataset.test.features[rows]
    embeds = callable(getattr(estimator, "transform", None))
    if not embeds and features.ndim == 1:
        return None
    values = np.asarray(
        estimator.transform(features) if embeds else features, dtype=np.float64
    ).reshape(len(rows), -1)
    if values.shape[1] < 2 or len(rows) < 3:
        return None
    scaled = StandardScaler().fit_transform(values)
    points = PCA(2, svd_solver="randomized", random_state=0, iterated_power=4).fit_transform(scaled)
    codes = labels[rows]
    wrong = (codes >= 0) & (probabilities[rows].argmax(axis=1) != codes)
    return (
        points,
        codes,
        wrong,
        "embedding" if embeds else "features (this method has no embedding)",
    )


def learning_curves(folder: Path) -> dict[str, dict[str, Curve]]:
    """Returns the scalars of TensorBoard's event files: for each value a line for each stage, steps
    and values.

    Where a step was written more than once (a run that was resumed), the last value counts.
    """
    if not folder.is_dir() or not any(folder.glob("*tfevents*")):
        return {}
    from tensorboard.backend.event_processing.event_accumulator import TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    reader = EventAccumulator(str(folder), size_guidance={TENSORS: 0})
    reader.Reload()
    found: dict[str, dict[str, Curve]] = {}
    for tag in sorted(reader.Tags()["tensors"]):
        if reader.SummaryMetadata(tag).plugin_data.plugin_name != "scalars" or tag.startswith(
            "test/"
        ):
            continue
        stage, _, name = tag.rpartition("/")
        by_step = {
            event.step: float(make_ndarray(event.tensor_proto)) for event in reader.Tensors(tag)
        }
        steps = np.array(sorted(by_step), dtype=np.int64)
        values = np.array([by_step[int(step)] for step in steps])
        if np.isfinite(values).any():
            found.setdefault(name, {})[stage] = (steps, values)
    return {name: _few(stages) for name, stages in found.items()}


def _few(stages: dict[str, Curve]) -> dict[str, Curve]:
    """Returns at most eight stages, evenly taken, in the order of the numbers in their names;
    cross-validation's fits are left out.
    """

    def natural(name: str) -> list[Any]:
        return [
            (0, int(part), "") if part.isdigit() else (1, 0, part)
            for part in re.split(r"(\d+)", name)
        ]

    names = sorted((name for name in stages if not name.startswith("cv/")), key=natural)
    if len(names) > MOST_STAGES:
        names = [names[i] for i in np.linspace(0, len(names) - 1, MOST_STAGES).astype(int)]
    return {name: stages[name] for name in names}


def siblings(folder: Path, mine: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Returns the test metrics of the finished runs of all methods on the same dataset and seed
    (and fold), by accuracy.

    They lie beside a run's folder: `<dataset>/<method>/seed-<s>[/fold-<k>]`. `mine` are this run's,
    where they are not written yet. Where several seeds have finished on one test set, `lead` is how
    much more accurate this run's method is than the row's, an interval over seeds and instances.
    """
    here = folder.resolve()
    fold = here.name.startswith("fold-")
    method = here.parents[1 if fold else 0]
    run = here.relative_to(method)
    if not run.parts[0].startswith("seed-"):
        return []
    rows = []
    for path in sorted(method.parent.glob("*")):
        own = path == method
        metrics = mine if own and mine is not None else _json(path / run / FINISHED)
        if isinstance(metrics.get("test"), dict) and "method" in metrics:
            test = metrics["test"].items()
            rows.append(
                {
                    "method": str(metrics["method"]),
                    **{name: value for name, value in test if isinstance(value, (int, float))},
                    "fit_seconds": (metrics.get("timings") or {}).get("fit_seconds"),
                    "lead": None if fold or own else _lead(method, path),
                }
            )
    return sorted(rows, key=lambda row: -(row.get("accuracy") or -math.inf))


def _lead(mine: Path, theirs: Path) -> Interval | None:
    """Returns how much more accurate one method is than another, over the seeds that both have."""
    seeds = [
        path.name
        for path in sorted(mine.glob("seed-*"))
        if (path / FINISHED).is_file() and (theirs / path.name / FINISHED).is_file()
    ]
    folders = [[method / name for name in seeds] for method in (mine, theirs)]
    return shared_test_interval(folders[0], folders[1], "accuracy")
