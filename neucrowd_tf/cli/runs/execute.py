"""Making one run: fit, predict, score, and write its files."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
import traceback
import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from neucrowd_tf.aggregation.families import Sources, named_families, named_models
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import is_text
from neucrowd_tf.annotations.votes import Scale, scale_of
from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.curves import CurveRecorder, RecordedRun
from neucrowd_tf.cli.runs.results import FAILED, OK, SKIPPED
from neucrowd_tf.cli.runs.tuning import Search, candidates
from neucrowd_tf.cli.runs.work import TRAIN_ACCURACY, Work, locked, preset_name
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Fields, Indices
from neucrowd_tf.encoders import make_encoder
from neucrowd_tf.errors import (
    DENIED,
    DataError,
    IdentitiesError,
    UnsupportedDataError,
    UsageError,
    one_line,
)
from neucrowd_tf.evaluation.annotators import annotators_csv
from neucrowd_tf.evaluation.cached_consensus import inferred
from neucrowd_tf.evaluation.cross_validation import whole_crowd
from neucrowd_tf.evaluation.inferred_labels import infer_labels
from neucrowd_tf.evaluation.report.build import write_report
from neucrowd_tf.evaluation.report.training import by_step
from neucrowd_tf.evaluation.scoring import evaluate, score_split, score_test
from neucrowd_tf.io import run_files
from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.io.files.atomic import FULL, write_text
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.predictions import LIKELY, TRUE, predictions_csv
from neucrowd_tf.methods.auto.data import gold_codes
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.saving.saved_model import export_saved_model
from neucrowd_tf.training.reuse import NetworkCache
from neucrowd_tf.training.run import Run

# Errors of the machine: every further run would have them too.
FATAL = (*FULL, *DENIED)
_shared = threading.local()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: "ok", "skipped" or "failed".
        metrics: the content of metrics.json, for "ok".
        reason: one line, for the others.
        fixable: whether the reason is something that the user gave (data or flags).
    """

    status: str
    metrics: Fields | None = None
    reason: str = ""
    fixable: bool = False


def execute(work: Work, dataset: CrowdDataset, strategy: Any = None) -> Outcome:
    """Makes one run in its folder; a finished one without its export goes on from checkpoints.

    Raises:
        OSError: the disk is full or the folder cannot be written.
        UsageError: the folder contains a run with other settings.
    """
    crowd = dataset.annotations
    named_models(work.options.model_annotator, crowd.annotator_names)
    named_families(crowd, work.options.family)
    execution = _Execution(work, dataset, strategy)
    with locked(work.folder):  # another command may share the output folder
        if work.check() and work.complete():  # made meanwhile
            return Outcome(OK, work.metrics().content)
        work.prepare()
        try:
            return Outcome(OK, execution.make())
        except Exception as error:
            outcome = _failure(error, work.hparams)
            record = {"status": outcome.status, "reason": outcome.reason}
            if outcome.status == FAILED and not outcome.fixable:
                lines = "".join(traceback.format_exception(sys.exception())).splitlines()
                record["traceback"] = lines  # type: ignore[assignment]
            write_json(work.folder / run_files.STATUS, record)
            return outcome


def accompany(work: Work, dataset: CrowdDataset, strategy: Any) -> Outcome:
    """Trains together with the first worker, which writes all files.

    Raises:
        UsageError: a hyper-parameter that cannot be used.
    """
    execution = _Execution(dataclasses.replace(work, progress=False), dataset, strategy)
    try:
        check_supported(execution.method, dataset)
        estimator = execution.estimator(work.hparams)
        if not getattr(estimator, "distributed", False):
            return Outcome(OK, reason="only the first worker trains, on one device")
        execution.fit(estimator, execution.run())
    except Exception as error:
        return _failure(error, work.hparams)
    return Outcome(OK, reason="trained together with the first worker")


