"""All runs of one command: which there are, which are finished already, the one loop that makes
the others, and how the command ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice, product
from typing import Any

from tqdm import tqdm

from neucrowd_tf import registry
from neucrowd_tf.annotations.simulation import remove_annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import (
    DataError,
    IdentitiesError,
    UnsupportedDataError,
    UsageError,
    one_line,
)
from neucrowd_tf.evaluation.cross_validation import fold_dataset
from neucrowd_tf.harness import cluster, plugins, pool, process
from neucrowd_tf.harness.execute import (
    FATAL,
    Outcome,
    accompany,
    check_supported,
    complete,
    execute,
    lacks,
)
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import FAILED, OK, SKIPPED, Row, add_rows, make_row, read_results
from neucrowd_tf.harness.run_config import Task, settings
from neucrowd_tf.harness.run_folder import RunFolder, RunKey

Report = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Work:
    """A run that is to be made, with all that a process needs for it.

    Attributes:
        options: the command's.
        only_complete: whether only what a finished run lacks is to be made.
        label: what to say before the run's name.
    """

    task: Task
    options: Options
    only_complete: bool = False
    label: str = ""

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.task.key.folder(self.options.output_dir, self.options.folds))

    def again(self) -> Work:
        """Returns the same run for another process, after the first one died."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, resume=True))


def tasks(options: Options, progress: bool | None = None) -> list[Task]:
    """Returns every run the flags ask for, those that share data beside each other.

    Raises:
        UsageError: an unknown method, dataset or hyper-parameter.
    """
    for name in options.dataset:
        plugins.check_dataset_options(registry.dataset(name), dataset_flags(options, name))
    hparams = plugins.hyper_parameters(options.method, options.hparam)
    folds: Iterable[tuple[int | None, int | None]] = [(None, None)]
    if options.evaluation == "cv":
        folds = list(product(range(options.repeats), range(options.folds)))
    return [
        Task(RunKey(dataset, method, seed, repeat, fold), hparams[method], progress)
        for dataset in options.dataset
        for seed in options.seeds
        for repeat, fold in folds
        for method in options.method
    ]


def dataset_flags(options: Options, name: str) -> dict[str, Any]:
    """Returns the options that the flags give to a dataset's loader."""
    given: dict[str, Any] = {}
    if name == "table":
        given = {**options.table, **options.layout}
    return given | dict(options.dataset_option)


