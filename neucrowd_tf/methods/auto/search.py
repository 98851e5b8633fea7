"""The candidates' cross-validations and last fits, in parallel threads."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from neucrowd_tf.aggregation.blas import one_blas_thread
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import is_text
from neucrowd_tf.declare.picking import by_name
from neucrowd_tf.declare.types import Estimator, Fields, Floats, Floats32, Indices, Mask
from neucrowd_tf.errors import one_line, quietly
from neucrowd_tf.methods.auto.candidates import TOO_DEAR, Candidate
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.training.ensemble import MEMBER_SEEDS
from neucrowd_tf.training.reuse import NetworkCache
from neucrowd_tf.training.run import Run

Rows = Indices
Result = TypeVar("Result")

# A candidate is not tried on the other folds if its agreement with the consensus after one fold is
# this far below the baseline's, by more than this many standard errors.
HOPELESS = 0.05
ERRORS = 3.0
# Networks keep the features of their latest fit. With more bytes than this they are not kept, and
# each candidate's last fit compiles again.
MOST_KEPT = 1 << 26
# Shares of a budget at which the search and the last fits end. A last fit takes about half as long
# as a cross-validation, and the recommendation a little.
SEARCH = 0.6
LAST = 0.9


class Clock(threading.Event):
    """An event at which fits end: it or another is set, or a share of the budget has passed.

    Args:
        outer: the other event, of the run.

    Attributes:
        budget: seconds from the making of the clock; infinite until it is chosen.
        share: of the budget.
    """

    def __init__(self, outer: threading.Event | None = None) -> None:
        super().__init__()
        self.outer = outer or threading.Event()
        self.budget = math.inf
        self.share = SEARCH
        self._start = time.perf_counter()
        self._spent: dict[str, tuple[float, float]] = {"": (1.0, 1.0)}

    @property
    def left(self) -> float:
        """The seconds until the share has passed."""
        return self.share * self.budget - (time.perf_counter() - self._start)

    def is_set(self) -> bool:
        """Returns whether fits have to end."""
        return super().is_set() or self.outer.is_set() or self.left < 0

    def run(self, function: Callable[[Task], Outcome], task: Task) -> Outcome:
        """Returns a task's outcome, which has no result if there is not enough time.

        Its duration is predicted from the candidate's cost, scaled by how long its earlier fits
        took, or without such fits by how long those of all others took.

        Args:
            function: `held_out` or `fitted`.
            task: its argument.
        """
        name = task.candidate.name
        start = time.perf_counter()
        actual, expected = self._spent.get(name, np.sum([*self._spent.values()], axis=0))
        predicted = task.candidate.cost
        if function is not fitted:
            predicted *= 2
        if predicted * actual / expected <= self.left:
            try:
                outcome = function(task)
                self._spent[name] = (time.perf_counter() - start, predicted)
                return outcome
            except KeyboardInterrupt:
                if self.left > 0 or self.outer.is_set():
                    raise
        return Outcome(task.name, reason=TOO_DEAR.format(self.budget))


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A candidate with the data to try it on.

    Attributes:
        candidate: to fit.
        features: `[N, ...]`.
        annotations: of N instances.
        splits: training and held-out rows by fold; all folds train on as many rows, so that one
            compiled network serves them all.
        seed: the estimator's.
        folder: for results that a resumed run does not compute again, or None.
        owner: whose results these are (see `Run`).
        consensus: `[N]` class codes.
        agreement: `[N]` whether a quick regression's prediction is the consensus. A candidate that
            agrees with it far less often after one fold is not tried further. None: all folds are.
        networks: compiled for the candidate's fits, including the last one.
        repeat: 0 for the first fits of a candidate; others draw with another seed.
        stop: ends the search.
        progress: whether bars may be shown.
    """

    candidate: Candidate
    features: Floats32
    annotations: Annotations
    splits: Sequence[tuple[Rows, Rows]]
    seed: int
    folder: Path | None = None
    owner: str = ""
    consensus: Indices | None = None
    agreement: Mask | None = None
    networks: NetworkCache = dataclasses.field(default_factory=NetworkCache)
    repeat: int = 0
    stop: Clock = dataclasses.field(default_factory=Clock)
    progress: bool = False

    @property
    def name(self) -> str:
        """The candidate's name; that of further fits has a number."""
        if self.repeat:
            return f"{self.candidate.name}-{self.repeat + 1}"
        return self.candidate.name

    def make(self) -> Any:
        """Returns the candidate's unfitted estimator, behind TF-IDF if features are texts."""
        estimator = self.candidate.make((self.seed + MEMBER_SEEDS * self.repeat) % 2**31)
        if is_text(self.features):
            return TextClassifier(estimator=estimator, seed=self.seed)
        return estimator

    @property
    def strengths(self) -> str:
        """The parameter that has a regression's regularisation strengths."""
        if is_text(self.features):
            return "estimator__Cs"
        return "Cs"

    def again(self, repeat: int) -> Task:
        """Returns the task of a further fit, with networks of its own."""
        return dataclasses.replace(self, repeat=repeat, networks=NetworkCache(), agreement=None)

    def run(self) -> Run:
        """Returns the `Run` of the task's fits."""
        return Run(checkpoints=self.folder, progress=False, stop=self.stop, owner=self.owner)

    def shared_networks(self, estimator: Estimator) -> contextlib.AbstractContextManager[object]:
        """Returns a context in which the estimator's fits use the task's compiled networks."""
        context: Any = getattr(estimator, "reused", contextlib.nullcontext)
        return context(self.networks)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a task.

    Attributes:
        name: the candidate's.
        seconds: the duration of a cross-validation.
        probabilities: `[N, C]`, each row from the fold that held it out, NaN if none did; None if
            the candidate failed or was hopeless.
        strength: the regularisation of a regression, chosen in the first fold, or None.
        reason: why there are no probabilities, or "".
        error: the exception that is the reason, or None.
        estimator: fitted to all rows; None of a cross-validation.
    """

    name: str
    seconds: float = 0.0
    probabilities: Floats | None = None
    strength: float | None = None
    reason: str = ""
    error: Exception | None = None
    estimator: Estimator = None


def held_out(task: Task) -> Outcome:
    """Returns a candidate's predictions for each row, by a fit without that row."""
    start = time.perf_counter()
    outcome = Outcome(task.name)
    try:
        estimator = task.make()
        with task.shared_networks(estimator):
            for fold in range(len(task.splits)):
                outcome = _with_fold(task, estimator, fold, outcome)
                if fold == 0 and task.agreement is not None:
                    _require_hope(task, outcome, task.agreement)
    except OSError:
        raise
    except Exception as error:  # one candidate's failure is a reason to leave it out
        outcome = Outcome(task.name, reason=one_line(error) or type(error).__name__, error=error)
    if task.features.nbytes > MOST_KEPT:
        task.networks.clear()
    return dataclasses.replace(outcome, seconds=time.perf_counter() - start)