def shared_networks(method: str, estimator: Any) -> AbstractContextManager[Any]:
    """Returns a context in which a fit takes the compiled network of the last run, if it fits.

    Runs of one method that differ in their seed or in data of the same shape compile once a process
    (and thread). The network's weights start anew, so that the bytes are those of a new one.

    Args:
        method: the method's name; another method's networks are forgotten.
        estimator: to fit.
    """
    reused = getattr(estimator, "reused", None)
    latest = getattr(_shared, "latest", None)
    if latest is None or latest[0] != method:
        _shared.latest = latest = (method, NetworkCache())
    if reused is None:
        return contextlib.nullcontext()
    return reused(latest[1])  # type: ignore[no-any-return]


def check_supported(method: registry.Method, dataset: CrowdDataset) -> None:
    """Raises IdentitiesError or UnsupportedDataError if a method cannot run on a dataset."""
    if method.max_classes is not None and dataset.num_classes > method.max_classes:
        raise UnsupportedDataError(
            f"{method.name} handles at most {method.max_classes} classes; {dataset.name} has"
            f" {dataset.num_classes}"
        )
    if method.uses_truth and dataset.truth is None:
        raise UnsupportedDataError(
            f"{method.name} trains on true labels; {dataset.name} does not have them"
        )
    if method.requires_identities and not method.uses_truth:
        dataset.annotations.require_identities(method.name)


def training_annotations(method: registry.Method, dataset: CrowdDataset) -> Annotations:
    """Returns the crowd's annotations, for gold methods the true labels as one annotator's."""
    crowd = dataset.annotations
    truth = dataset.truth
    if not method.uses_truth or truth is None:
        return crowd
    rows = np.flatnonzero(truth >= 0)
    return Annotations(
        rows,
        np.zeros(len(rows), dtype=np.int32),
        truth[rows],
        instance_names=crowd.instance_names,
        annotator_names=["truth"],
        class_names=crowd.class_names,
    )


def _failure(error: Exception, hparams: Fields) -> Outcome:
    """Returns the outcome of a run that raised an error; raises errors of the machine."""
    if isinstance(error, OSError) and error.errno in FATAL:
        raise error
    process.check_workers(error)
    text = one_line(error)
    if isinstance(error, (IdentitiesError, UnsupportedDataError)):
        return Outcome(SKIPPED, reason=text, fixable=True)
    # An estimator's message begins with the parameter's name.
    if isinstance(error, (ValueError, TypeError)) and text.partition(":")[0] in hparams:
        return Outcome(FAILED, reason=f"--hparam: {text}", fixable=True)
    fixable = isinstance(error, (DataError, UsageError))
    if not fixable:
        text = f"{type(error).__name__}: {text}"
    return Outcome(FAILED, reason=text, fixable=fixable)


