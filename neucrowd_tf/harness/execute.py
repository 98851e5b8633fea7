"""One run: fit, predict, and the files that it leaves."""

from __future__ import annotations

import dataclasses
import errno
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError, IdentitiesError, UnsupportedDataError, UsageError
from neucrowd_tf.evaluation.cross_validation import all_annotated, concatenate
from neucrowd_tf.evaluation.inferred_labels import infer_labels
from neucrowd_tf.evaluation.without_truth import BASIS, score_without_truth
from neucrowd_tf.export import export_saved_model
from neucrowd_tf.harness import process
from neucrowd_tf.harness.evaluation import evaluate
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import FAILED, OK, SKIPPED
from neucrowd_tf.harness.run_config import Task, config, settings
from neucrowd_tf.harness.run_files import write_annotators, write_labels, write_predictions
from neucrowd_tf.harness.run_folder import (
    CONFIG,
    CURVES,
    EVALUATION,
    FINISHED,
    HISTORY,
    SAVED_MODEL,
    STATUS,
    RunFolder,
    RunKey,
)
from neucrowd_tf.harness.watch import Watch, Watcher
from neucrowd_tf.io.files import array_digest, digest, write_json
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESULTS = ("predictions.csv", "annotators.csv")
DIGEST = "predictions_digest"  # by which a file that lost a row is told from a whole one
# Errors of the machine rather than of a method: every further run would meet them too.
FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: "ok", "skipped" or "failed".
        metrics: what metrics.json holds, for "ok".
        reason: one line, for the others.
        mendable: whether the reason is something the user gave (data or flags), rather than a
            fault.
    """

    status: str
    metrics: dict[str, Any] | None = None
    reason: str = ""
    mendable: bool = False


def execute(task: Task, options: Options, dataset: CrowdDataset, strategy: Any = None) -> Outcome:
    """Makes one run in its folder; it resumes from whatever state is there.

    Raises:
        OSError: the disk is full or the folder cannot be written.
        UsageError: the folder holds a run with other settings.
    """
    folder = RunFolder(task.key.folder(options.output_dir, options.folds))
    known = {str(name) for name in dataset.annotations.annotator_names.tolist()}
    for name in options.model_annotator:
        if name not in known or not dataset.annotations.has_identities:
            raise UsageError(f"--model_annotator: expected an annotator's name, received {name!r}")
    with folder.held():
        if folder.finished and options.resume:  # another command made it meanwhile
            return Outcome(OK, folder.metrics())
        prepare(folder, settings(task, options), options.resume)
        return _outcome(task, options, dataset, folder, strategy)


def _outcome(
    task: Task, options: Options, dataset: CrowdDataset, folder: RunFolder, strategy: Any
) -> Outcome:
    try:
        return Outcome(OK, _execute(task, options, dataset, folder, strategy))
    except Exception as error:
        return _ended(folder, _failure(error, task.hparams))


def _failure(error: Exception, hparams: dict[str, Any]) -> Outcome:
    """Returns how a run ended that an error ended; those that every run would meet are raised."""
    reason = _line(error)
    if isinstance(error, (IdentitiesError, UnsupportedDataError)):
        return Outcome(SKIPPED, reason=reason, mendable=True)
    if isinstance(error, OSError) and error.errno in FATAL:
        raise error
    process.check_workers(error)
    if _about_arguments(error, hparams):
        return Outcome(FAILED, reason=f"--hparam: {' '.join(str(error).split())}", mendable=True)
    return Outcome(FAILED, reason=reason, mendable=isinstance(error, (DataError, UsageError)))


def _about_arguments(error: Exception, hparams: dict[str, Any]) -> bool:
    """Whether an error is about a hyper-parameter that the user gave: it begins with its name, or
    speaks of its text.
    """
    if not isinstance(error, (ValueError, TypeError)):
        return False
    text = str(error)
    return text.partition(":")[0] in hparams or any(
        isinstance(value, str) and value and value in text for value in hparams.values()
    )


def prepare(folder: RunFolder, now: dict[str, Any], resume: bool) -> None:
    """Readies a run's folder: what a killed process left is resumed, or cleared without --resume.

    Raises:
        UsageError: a finished run is there, or one with other settings.
    """
    if folder.finished and not resume:
        folder.refuse()
    if (folder.started or folder.finished) and resume:
        folder.check_settings(now)
        folder.sweep()
        (folder / STATUS).unlink(missing_ok=True)
    else:
        folder.clear()
    folder.path.mkdir(parents=True, exist_ok=True)


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    known = type(error).__module__.startswith("neucrowd_tf")
    return text if known and text else f"{type(error).__name__}: {text}"


def _ended(folder: RunFolder, outcome: Outcome) -> Outcome:
    """Leaves the reason in the folder, where the run is not finished."""
    details = {"status": outcome.status, "reason": outcome.reason}
    if outcome.status == FAILED and not outcome.mendable:
        details["traceback"] = "".join(traceback.format_exception(sys.exception())).splitlines()  # type: ignore[assignment]
    write_json(folder / STATUS, details)
    return outcome


def check_supported(method: registry.Method, dataset: CrowdDataset) -> None:
    """Raises IdentitiesError or UnsupportedDataError when a method cannot run on a dataset."""
    if method.max_classes is not None and dataset.num_classes > method.max_classes:
        raise UnsupportedDataError(
            f"{method.name} handles at most {method.max_classes} classes, {dataset.name} has"
            f" {dataset.num_classes}"
        )
    if method.uses_truth and dataset.truth is None:
        raise UnsupportedDataError(
            f"{method.name} trains on the true labels, which {dataset.name} does not have"
        )
    if method.requires_identities and not method.uses_truth:
        dataset.annotations.require_identities(method.name)


def _training_annotations(method: registry.Method, dataset: CrowdDataset) -> Annotations:
    """Returns the crowd's annotations, or for the method that trains on the truth those of one
    annotator who is always right.
    """
    crowd = dataset.annotations
    if not method.uses_truth or dataset.truth is None:
        return crowd
    known = np.flatnonzero(dataset.truth >= 0)
    return Annotations(
        known,
        np.zeros(len(known), dtype=np.int32),
        dataset.truth[known],
        instance_names=crowd.instance_names,
        annotator_names=["truth"],
        class_names=crowd.class_names,
    )


def _execute(
    task: Task, options: Options, dataset: CrowdDataset, folder: RunFolder, strategy: Any
) -> dict[str, Any]:
    resumed = (folder / "checkpoints").is_dir()
    run = Watch(
        checkpoints=folder / "checkpoints",
        tensorboard=folder / "tensorboard",
        progress=task.progress,
        checkpoint_seconds=options.checkpoint_seconds,
        strategy=strategy,
        watcher=Watcher(folder / CURVES, dataset) if options.curves else None,
    )
    estimator, timings = _fitted(task, options, dataset, folder, run)
    metrics = _results(task.key, dataset, estimator, folder)
    run.stage("test").scalars(
        0, {name: value for name, value in metrics["test"].items() if isinstance(value, float)}
    )
    run.flush()
    if options.export:
        _export(estimator, options, dataset, folder, run)
    metrics["timings"] = {**timings, "resumed": resumed, "peak_memory_mb": process.peak_memory_mb()}
    if options.report is not False:
        _report(folder, dataset, estimator, metrics, options.model_annotator)
    write_json(folder / FINISHED, metrics)
    return metrics


def _export(
    estimator: Any, options: Options, dataset: CrowdDataset, folder: RunFolder, run: Run
) -> None:
    """Writes the SavedModel, with --refit_all of the method fitted to the test rows' labels too;
    `auto` fits what it chose, and does not choose again.
    """
    if options.refit_all and dataset.test.annotations is not None:
        features, annotations = all_annotated(dataset)
        chosen: Any = getattr(estimator, "estimator_", None)
        if hasattr(chosen, "refitted"):
            estimator = chosen.refitted(features, annotations, run.stage("refit"))
        else:
            estimator = clone(estimator).fit(features, annotations, run=run.stage("refit"))
    export_saved_model(
        estimator, folder / SAVED_MODEL, dataset.feature_names, dataset.feature_centre
    )


def _report(
    folder: RunFolder,
    dataset: CrowdDataset,
    estimator: Any,
    metrics: dict[str, Any],
    models: Sequence[str] = (),
) -> None:
    """Writes report.html; what goes wrong with it is told and costs the run nothing."""
    from neucrowd_tf.report.build import write_report

    try:
        write_report(folder.path, dataset, estimator, metrics, model_annotators=models)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FATAL:
            raise
        warnings.warn(f"{folder.path}: no report.html was written ({_line(error)})", stacklevel=2)


def _fitted(
    task: Task, options: Options, dataset: CrowdDataset, folder: RunFolder, run: Run
) -> tuple[Any, dict[str, float]]:
    """Returns the fitted estimator, tuned first where that is asked for, and how long both took."""
    method = registry.method(task.key.method)
    check_supported(method, dataset)
    annotations = _training_annotations(method, dataset)
    hparams, timings = dict(task.hparams), {}

    def configured() -> Any:
        made = make(method, task.key, hparams)
        if not folder.finished:  # what a finished run was made with stays as it is
            write_json(folder / CONFIG, config(task, options, dataset, made))
        return made

    estimator = configured()
    if options.tune:
        from neucrowd_tf.harness.tuning import tune

        began = time.perf_counter()
        search: dict[str, Any] = {
            "trials": options.tune,
            "by": options.tune_by,
            "seed": task.key.seed,
            "path": folder / "tuning.csv",
        }
        hparams |= tune(method, hparams, dataset, annotations, strategy=run.strategy, **search)
        estimator = configured()
        timings["tune_seconds"] = time.perf_counter() - began
    key = task.key
    names = {"method": key.method, "dataset": key.dataset, "seed": key.seed}
    run.hparams(estimator.get_params(deep=False) | names)
    if isinstance(run, Watch) and run.watcher is not None:
        run.watcher.estimator = estimator
    process.forget_networks()
    began = time.perf_counter()
    if getattr(estimator, "distributed", False):
        run.meet()  # before the others look for checkpoints, what an earlier run left is cleared
    estimator.fit(dataset.features, annotations, dataset.validation_pair(), run=run)
    timings["fit_seconds"] = time.perf_counter() - began
    return estimator, timings


def accompany(task: Task, options: Options, dataset: CrowdDataset, strategy: Any) -> Outcome:
    """Trains along with the first worker, which writes all that is written.

    Raises:
        UsageError: a hyper-parameter that cannot be used.
    """
    method = registry.method(task.key.method)
    try:
        check_supported(method, dataset)
        estimator = make(method, task.key, dict(task.hparams))
        if not getattr(estimator, "distributed", False):
            return Outcome(OK, reason="the first worker trains alone, on one device")
        folder = RunFolder(task.key.folder(options.output_dir, options.folds))
        run = Run(folder / "checkpoints", None, False, options.checkpoint_seconds, strategy)
        annotations = _training_annotations(method, dataset)
        process.forget_networks()
        run.meet()
        estimator.fit(dataset.features, annotations, dataset.validation_pair(), run=run)
    except Exception as error:
        return _failure(error, task.hparams)
    return Outcome(OK, reason="trained along")


def lacks(folder: RunFolder, options: Options) -> bool:
    """Whether a finished run's folder lacks something that can be made from its checkpoints: the
    SavedModel, or one of the files of results.
    """
    return (options.export and not (folder / SAVED_MODEL).is_dir()) or not _has_results(folder)


def _has_results(folder: RunFolder) -> bool:
    """Whether the files of results are there, and the predictions as a run writes them."""
    if not all((folder / name).is_file() for name in (EVALUATION, *RESULTS)):
        return False
    try:
        read_predictions(folder / RESULTS[0])
        whole = folder.metrics().get(DIGEST)
    except DataError:
        return False
    return whole in (None, digest(folder / RESULTS[0]))  # earlier versions wrote none


def complete(task: Task, options: Options, dataset: CrowdDataset, strategy: Any = None) -> None:
    """Writes what a finished run lacks: the fit is loaded from its checkpoints, or repeated where
    it keeps none.
    """
    folder = RunFolder(task.key.folder(options.output_dir, options.folds))
    folder.sweep()
    run = Run(
        checkpoints=folder / "checkpoints",
        progress=task.progress,
        checkpoint_seconds=options.checkpoint_seconds,
        strategy=strategy,
    )
    estimator = _fitted(task, options, dataset, folder, run)[0]
    if not _has_results(folder):
        _results(task.key, dataset, estimator, folder)
    if options.export and not (folder / SAVED_MODEL).is_dir():
        _export(estimator, options, dataset, folder, run)


def _write_evaluation(
    key: RunKey, dataset: CrowdDataset, estimator: Any, training: NDArray[Any], folder: RunFolder
) -> None:
    """Writes history.json, where the estimator keeps one, and evaluation.json."""
    if isinstance(getattr(estimator, "history_", None), dict):
        write_json(folder / HISTORY, estimator.history_)
    write_json(folder / EVALUATION, evaluate(dataset, estimator, training, key.seed))


def make(method: registry.Method, key: RunKey, hparams: dict[str, Any]) -> Any:
    """Returns the unfitted estimator; arguments that do not fit are a UsageError."""
    try:
        return method.make(dataset=key.dataset, **{"seed": key.seed, **hparams})
    except TypeError as error:
        raise UsageError(f"--hparam: {method.name}: {error}") from None


def _results(
    key: RunKey, dataset: CrowdDataset, estimator: Any, folder: RunFolder
) -> dict[str, Any]:
    """Predicts, writes predictions.csv and annotators.csv, and returns the metrics."""
    probabilities = np.asarray(estimator.predict_proba(dataset.test.features))
    labels, scored = _test_scores(key, dataset, probabilities)
    write_predictions(
        folder / RESULTS[0], dataset.test.names, labels, probabilities, dataset.class_names
    )
    training = np.asarray(estimator.predict_proba(dataset.features))
    crowd, predicted = dataset.annotations, training.argmax(axis=1)
    if key.dataset == "table":
        inferred = infer_labels(dataset, estimator, training)
        write_labels(folder / "labels.csv", inferred)
        crowd, predicted = inferred.crowd, inferred.model.argmax(axis=1)
    write_annotators(folder / "annotators.csv", crowd, predicted, estimator)
    _write_evaluation(key, dataset, estimator, training, folder)
    metrics: dict[str, Any] = {"dataset": key.dataset, "method": key.method, "seed": key.seed}
    if key.fold is not None:
        metrics |= {"repeat": key.repeat, "fold": key.fold}
    metrics |= scored
    metrics[DIGEST] = digest(folder / RESULTS[0])
    # By which one sees whether runs of other seeds were tested on the same instances.
    metrics["test_digest"] = array_digest(dataset.test.features)
    if dataset.validation is not None:
        metrics["validation"] = _scores(
            dataset.validation,
            np.asarray(estimator.predict_proba(dataset.validation.features)),
            dataset.class_names,
        )
        metrics["validation_labels"] = "truth" if dataset.validation_is_truth else "majority vote"
    for name in ("n_iter_", "best_epoch_", "recommendation_"):
        if getattr(estimator, name, None) is not None:
            metrics[name.rstrip("_")] = getattr(estimator, name)
    return metrics


def _test_scores(
    key: RunKey, dataset: CrowdDataset, probabilities: NDArray[Any]
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Returns the labels `[M]` of the test rows, and what metrics.json says of predictions: by the
    truth, or else by what a model of the crowd believes, or, where it is not known who voted, by
    majority votes.
    """
    test = dataset.test
    crowd = test.annotations
    if dataset.test_is_truth or crowd is None or not crowd.has_identities:
        basis = "truth" if dataset.test_is_truth else "majority vote"
        scored = _scores(test, probabilities, dataset.class_names)
        return test.labels, {"test": scored, "test_labels": basis}
    rows = np.flatnonzero(crowd.annotated)
    everyone = concatenate([dataset.annotations, crowd]).observed()
    scores = score_without_truth(
        everyone,
        dataset.annotations.num_instances + rows,
        probabilities[rows],
        class_names=dataset.class_names,
        seed=key.seed,
    )
    labels = np.full(len(test), -1, dtype=np.int64)
    labels[rows] = scores.beliefs.argmax(axis=1)
    return labels, {
        "test": {"size": len(rows), **scores.metrics},
        "test_labels": BASIS,
        "test_meaning": scores.meaning,
        "test_simulated": scores.simulated,
    }


def _scores(split: Split, probabilities: NDArray[Any], class_names: NDArray[Any]) -> dict[str, Any]:
    """Returns the metrics over the rows whose label is known, and how many these are."""
    from neucrowd_tf.metrics import classification_metrics

    known = np.flatnonzero(split.labels >= 0)
    if not len(known):
        return {"size": 0}
    return {
        "size": len(known),
        **classification_metrics(
            split.labels[known], probabilities[known], class_names=class_names
        ),
    }
