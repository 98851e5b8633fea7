"""Candidates' cross-validations and last fits, side by side on all cores."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice.candidates import Candidate
from neucrowd_tf.errors import one_line
from neucrowd_tf.persistence import load
from neucrowd_tf.training.network_cache import NetworkCache
from neucrowd_tf.training.run import ANOTHER, Run, warn_damaged

Rows = NDArray[np.int64]
Result = TypeVar("Result")
Pair = tuple[NDArray[np.float32], NDArray[Any]]

# A candidate that after one fold is so many points of agreement with the consensus below the
# baseline, by more than so many standard errors, is not tried on the others.
HOPELESS, ERRORS = 0.05, 3.0
# Networks hold the features of their latest fit: with more bytes than this, each candidate's last
# fit compiles anew.
MOST_KEPT = 1 << 26


@dataclasses.dataclass(frozen=True)
class Task:
    """All that is needed to try a candidate.

    Attributes:
        candidate: what to fit.
        features: `[N, ...]`.
        annotations: of N instances.
        splits: rows to train on and rows held out, by fold; all folds train on as many rows, so
            that a compiled network serves them all.
        seed: the estimator's.
        folder: where results are kept that a killed run need not compute again, or None.
        owner: whose results these are (see `Run`).
        validation: features and labels that every fit is given, or None.
        consensus: `[N]` class codes, or None: what agrees with them far less than a regression
            after one fold is not tried further.
        agreement: `[N]` whether the baseline's prediction is the consensus, or None likewise.
        networks: what the candidate's fits compile, on all rows too.
        began: called with what is fitted, in words, as each fit begins; from any thread.
        stop: set where the search is to end.
    """

    candidate: Candidate
    features: NDArray[np.float32]
    annotations: Annotations
    splits: Sequence[tuple[Rows, Rows]]
    seed: int
    folder: Path | None = None
    owner: str = ""
    validation: Pair | None = None
    consensus: NDArray[np.int64] | None = None
    agreement: NDArray[np.bool_] | None = None
    networks: NetworkCache = dataclasses.field(default_factory=NetworkCache)
    began: Callable[[str], None] = lambda _: None
    stop: threading.Event | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a task.

    Attributes:
        name: the candidate's.
        probabilities: `[N, C]`, each row from the fold that held it out, NaN where none did; None
            where it failed or was hopeless.
        on_validation: `[M, C]` the folds' mean on validation data, or None.
        seconds: what it took.
        strength: the regularisation of a regression, chosen in the first fold, or None.
        reason: why there is nothing, or "".
        error: the exception, where that is why.
    """

    name: str
    probabilities: NDArray[np.float64] | None
    on_validation: NDArray[np.float64] | None
    seconds: float
    strength: float | None = None
    reason: str = ""
    error: Exception | None = None


def held_out(task: Task) -> Outcome:
    """Returns a candidate's predictions for each row by a fit that had not seen it."""
    began, found, on_validation = time.perf_counter(), None, []
    strength: float | None = None
    run = Run(checkpoints=task.folder, progress=False, stop=task.stop, owner=task.owner)
    try:
        estimator = task.candidate.make(task.seed)
        with _shared(task, estimator):
            for fold, (train, test) in enumerate(task.splits):
                run.go_on()
                task.began(f"{task.candidate.name}, fold {fold + 1} of {len(task.splits)}")
                arrays = run.cached(
                    f"cv-{task.candidate.name}-{fold}",
                    lambda fold=fold, train=train, test=test: _fold(  # type: ignore[misc]
                        task, estimator, train, test, run.stage(f"{task.candidate.name}-{fold}")
                    ),
                )
                if found is None:
                    classes = arrays["probabilities"].shape[1]
                    found = np.full((len(task.features), classes), np.nan)
                found[test] = arrays["probabilities"]
                if strength is None and "strength" in arrays:
                    # A cross-validation within each fold would cost ten times the fit.
                    strength = float(arrays["strength"])
                    estimator.set_params(Cs=(strength,))
                if task.validation is not None:
                    on_validation.append(arrays["validation"])
                reason = _hopeless(task, found, test) if fold == 0 else ""
                if reason:
                    return _nothing(task, began, reason)
    except OSError:
        raise
    # one candidate's failure is a reason to leave it out, not to recommend nothing
    except Exception as error:
        return _nothing(task, began, one_line(error) or type(error).__name__, error)
    if task.features.nbytes > MOST_KEPT:
        task.networks.clear()
    mean = np.mean(on_validation, axis=0) if on_validation else None
    return Outcome(task.candidate.name, found, mean, time.perf_counter() - began, strength)