class _Execution:
    """Fits the method of a run and writes its files."""

    def __init__(self, work: Work, dataset: CrowdDataset, strategy: Any = None) -> None:
        self.work = work
        self.dataset = dataset
        self.strategy = strategy
        self.folder = work.folder
        self.method = registry.method(work.key.method)
        self.annotations = training_annotations(self.method, dataset)
        models = named_models(work.options.model_annotator, dataset.annotations.annotator_names)
        self.sources = Sources(models, work.options.family)
        self.gold: dict[Any, Any] | None = None  # true labels by item, of --gold
        self.gold_codes: Indices | None = None  # of the instances of `whole_crowd`
        if (path := work.options.gold) is not None:
            whole = whole_crowd(dataset).observed()
            self.gold = read_gold(path, whole, work.options)
            self.gold_codes = gold_codes(self.gold, whole)
        self.encoder = None
        if (source := work.options.encoder) is not None:
            encoder = make_encoder(source)
            if encoder.takes == "texts" and not is_text(dataset.features):
                raise UsageError(f"--encoder={source}: {dataset.name} has no texts. Remove it.")
            self.encoder = encoder.fit(dataset.features)

    def make(self) -> Fields:
        """Makes the run; returns the content of its metrics.json.

        A finished run keeps its timings.
        """
        earlier = self.work.metrics() if self.work.finished else None
        resumed = (self.folder / run_files.CHECKPOINTS).is_dir()
        run = self.run(logs=True)
        estimator, timings = self._fitted(run)
        metrics = self._results(estimator)
        scalars = {name: x for name, x in metrics["test"].items() if isinstance(x, float)}
        run.stage("test").scalars(0, scalars)
        evaluation = dict(read_json(self.folder / run_files.EVALUATION))
        for number, figures in enumerate(by_step(evaluation, self.dataset.class_names.tolist())):
            run.stage("after the fit").scalars(number, figures)
        run.flush()
        if self.work.options.export:
            model = self.folder / run_files.SAVED_MODEL
            export_saved_model(estimator, model, self.dataset.feature_names)
        timings |= {"resumed": resumed, "peak_memory_mb": process.peak_memory_mb()}
        metrics["timings"] = timings if earlier is None else earlier.timings
        if self.work.options.report is not False:
            self._report(metrics, scale_of(estimator))
        write_json(self.folder / run_files.FINISHED, metrics)
        return metrics

    def run(self, *, logs: bool = False) -> RecordedRun:
        """Returns the surroundings of the fit: checkpoints, logs and curves."""
        curves = self.folder / run_files.CURVES
        options = self.work.options
        return RecordedRun(
            checkpoints=self.folder / run_files.CHECKPOINTS,
            tensorboard=self.folder / run_files.TENSORBOARD if logs else None,
            progress=self.work.progress,
            checkpoint_seconds=options.checkpoint_seconds,
            strategy=self.strategy,
            recorder=CurveRecorder(curves, self.dataset) if logs and options.curves else None,
        )

    def estimator(self, hparams: Fields) -> Any:
        """Returns the unfitted estimator, of texts a `TextClassifier`.

        Unknown arguments raise UsageError.
        """
        key = self.work.key
        preset = preset_name(key.dataset, self.encoder)
        if self.gold is not None and "gold" in (self.method.parameter_names or ()):
            hparams = {**hparams, "gold": self.gold}
        try:
            estimator = self.method.make(
                dataset=preset, bases=self.work.options.bases, **{"seed": key.seed, **hparams}
            )
        except TypeError as error:
            raise UsageError(f"--hparam: {self.method.name}: {error}") from None
        if self.encoder is None and not is_text(self.dataset.features):
            return estimator
        if getattr(estimator, "takes_texts", False):
            if self.encoder is None:
                return estimator
            return estimator.set_params(encoder=self.encoder)
        return TextClassifier(self.encoder, estimator=estimator, seed=key.seed)

    def _configured(self, hparams: Fields) -> Any:
        """Returns the unfitted estimator and writes config.json."""
        estimator = self.estimator(hparams)
        described = estimator
        if isinstance(estimator, TextClassifier):
            described = estimator.estimator
        write_json(self.folder / run_files.CONFIG, self.work.config(self.dataset, described))
        return estimator

    def _fitted(self, run: RecordedRun) -> tuple[Any, Fields]:
        """Returns the tuned and fitted estimator, and the seconds of both."""
        check_supported(self.method, self.dataset)
        work = self.work
        timings = {}
        estimator = self._configured(work.hparams)
        if work.options.tune:
            began = time.perf_counter()
            seed = work.key.seed
            tune = work.options.tune
            configurations = candidates(work.space or self.method.space, work.hparams, tune, seed)
            search = Search(self._trial, self.dataset, self.annotations, seed, work.options.tune_by)
            best = search.best(configurations, self.folder / run_files.TUNING)
            estimator = self._configured(work.hparams | best)
            timings["tune_seconds"] = time.perf_counter() - began
        if run.recorder is not None:
            run.recorder.estimator = estimator
        timings["fit_seconds"] = self.fit(estimator, run)
        return estimator, timings

    def _trial(self, setting: Fields, features: Any, crowd: Annotations, pair: Any) -> Any:
        """Returns an estimator fitted with a setting of --tune."""
        process.forget_networks()
        run = Run(progress=False, strategy=self.strategy)
        return self.estimator(self.work.hparams | setting).fit(features, crowd, pair, run=run)

    def fit(self, estimator: Any, run: RecordedRun) -> float:
        """Fits the estimator; returns the seconds."""
        process.forget_networks()
        began = time.perf_counter()
        if getattr(estimator, "distributed", False):
            run.barrier()  # earlier files are removed before the other workers look for them
        validation = self.dataset.validation_pair()
        with shared_networks(self.work.key.method, estimator):
            estimator.fit(self.dataset.features, self.annotations, validation, run=run)
        return time.perf_counter() - began

    def _crowd(self) -> Annotations:
        """Returns the annotations that annotators.csv and the report are of.

        They are all of a table, and what a run trains on of other datasets.
        """
        crowd = self.dataset.annotations
        if self.work.key.dataset == "table":
            crowd = whole_crowd(self.dataset)
        return crowd.observed()

    def _report(self, metrics: Fields, scale: Scale) -> None:
        """Writes report.html; an error in it is a warning and does not fail the run."""
        try:
            write_report(
                self.folder,
                self.dataset,
                metrics,
                crowd=self._crowd(),
                sources=self.sources,
                gold=self.gold_codes,
                scale=scale,
            )
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL:
                raise
            warnings.warn(f"{self.folder}: no report was written ({one_line(error)})", stacklevel=2)

    def _results(self, estimator: Any) -> Fields:
        """Predicts, writes the result files, and returns the metrics."""
        dataset = self.dataset
        folder = self.folder
        key = self.work.key
        probabilities = np.asarray(estimator.predict_proba(dataset.test.features))
        gold = self.gold_codes
        sources = self.sources
        scale = scale_of(estimator)
        labels, scored = score_test(dataset, probabilities, estimator, gold, sources)
        test = dataset.test.names
        predicted = estimator._decide(probabilities)
        column = TRUE if scored["test_labels"] == "truth" else LIKELY
        text = predictions_csv(test, labels, predicted, probabilities, dataset.class_names, column)
        write_text(folder / run_files.PREDICTIONS, text)
        training = np.asarray(estimator.predict_proba(dataset.features))
        if key.dataset != "table":
            inference = inferred(self._crowd(), None, sources, scale)
            predicted = estimator._decide(training)
        else:
            labels_of = infer_labels(dataset, estimator, training, gold, sources)
            inference = inferred(labels_of.crowd, gold, sources, scale)
            predicted = labels_of.model_labels
            write_text(folder / run_files.LABELS, labels_of.csv())
            if getattr(estimator, "held_out_probas_", None) is not None:
                write_text(folder / run_files.OUT_OF_FOLD, labels_of.held_out_csv())
        write_text(folder / run_files.ANNOTATORS, annotators_csv(inference, predicted, estimator))
        if isinstance(getattr(estimator, "history_", None), dict):
            write_json(folder / run_files.HISTORY, estimator.history_)
        write_json(folder / run_files.EVALUATION, evaluate(dataset, estimator, training, key.seed))
        metrics = key.record() | scored
        if self.method.changes:
            metrics["changes"] = self.method.changes
        if dataset.truth is not None and (rows := dataset.truth >= 0).any():
            right = training.argmax(axis=1)[rows] == dataset.truth[rows]
            metrics[TRAIN_ACCURACY] = float(right.mean())
        # Runs with equal digests were tested on the same instances.
        metrics["test_digest"] = array_digest(dataset.test.features)
        if dataset.validation is not None:
            validated = np.asarray(estimator.predict_proba(dataset.validation.features))
            metrics["validation"] = score_split(dataset.validation, validated, dataset.class_names)
            basis = "truth" if dataset.validation_is_truth else "majority vote"
            metrics["validation_labels"] = basis
        for name in ("n_iter", "best_epoch", "one_step", "trained", "recommendation"):
            if (result := getattr(estimator, f"{name}_", None)) is not None:
                metrics[name] = result
        return metrics