def _with_fold(task: Task, estimator: Estimator, fold: int, earlier: Outcome) -> Outcome:
    """Returns the outcome of the earlier folds with the predictions of one more."""
    run = task.run()
    run.raise_if_stopped()
    train, test = task.splits[fold]

    def predict() -> Fields:
        stage = run.stage(f"{task.name}-{fold}")
        estimator.fit(task.features[train], task.annotations[train], run=stage)
        probabilities = estimator.predict_proba(task.features[test])
        arrays = {"probabilities": np.asarray(probabilities, np.float64)}
        head = getattr(estimator, "head_", None)
        if head is not None and task.strengths in estimator.get_params():
            arrays["strength"] = np.array(head.C_)
        return arrays

    arrays = run.cached(f"cv-{task.name}-{fold}", predict)
    probabilities = earlier.probabilities
    if probabilities is None:
        probabilities = np.full((len(task.features), arrays["probabilities"].shape[1]), np.nan)
    probabilities[test] = arrays["probabilities"]
    strength = earlier.strength
    if strength is None and "strength" in arrays:
        # A cross-validation within each fold would cost ten times the fit.
        strength = float(arrays["strength"])
        estimator.set_params(**{task.strengths: (strength,)})
    return Outcome(task.name, probabilities=probabilities, strength=strength)


def _require_hope(task: Task, outcome: Outcome, agreement: Mask) -> None:
    """Raises RuntimeError if a candidate is not worth its other folds after the first one."""
    rows = task.splits[0][1]
    if task.consensus is None or outcome.probabilities is None or len(rows) < 2:
        return
    agrees = outcome.probabilities[rows].argmax(axis=1) == task.consensus[rows]
    difference = agrees.astype(np.float64) - agreement[rows]
    error = float(difference.std(ddof=1)) / np.sqrt(len(rows))
    if difference.mean() + ERRORS * error <= -HOPELESS:
        raise RuntimeError(
            f"after one fold it agreed with {agrees.mean():.0%} of the consensus labels, and the"
            f" baseline with {agreement[rows].mean():.0%}"
        )


def fitted(task: Task) -> Outcome:
    """Returns a candidate that is fitted to all rows."""
    estimator = task.make()
    with task.shared_networks(estimator):
        run = task.run().stage(f"final-{task.name}")
        estimator.fit(task.features, task.annotations, run=run)
    return Outcome(task.name, estimator=estimator)


def outcomes(
    function: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    jobs: int | None = None,
    action: str = "",
) -> dict[str, Outcome]:
    """Returns the outcomes of tasks by name, in the order of the tasks.

    Args:
        function: `held_out` or `fitted`.
        tasks: its arguments.
        jobs: see `side_by_side`.
        action: what the progress bar says is done; without it there is no bar.
    """
    hidden: bool | None = True
    if action and any(task.progress for task in tasks):
        hidden = None  # unless stderr is a terminal
    working = side_by_side(lambda task: task.stop.run(function, task), tasks, jobs)
    bar = tqdm(working, f"auto: {action}", len(tasks), disable=hidden)
    completed = by_name(bar)
    return {task.name: completed[task.name] for task in tasks}


def side_by_side(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int | None = None
) -> Iterator[Result]:
    """Yields results as they are completed by threads, without warnings of our own.

    More processes would each import TensorFlow, for seconds, and pass their models on by file.
    Threads do not block each other within TensorFlow's compiled steps.

    Args:
        function: `held_out` or `fitted`.
        tasks: its arguments.
        jobs: number of threads; None for one per core.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        cores = len(os.sched_getaffinity(0))
    jobs = max(1, min(jobs or cores, len(tasks)))

    def unwarned(task: Task) -> Result:
        with quietly():
            return function(task)

    with one_blas_thread():
        pool = ThreadPoolExecutor(jobs, "auto")
        try:
            for done in as_completed([pool.submit(unwarned, task) for task in tasks]):
                yield done.result()
        finally:
            for task in tasks:
                task.stop.set()
            pool.shutdown(cancel_futures=True)
            for task in tasks:
                task.stop.clear()