def _shared(task: Task, estimator: Any) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which the estimator's fits share compiled networks with the task's."""
    if not hasattr(estimator, "reused"):
        return contextlib.nullcontext()
    shared: contextlib.AbstractContextManager[None] = estimator.reused(task.networks)
    return shared


def _nothing(task: Task, began: float, reason: str, error: Exception | None = None) -> Outcome:
    seconds = time.perf_counter() - began
    return Outcome(task.candidate.name, None, None, seconds, None, reason, error)


def _fold(task: Task, estimator: Any, train: Rows, test: Rows, run: Run) -> dict[str, Any]:
    estimator.fit(task.features[train], task.annotations[train], task.validation, run=run)
    found = {"probabilities": np.asarray(estimator.predict_proba(task.features[test]), np.float64)}
    if task.validation is not None:
        found["validation"] = np.asarray(estimator.predict_proba(task.validation[0]), np.float64)
    head = getattr(estimator, "head_", None)
    if head is not None and "Cs" in estimator.get_params(deep=False):
        found["strength"] = np.array(head.C_)
    return found


def _hopeless(task: Task, probabilities: NDArray[Any], rows: Rows) -> str:
    """Returns why a candidate is not worth its other folds, or nothing."""
    if task.agreement is None or task.consensus is None or len(rows) < 2:
        return ""
    mine = probabilities[rows].argmax(axis=1) == task.consensus[rows]
    difference = mine.astype(np.float64) - task.agreement[rows]
    error = float(difference.std(ddof=1)) / np.sqrt(len(rows))
    if difference.mean() + ERRORS * error > -HOPELESS:
        return ""
    return (
        f"after one fold it agreed with {100 * mine.mean():.0f} % of the consensus labels, the"
        f" baseline with {100 * task.agreement[rows].mean():.0f} %"
    )


def kept(task: Task) -> Any:
    """Returns the estimator that a killed run fitted on all rows and saved, or None; a damaged one,
    or another run's, is told of and removed.
    """
    folder = _saved(task)
    if folder is None or not folder.exists():
        return None
    received = ANOTHER
    try:
        found = load(folder)
        if vars(found).pop("owner_", None) == task.owner:
            return found
    # a damaged file of Keras ends in errors of many kinds
    except Exception:
        received = "a damaged one"
    warn_damaged(folder, received)
    shutil.rmtree(folder)
    return None


def fitted(task: Task) -> tuple[str, Any]:
    """Returns a candidate's name and the candidate fitted on all rows, which is saved for a killed
    run.
    """
    name = task.candidate.name
    run = Run(checkpoints=task.folder, progress=False, stop=task.stop, owner=task.owner)
    run = run.stage(f"final-{name}")
    task.began(name)
    estimator = task.candidate.make(task.seed)
    with _shared(task, estimator):
        estimator.fit(task.features, task.annotations, task.validation, run=run)
    folder = _saved(task)
    if folder is not None:
        estimator.owner_ = task.owner  # kept with it
        estimator.save(folder)
        del estimator.owner_
    return name, estimator


def _saved(task: Task) -> Path | None:
    return None if task.folder is None else task.folder / f"fitted-{task.candidate.name}"


# --------------------------------------------------------------------------- side by side


def cores() -> int:
    """Returns how many cores this process may use."""
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1


def side_by_side(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int,
    began: Callable[[str], None] = lambda _: None,
) -> Iterator[Result]:
    """Yields results as they come, from `jobs` threads, without warnings.

    A process more would import TensorFlow anew, for seconds, and hand its models over by file;
    within its compiled steps a thread holds up no other.

    Args:
        function: `held_out` or `fitted`.
        tasks: what it is called with.
        jobs: how many threads.
        began: called with what is fitted, in words, as each fit begins; by any thread.
    """
    # The longest first: the last to begin should not be the last to end.
    stop = threading.Event()
    order = [dataclasses.replace(task, began=began, stop=stop) for task in tasks]
    order.sort(key=lambda task: -task.candidate.cost)
    # Both are of the whole process, so no thread may set them back under another.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if jobs == 1 or len(tasks) == 1:
            yield from map(function, order)
            return
        import keras  # noqa: F401  (by one thread)

        pool = ThreadPoolExecutor(jobs, "auto")
        try:
            for done in as_completed([pool.submit(function, task) for task in order]):
                yield done.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class Progress:
    """Which candidates are done, how far that is and how long it took: a bar on a terminal, a line
    a candidate elsewhere.

    Args:
        shown: False for neither.
        total: how many candidates there are.
        what: what is done with them.
    """

    def __init__(self, shown: bool, total: int, what: str) -> None:
        self._total, self._what, self._done = total, what, 0
        self._began = time.perf_counter()
        terminal = sys.stderr.isatty()
        self._lines = shown and not terminal
        self._bar = tqdm(total=total, desc=f"auto: {what}", disable=not (shown and terminal))

    def begin(self, names: Sequence[str], jobs: int) -> None:
        """Says what is to be done, before the first of it is."""
        if self._lines:
            where = f", {jobs} at a time" if jobs > 1 else ""
            sys.stderr.write(f"auto: {self._what}s to try: {', '.join(names)}{where}\n")
            sys.stderr.flush()

    def began(self, what: str) -> None:
        """Says on the bar what has begun."""
        self._bar.set_postfix_str(what)

    def done(self, name: str, note: str = "") -> None:
        """Counts one."""
        self._done += 1
        self._bar.update()
        if self._lines:
            spent = time.perf_counter() - self._began
            left = spent / self._done * (self._total - self._done)
            sys.stderr.write(
                f"auto: {self._what} {self._done} of {self._total}: {name}{note},"
                f" {spent:.0f} s so far, about {left:.0f} s to go\n"
            )
            sys.stderr.flush()

    def close(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()