class Data:
    """Loads datasets and their folds; keeps the last of each, which all methods of a seed share."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._kept: dict[str, tuple[tuple[Any, ...], CrowdDataset]] = {}

    def load(self, key: RunKey) -> CrowdDataset:
        """Returns the dataset of a run (of its fold, with cross-validation)."""
        options = self.options
        entry = registry.dataset(key.dataset)
        seed = key.seed if options.data_seed is None else options.data_seed
        drawn = entry.simulated or options.keep_annotations is not None
        draw = seed if drawn else 0
        whole = self._get("dataset", (key.dataset, draw), lambda: self._read(key.dataset, draw))
        if key.fold is None or key.repeat is None:
            return whole
        repeat, fold = key.repeat, key.fold
        return self._get(
            "fold",
            (key.dataset, draw, seed, repeat, fold),
            lambda: fold_dataset(whole, repeat=repeat, fold=fold, folds=options.folds, seed=seed),
        )

    def _read(self, name: str, seed: int) -> CrowdDataset:
        options = self.options
        whole = registry.dataset(name).load(options.data_dir, seed, **dataset_flags(options, name))
        if options.keep_annotations is None:
            return whole
        left = remove_annotations(
            whole.annotations, options.keep_annotations, seed, at_least_one=options.keep_one
        )
        return whole.replace(annotations=left)

    def _get(
        self, what: str, which: tuple[Any, ...], load: Callable[[], CrowdDataset]
    ) -> CrowdDataset:
        if what not in self._kept or self._kept[what][0] != which:
            self._kept.pop(what, None)  # the old one is released before the new one is read
            self._kept[what] = which, load()
        return self._kept[what][1]


@dataclasses.dataclass
class Plan:
    """What is left to do.

    Attributes:
        finished: runs that are there; some may lack the SavedModel, or a file that an earlier
            version did not write.
        works: what is left: the runs, and what finished ones lack.
    """

    finished: list[Work]
    works: list[Work]


def plan(options: Options, tasks: Iterable[Task], label: str = "") -> Plan:
    """Sorts runs by what is left to do; touches nothing.

    Raises:
        UsageError: a finished run without --resume, or one that was started with other settings.
        DataError: an output folder whose results.csv is something else.
    """
    read_results(options.output_dir / "results.csv")
    finished, to_run, to_complete = [], [], []
    for task in tasks:
        work = Work(task, options, label=label)
        folder = work.folder
        if folder.finished and not options.resume:
            folder.refuse()
        if (folder.started or folder.finished) and options.resume:
            folder.check_settings(settings(task, options))
        if not folder.finished:
            to_run.append(work)
            continue
        finished.append(work)
        if lacks(folder, options):
            to_complete.append(dataclasses.replace(work, only_complete=True))
    return Plan(finished, to_run + to_complete)


def check_writable(options: Options) -> None:
    """Raises UsageError when nothing can be written to the output folder."""
    folder = options.output_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(b"x")
    except OSError as error:
        raise UsageError(
            f"--output_dir: expected a folder that can be written, received {folder}"
            f" ({error.strerror})"
        ) from None


def follow(options: Options, tasks: Iterable[Task], report: Report) -> dict[RunKey, Outcome]:
    """Trains along with the first worker of --distribute=multi_worker, run by run, and writes
    nothing.
    """
    outcomes = {}
    for work in plan(options, tasks).works:
        strategy = process.start(options)
        dataset = _data(options).load(work.task.key)
        outcome = accompany(work.task, options, dataset, strategy)
        report(f"{work.task.key}: {outcome.status}: {outcome.reason}")
        outcomes[work.task.key] = outcome
    return outcomes


def keep_finished(finished: Iterable[Work]) -> dict[RunKey, Outcome]:
    """Puts finished runs into results.csv, where a killed command did not come to it, and returns
    how they ended.
    """
    outcomes = {work.task.key: Outcome(OK, work.folder.metrics()) for work in finished}
    rows = [make_row(key, OK, outcome.metrics) for key, outcome in outcomes.items()]
    for work in islice(finished, 1):
        add_rows(work.options.output_dir, rows)
    return outcomes


def run_all(
    options: Options, tasks: list[Task], report: Report, modules: Sequence[str] = ()
) -> tuple[list[Row], dict[RunKey, Outcome]]:
    """Makes all runs of the flags that are left, and writes results.csv and summary.csv after each.

    Args:
        report: called with a line after each run.
        modules: what worker processes have to import to know all methods and datasets.

    Returns:
        the rows of results.csv (earlier commands' too), and how each run ended.
    """
    left = plan(options, tasks)
    check_writable(options)
    alone = len({(task.key.dataset, task.key.method) for task in tasks}) == 1
    outcomes = keep_finished(left.finished)
    for work, outcome in make_all(left.works, options, report, modules, alone=alone):
        outcomes[work.task.key] = outcome
    return read_results(options.output_dir / "results.csv"), outcomes


def make_all(
    works: Sequence[Work],
    options: Options,
    report: Report,
    modules: Sequence[str] = (),
    *,
    alone: bool = False,
    keep_going: bool = False,
) -> Iterator[tuple[Work, Outcome]]:
    """The run loop: makes runs, `options.jobs` at once, writes each one's row, tells of it and
    yields it as it ends.

    Args:
        alone: there is but one method and dataset: what the user can mend ends the command.
        keep_going: what no run of this command can go on with (data, flags) makes failed runs.

    Raises:
        UsageError, DataError: what no run can go on with, without `keep_going`.
        OSError: the disk is full, or the folder cannot be written.
    """
    if not works:
        return
    _loaded.clear()
    executor: pool.Executor = pool.Here()
    if options.scheduler is not None:
        executor = cluster.Cluster(options.scheduler, modules)
    elif options.jobs > 1 and (len(works) > 1 or keep_going):
        executor = pool.Processes(min(options.jobs, len(works)), modules)
    elif not keep_going:
        _check_before_tensorflow(works[0], alone)
    began, quiet = time.monotonic(), not _elsewhere(options) and not keep_going
    bar = tqdm(
        total=len(works), unit="run", file=sys.stderr, leave=False, disable=True if quiet else None
    )
    with contextlib.closing(executor), bar:
        for done, (work, outcome) in enumerate(_ended(works, executor, keep_going), 1):
            if outcome.status != OK and outcome.mendable and alone:
                work.folder.discard()
                raise UsageError(outcome.reason)
            row = make_row(work.task.key, outcome.status, outcome.metrics)
            add_rows(work.options.output_dir, [row])
            minutes = (time.monotonic() - began) / done * (len(works) - done) / 60
            left = f", about {minutes:.0f} min left" if keep_going else ""
            bar.clear()
            report(f"[{done}/{len(works)}{left}] {work.label}{work.task.key}: {describe(outcome)}")
            bar.update()
            yield work, outcome
    _loaded.clear()


def _ended(
    works: Iterable[Work], executor: pool.Executor, keep_going: bool
) -> Iterator[tuple[Work, Outcome]]:
    """Keeps the executor at work, and yields each run as it ends."""
    waiting = iter(works)
    running: dict[Any, Work] = {}
    while True:
        for work in islice(waiting, executor.width - len(running)):
            running[executor.submit(make_run, work)] = work
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), _outcome(future, keep_going)


def _outcome(future: Future[Outcome], keep_going: bool) -> Outcome:
    try:
        return future.result()
    except pool.WorkerDied as error:
        return Outcome(FAILED, reason=str(error))
    except (DataError, UsageError, OSError) as error:
        if not keep_going or (isinstance(error, OSError) and error.errno in FATAL):
            raise
        return Outcome(FAILED, reason=one_line(error))


def _check_before_tensorflow(work: Work, alone: bool) -> None:
    """Tells of files that are missing or wrong before TensorFlow's slow import.

    Raises:
        UsageError: the only method asked for cannot run on the only dataset.
    """
    key = work.task.key
    if registry.dataset(key.dataset).simulated and key.dataset != "table":
        return
    dataset = _data(work.options).load(key)
    try:
        if alone:
            check_supported(registry.method(key.method), dataset)
    except (IdentitiesError, UnsupportedDataError) as error:
        raise UsageError(str(error)) from None


_loaded: list[Data] = []


def _data(options: Options) -> Data:
    """Returns this process's datasets of a command; those of one command are kept."""
    if not _loaded or _loaded[0].options != options:
        _loaded[:] = [Data(options)]
    return _loaded[0]


def make_run(work: Work) -> Outcome:
    """Makes one run in this process, or only what a finished one lacks."""
    task, options = work.task, work.options
    strategy = process.start(options)
    dataset = _data(options).load(task.key)
    if not work.only_complete:
        return execute(task, options, dataset, strategy)
    complete(task, options, dataset, strategy)
    return Outcome(OK, work.folder.metrics())


def describe(outcome: Outcome) -> str:
    """Returns how a run ended, in a line."""
    if outcome.status != OK or outcome.metrics is None:
        return f"{outcome.status}: {outcome.reason}"
    test, seconds = outcome.metrics["test"], outcome.metrics["timings"]["fit_seconds"]
    shown = [
        f"{name} {test[name]:.3f}" for name in ("accuracy", "auc") if test.get(name) is not None
    ]
    line = ", ".join([*shown, f"{seconds:.1f} s"])
    recommended = outcome.metrics.get("recommendation")
    return line if recommended is None else f"{line}\n{recommended['text']}"


def exit_code(outcomes: dict[RunKey, Outcome]) -> int:
    """Returns 0 when every run ended well or was skipped among others, 2 when nothing could run, 1
    when some failed.
    """
    states = [outcome.status for outcome in outcomes.values()]
    if FAILED in states:
        return 1
    return 2 if states and all(state == SKIPPED for state in states) else 0


def _elsewhere(options: Options) -> bool:
    """Whether other processes make the runs."""
    return options.jobs > 1 or options.scheduler is not None


def progress_wanted(options: Options) -> bool | None:
    """Whether to show the bars of each fit: on a terminal, when there is one process to show
    them."""
    return not _elsewhere(options) and sys.stdout.isatty() and sys.stderr.isatty()
