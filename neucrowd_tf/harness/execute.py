"""One run: fit, predict, and the files that it leaves."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import DENIED, DataError, IdentitiesError, UnsupportedDataError, UsageError
from neucrowd_tf.evaluation.annotators import annotators_csv
from neucrowd_tf.evaluation.cross_validation import all_annotated
from neucrowd_tf.evaluation.inferred_labels import infer_labels
from neucrowd_tf.evaluation.scoring import evaluate, score_split, score_test
from neucrowd_tf.export import export_saved_model
from neucrowd_tf.harness import process
from neucrowd_tf.harness.results import FAILED, OK, SKIPPED
from neucrowd_tf.harness.run_folder import RunFolder, locked
from neucrowd_tf.harness.watch import Watch, Watcher
from neucrowd_tf.harness.work import Work
from neucrowd_tf.io import run_files
from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.io.files.atomic import FULL, write_text
from neucrowd_tf.io.files.json import write_json
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.predictions import predictions_csv
from neucrowd_tf.io.tables.flags import model_names
from neucrowd_tf.stopping import check_stopped

SERVED = f"{run_files.SAVED_MODEL}/saved_model.pb"
# Errors of the machine rather than of a method: every further run would meet them too.
FATAL = (*FULL, *DENIED)


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


def execute(work: Work, dataset: CrowdDataset, strategy: Any = None) -> Outcome:
    """Makes one run in its folder, or only what a finished one lacks; it resumes from whatever
    state is there.

    Raises:
        OSError: the disk is full or the folder cannot be written.
        UsageError: the folder holds a run with other settings.
    """
    folder, options = work.folder, work.options
    crowd = dataset.annotations
    annotators = crowd.annotator_names.tolist() if crowd.has_identities else ()
    model_names(",".join(options.model_annotator), annotators)
    if work.only_complete:
        folder.sweep()
        Execution(work, dataset, strategy).complete()
        return Outcome(OK, folder.metrics())
    # Commands that share an output folder do not make one run at once.
    with locked(folder.path):
        if folder.finished and options.resume:  # another command made it meanwhile
            return Outcome(OK, folder.metrics())
        work.prepare()
        try:
            return Outcome(OK, Execution(work, dataset, strategy).make())
        except Exception as error:
            check_stopped()  # of which a library may make an error
            return _ended(folder, _failure(error, work.hparams))


def accompany(work: Work, dataset: CrowdDataset, strategy: Any) -> Outcome:
    """Trains along with the first worker, which writes all that is written.

    Raises:
        UsageError: a hyper-parameter that cannot be used.
    """
    execution = Execution(dataclasses.replace(work, progress=False), dataset, strategy)
    try:
        check_supported(execution.method, dataset)
        estimator = execution.estimator(work.hparams)
        if not getattr(estimator, "distributed", False):
            return Outcome(OK, reason="the first worker trains alone, on one device")
        execution.fit(estimator, execution.run())
    except Exception as error:
        return _failure(error, work.hparams)
    return Outcome(OK, reason="trained along")


def lacks(work: Work) -> bool:
    """Whether a finished run's folder lacks something that can be made from its checkpoints: the
    SavedModel, or one of the files of results; or whether its report is something else.
    """
    folder = work.folder
    return _lacks_export(work) or not folder.has_results(work.key) or _lacks_report(work)


def _lacks_export(work: Work) -> bool:
    return work.options.export and not (work.folder / SERVED).is_file()


def _lacks_report(work: Work) -> bool:
    folder = work.folder
    return work.options.report is not False and run_files.is_other_report(
        folder.path, folder.digests()
    )


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


# ----------------------------------------------------------------- how a run fails


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


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    known = type(error).__module__.startswith("neucrowd_tf")
    return text if known and text else f"{type(error).__name__}: {text}"


def _ended(folder: RunFolder, outcome: Outcome) -> Outcome:
    """Leaves the reason in the folder, where the run is not finished."""
    details: dict[str, Any] = {"status": outcome.status, "reason": outcome.reason}
    if outcome.status == FAILED and not outcome.mendable:
        details["traceback"] = "".join(traceback.format_exception(sys.exception())).splitlines()
    write_json(folder / run_files.STATUS, details)
    return outcome


# ----------------------------------------------------------------- how a run is made


class Execution:
    """A run at work: what fits its method and writes its files.

    Args:
        work: which run.
        dataset: its data.
        strategy: a `tf.distribute.Strategy`, or None.
    """

    def __init__(self, work: Work, dataset: CrowdDataset, strategy: Any = None) -> None:
        self.work, self.dataset, self.strategy = work, dataset, strategy
        self.key, self.options, self.folder = work.key, work.options, work.folder
        self.method = registry.method(work.key.method)

    def make(self) -> dict[str, Any]:
        """Makes the whole run; returns what its metrics.json holds."""
        resumed = (self.folder / run_files.CHECKPOINTS).is_dir()
        run = self.run(logs=True)
        estimator, timings = self._fitted(run)
        metrics = self._results(estimator)
        tested = metrics["test"]
        scalars = {name: tested[name] for name in tested if isinstance(tested[name], float)}
        run.stage("test").scalars(0, scalars)
        run.flush()
        if self.options.export:
            self._export(estimator, run)
        timings["resumed"] = resumed
        metrics["timings"] = {**timings, "peak_memory_mb": process.peak_memory_mb()}
        if self.options.report is not False:
            self._report(estimator, metrics)
        write_json(self.folder / run_files.FINISHED, metrics)
        return metrics

    def complete(self) -> None:
        """Writes what a finished run lacks: the fit is loaded from its checkpoints, or repeated
        where it keeps none.
        """
        run = self.run()
        estimator, _ = self._fitted(run)
        if not self.folder.has_results(self.key):
            self._results(estimator)
            self._check_same()
        if _lacks_export(self.work):
            self._export(estimator, run)
        if _lacks_report(self.work):
            path = self.folder / run_files.REPORT
            said = "expected this run's report, received something else; it is made again"
            warnings.warn(f"{path}: {said}", stacklevel=2)
            self._report(estimator, self.folder.metrics())

    def _check_same(self) -> None:
        """Warns of files made again that are not those which the finished run wrote."""
        for path in run_files.other_results(self.folder.path, self.folder.digests()):
            warnings.warn(
                f"{path}: expected, made again, what the run wrote, received another, as other"
                f" versions may make it: remove {self.folder / run_files.FINISHED} to make the run"
                " again",
                stacklevel=2,
            )

    def run(self, *, logs: bool = False) -> Watch:
        """Returns what surrounds the fit: checkpoints, and logs where they are asked for."""
        watched = logs and self.options.curves
        return Watch(
            checkpoints=self.folder / run_files.CHECKPOINTS,
            tensorboard=self.folder / "tensorboard" if logs else None,
            progress=self.work.progress,
            checkpoint_seconds=self.options.checkpoint_seconds,
            strategy=self.strategy,
            layout=self.options.table_format,
            watcher=Watcher(self.folder / run_files.CURVES, self.dataset) if watched else None,
        )

    def estimator(self, hparams: dict[str, Any]) -> Any:
        """Returns the unfitted estimator; arguments that do not fit are a UsageError."""
        try:
            return self.method.make(dataset=self.key.dataset, **{"seed": self.key.seed, **hparams})
        except TypeError as error:
            raise UsageError(f"--hparam: {self.method.name}: {error}") from None

    def _configured(self, hparams: dict[str, Any]) -> Any:
        """Returns the unfitted estimator, which config.json tells of."""
        estimator = self.estimator(hparams)
        if not self.folder.finished:  # what a finished run was made with stays as it is
            config = self.work.config(self.dataset, estimator)
            write_json(self.folder / run_files.CONFIG, config)
        return estimator

    def _fitted(self, run: Watch) -> tuple[Any, dict[str, Any]]:
        """Returns the fitted estimator, tuned first where that is asked for, and how long both
        took.
        """
        check_supported(self.method, self.dataset)
        estimator, timings = self._configured(self.work.hparams), {}
        if self.options.tune:
            from neucrowd_tf.harness.tuning import Search

            began = time.perf_counter()
            search = Search(
                self.method,
                self.work.hparams,
                self.dataset,
                self._annotations(),
                self.key.seed,
                self.options.tune_by,
                self.strategy,
            )
            best = search.best(self.options.tune, self.folder / run_files.TUNING)
            estimator = self._configured(self.work.hparams | best)
            timings["tune_seconds"] = time.perf_counter() - began
        names = {"method": self.key.method, "dataset": self.key.dataset, "seed": self.key.seed}
        run.hparams(estimator.get_params(deep=False) | names)
        if run.watcher is not None:
            run.watcher.estimator = estimator
        timings["fit_seconds"] = self.fit(estimator, run)
        return estimator, timings

    def fit(self, estimator: Any, run: Watch) -> float:
        """Fits the estimator; returns how long it took."""
        annotations = self._annotations()
        process.forget_networks()
        began = time.perf_counter()
        if getattr(estimator, "distributed", False):
            run.meet()  # what an earlier run left is cleared before the others look for it
        estimator.fit(self.dataset.features, annotations, self.dataset.validation_pair(), run=run)
        return time.perf_counter() - began

    def _annotations(self) -> Annotations:
        """Returns the crowd's annotations, or for the method that trains on the truth those of one
        annotator who is always right.
        """
        crowd, truth = self.dataset.annotations, self.dataset.truth
        if not self.method.uses_truth or truth is None:
            return crowd
        known = np.flatnonzero(truth >= 0)
        return Annotations(
            known,
            np.zeros(len(known), dtype=np.int32),
            truth[known],
            instance_names=crowd.instance_names,
            annotator_names=["truth"],
            class_names=crowd.class_names,
        )

    def _export(self, estimator: Any, run: Watch) -> None:
        """Writes the SavedModel, with --refit_all of the method fitted to the test rows' labels
        too; `auto` fits what it chose, and does not choose again.
        """
        dataset = self.dataset
        if self.options.refit_all and dataset.test.annotations is not None:
            features, annotations = all_annotated(dataset)
            chosen: Any = getattr(estimator, "estimator_", None)
            if hasattr(chosen, "refitted"):
                estimator = chosen.refitted(features, annotations, run.stage("refit"))
            else:
                estimator = clone(estimator).fit(features, annotations, run=run.stage("refit"))
        path = self.folder / run_files.SAVED_MODEL
        export_saved_model(estimator, path, dataset.feature_names)

    def _report(self, estimator: Any, metrics: dict[str, Any]) -> None:
        """Writes report.html; what goes wrong with it is told and costs the run nothing."""
        from neucrowd_tf.report.build import write_report

        path, models = self.folder.path, self.options.model_annotator
        try:
            write_report(path, self.dataset, estimator, metrics, model_annotators=models)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL:
                raise
            warnings.warn(f"{path}: no report.html was written ({_line(error)})", stacklevel=2)

    def _results(self, estimator: Any) -> dict[str, Any]:
        """Predicts, writes what a run says of instances and annotators, and returns the metrics."""
        dataset, folder = self.dataset, self.folder
        probabilities = np.asarray(estimator.predict_proba(dataset.test.features))
        labels, scored = score_test(dataset, probabilities)
        text = predictions_csv(dataset.test.names, labels, probabilities, dataset.class_names)
        write_text(folder / run_files.PREDICTIONS, text)
        written = [run_files.PREDICTIONS, run_files.ANNOTATORS]
        training = np.asarray(estimator.predict_proba(dataset.features))
        crowd, predicted = dataset.annotations, training.argmax(axis=1)
        if self.key.dataset == "table":
            inferred = infer_labels(dataset, estimator, training)
            write_text(folder / run_files.LABELS, inferred.csv())
            written.append(run_files.LABELS)
            crowd, predicted = inferred.crowd, inferred.model.argmax(axis=1)
        write_text(folder / run_files.ANNOTATORS, annotators_csv(crowd, predicted, estimator))
        if isinstance(getattr(estimator, "history_", None), dict):
            write_json(folder / run_files.HISTORY, estimator.history_)
        evaluation = evaluate(dataset, estimator, training, self.key.seed)
        write_json(folder / run_files.EVALUATION, evaluation)
        metrics = self.key.record() | scored
        # By which a file that lost a row is told from a whole one.
        metrics[run_files.DIGESTS] = {name: digest(folder / name) for name in written}
        # By which one sees whether runs of other seeds were tested on the same instances.
        metrics["test_digest"] = array_digest(dataset.test.features)
        if dataset.validation is not None:
            held = np.asarray(estimator.predict_proba(dataset.validation.features))
            metrics["validation"] = score_split(dataset.validation, held, dataset.class_names)
            basis = "truth" if dataset.validation_is_truth else "majority vote"
            metrics["validation_labels"] = basis
        for name in ("n_iter_", "best_epoch_", "recommendation_"):
            if getattr(estimator, name, None) is not None:
                metrics[name.rstrip("_")] = getattr(estimator, name)
        return metrics
