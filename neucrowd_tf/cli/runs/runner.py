"""All runs of a command: which are left to make, and the loop that makes them."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.cli.runs import executors, plugins, process
from neucrowd_tf.cli.runs.execute import FATAL, Outcome, accompany, execute
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.results import (
    FAILED,
    OK,
    SKIPPED,
    Row,
    add_rows,
    check_tables,
    make_row,
    read_results,
)
from neucrowd_tf.cli.runs.work import RunKey, Work
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Fields, Texts
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.evaluation.cross_validation import fold_dataset
from neucrowd_tf.io.run_files import FINISHED, Config, read_config

Report = Callable[[str], None]


def works(options: Options, progress: bool | None = None, label: str = "") -> list[Work]:
    """Returns every run that the flags ask for; runs that share data are neighbours.

    Raises:
        UsageError: an unknown method, dataset or hyper-parameter.
    """
    for name in options.dataset:
        entry = registry.entry("dataset", name)
        plugins.check_dataset_options(entry, dataset_options(options, name))
    for name in options.baseline:
        registry.entry("method", name, "--baseline")
    hparams = plugins.hyper_parameters(options.method, options.hparam)
    spaces = plugins.hyper_parameters(options.method, options.space, "space")
    folds: Iterable[tuple[int | None, int | None]] = [(None, None)]
    if options.evaluation == "cv":
        folds = list(product(range(options.repeats), range(options.folds)))
    asked = []
    runs = product(options.dataset, options.seeds, folds, options.method)
    for dataset, seed, fold, method in runs:
        key = RunKey(dataset, method, seed, *fold)
        asked.append(Work(key, hparams[method], options, progress, label, spaces[method]))
    return asked


def dataset_options(options: Options, name: str) -> Fields:
    """Returns the arguments of a dataset's loader that the flags give."""
    flags = {}
    if name == "table":
        flags = {**options.tables, **options.layout}
    return flags | dict(options.dataset_option)


# This process's last dataset, which all methods of a seed share, with its key.
_loaded: list[tuple[Any, CrowdDataset]] = []


def load(work: Work) -> CrowdDataset:
    """Returns the dataset of a run, with cross-validation that of its fold."""
    options = work.options
    key = work.key
    seed = work.key.seed
    simulated = registry.entry("dataset", key.dataset).simulated
    which = (options, key.dataset, seed if simulated else 0)
    if not _loaded or _loaded[0][0] != which:
        _loaded.clear()  # before the new one is read
        _loaded.append((which, _read(*which)))
    dataset = _loaded[0][1]
    if key.fold is not None and key.repeat is not None:
        dataset = fold_dataset(
            dataset,
            repeat=key.repeat,
            fold=key.fold,
            folds=options.folds,
            seed=seed,
            hold_out=not options.drop_validation,
        )
    return options.applied(dataset, seed)


def _read(options: Options, name: str, seed: int) -> CrowdDataset:
    return registry.dataset(name).load(options.data_dir, seed, **dataset_options(options, name))


def finished_runs(output_dir: Path, dataset: str) -> list[tuple[Path, Config]]:
    """Returns the folders and configurations of a dataset's finished runs, of folds the first."""
    runs: dict[tuple[str, tuple[str, ...]], Path] = {}
    for part in ("", "fold-*/"):
        for path in sorted((output_dir / dataset).glob(f"*/seed-*/{part}{FINISHED}")):
            seed = path.relative_to(output_dir / dataset).parts[:2]
            runs.setdefault((part, seed), path.parent)
    return [(folder, read_config(folder)) for folder in runs.values()]


def plan(options: Options, works: Iterable[Work]) -> tuple[list[Work], list[Work]]:
    """Sorts runs into finished ones and ones to make.

    Returns:
        the finished runs, and the runs to make: also finished ones without their export.

    Raises:
        UsageError: a finished run without --resume, or a run that began with other settings.
        DataError: the output folder's results.csv or summary.csv is another file.
    """
    check_tables(options.output_dir)
    finished = list[Work]()
    to_run = list[Work]()
    others = functools.cache(functools.partial(finished_runs, options.output_dir))
    for work in works:
        work.check()
        work.check_beside(others(work.key.dataset))
        (finished if work.complete() else to_run).append(work)
    return finished, to_run


def follow(options: Options, works: Iterable[Work], report: Report) -> dict[RunKey, Outcome]:
    """Trains together with the first worker of --distribute=multi_worker and writes nothing."""
    outcomes = {}
    for work in plan(options, works)[1]:
        strategy = process.start(options)
        outcomes[work.key] = outcome = accompany(work, load(work), strategy)
        report(f"{work.key}: {outcome.status}: {outcome.reason}")
    return outcomes


def keep_finished(finished: Sequence[Work]) -> dict[RunKey, Outcome]:
    """Adds finished runs to results.csv, which a killed command may not have done."""
    outcomes = {}
    rows = []
    for work in finished:
        metrics = work.metrics().content
        outcomes[work.key] = Outcome(OK, metrics)
        rows.append(make_row(work.key, OK, metrics))
    if finished:
        options = finished[0].options
        add_rows(options.output_dir, rows, options.baseline)
    return outcomes


def run_all(
    options: Options, works: Sequence[Work], report: Report, modules: Texts = ()
) -> tuple[list[Row], dict[RunKey, Outcome]]:
    """Makes the runs that are left and writes results.csv and summary.csv after each.

    Args:
        options: the command's.
        works: all runs of the command.
        report: called with a line after each run.
        modules: what other processes import to register all methods and datasets.

    Returns:
        the rows of results.csv (earlier commands' too), and how each run ended.
    """
    finished, left = plan(options, works)
    alone = len({(work.key.dataset, work.key.method) for work in works}) == 1
    outcomes = keep_finished(finished)
    for work, outcome in make_all(left, options, report, modules, alone=alone):
        outcomes[work.key] = outcome
    return read_results(options.output_dir / "results.csv"), outcomes


def make_all(
    works: Sequence[Work],
    options: Options,
    report: Report,
    modules: Texts = (),
    *,
    alone: bool = False,
    keep_going: bool = False,
) -> Iterator[tuple[Work, Outcome]]:
    """Makes runs, `options.jobs` at the same time, and yields each as it ends.

    Args:
        works: the runs to make.
        options: the command's.
        report: called with a line after each run.
        modules: what other processes import.
        alone: whether there is one method and one dataset; then an error that the user can fix ends
            the command.
        keep_going: whether errors in data or flags are failed runs; otherwise they end the command.

    Raises:
        UsageError, DataError: data or flags that no run can use, without `keep_going`.
        OSError: the disk is full, or the folder cannot be written.
    """
    if not works:
        return
    _loaded.clear()
    executor: Any = None  # this process
    if options.scheduler is not None:
        executor = executors.Cluster(options.scheduler, modules)
        works = list(map(Work.begun, works))
    elif options.jobs > 1 and (len(works) > 1 or keep_going):
        executor = executors.Processes(min(options.jobs, len(works)), modules)
    pace = Pace(works, 1 if executor is None else executor.width)
    announced: set[str] = set()
    with contextlib.closing(executor) if executor else contextlib.nullcontext():
        for done, (work, outcome) in enumerate(_ended(works, executor, keep_going), 1):
            if outcome.status != OK and outcome.fixable and alone:
                work.forget()
                raise UsageError(outcome.reason)
            changes = (outcome.metrics or {}).get("changes", "")
            if changes and work.key.method not in announced:
                announced.add(work.key.method)
                report(f"{work.key.method}: our changes to the paper: {changes}")
            row = make_row(work.key, outcome.status, outcome.metrics)
            add_rows(work.options.output_dir, [row], work.options.baseline)
            pace.ended(work, outcome)
            left = f", {pace.left()}" * keep_going
            report(f"[{done}/{len(works)}{left}] {work.label}{work.key}: {describe(outcome)}")
            yield work, outcome
    _loaded.clear()


class Pace:
    """How long the runs that are left may take: as those of their method on their dataset."""

    def __init__(self, works: Iterable[Work], width: int) -> None:
        """Starts.

        Args:
            works: all runs.
            width: how many are made at the same time.
        """
        self._open = Counter(map(self._kind, works))
        self._seconds: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        self._width = width

    @staticmethod
    def _kind(work: Work) -> tuple[str, ...]:
        return work.label, work.key.dataset, work.key.method

    def ended(self, work: Work, outcome: Outcome) -> None:
        """Counts a run; one that failed takes no time."""
        timings = (outcome.metrics or {}).get("timings", {})
        kind = self._kind(work)
        self._open[kind] -= 1
        spent = timings.get("tune_seconds", 0.0) + timings.get("fit_seconds", 0.0)
        self._seconds[kind].append(spent)

    def left(self) -> str:
        """Returns the minutes left, and how many runs have no earlier one to judge by."""
        seconds = 0.0
        unknown = 0
        for kind, count in self._open.items():
            if kind in self._seconds:
                seconds += count * float(np.mean(self._seconds[kind]))
            else:
                unknown += count
        if not seconds and unknown:
            return "time left not known yet"
        text = f"about {seconds / self._width / 60:.0f} min left"
        if unknown:
            text += f" and {unknown} run{'s' if unknown > 1 else ''} of other methods"
        return text


def _ended(
    works: Iterable[Work], executor: Any, keep_going: bool
) -> Iterator[tuple[Work, Outcome]]:
    """Keeps the executor busy, or makes runs in this process, and yields each as it ends."""
    if executor is None:
        for work in works:
            yield work, _outcome(functools.partial(make_run, work), keep_going)
        return
    waiting = iter(works)
    running: dict[Any, Work] = {}
    while True:
        for work in islice(waiting, executor.width - len(running)):
            running[executor.submit(make_run, work)] = work
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), _outcome(future.result, keep_going)


def _outcome(result: Callable[[], Outcome], keep_going: bool) -> Outcome:
    try:
        return result()
    except Exception as error:
        fatal = isinstance(error, OSError) and error.errno in FATAL
        fixable = isinstance(error, DataError | UsageError | OSError) and not fatal
        if not executors.died(error) and not (keep_going and fixable):
            raise
        return Outcome(FAILED, reason=one_line(error))


def make_run(work: Work) -> Outcome:
    """Makes one run, or the missing files of a finished one, in this process."""
    strategy = None
    if work.needs_tensorflow():
        strategy = process.start(work.options)
    else:
        process.start_without_tensorflow(work.options)
    return execute(work, load(work), strategy)


def describe(outcome: Outcome) -> str:
    """Returns how a run ended, in a line."""
    if outcome.status != OK or outcome.metrics is None:
        return f"{outcome.status}: {outcome.reason}"
    test = outcome.metrics["test"]
    seconds = outcome.metrics["timings"]["fit_seconds"]
    recommended = outcome.metrics.get("recommendation")
    interval = ""
    if "accuracy_low" in test:
        interval = f" [{test['accuracy_low']:.3f}, {test['accuracy_high']:.3f}] (expected, 80%)"
    shown = []
    for name in ("accuracy", "auc"):
        # The recommendation has an accuracy of its own, expected from all items.
        if test.get(name) is not None and not (interval and recommended):
            shown.append(f"{name} {test[name]:.3f}{interval * (name == 'accuracy')}")
    if outcome.metrics.get("trained") is False:
        shown.append("did not train (validation AUC as after one step)")
    line = ", ".join([*shown, f"{seconds:.1f} s"])
    if recommended is None:
        return line
    return f"{line}\n{recommended['text']}"


def exit_code(outcomes: dict[RunKey, Outcome]) -> int:
    """Returns 1 if a run failed, 2 if all were skipped, otherwise 0."""
    states = {outcome.status for outcome in outcomes.values()}
    if FAILED in states:
        return 1
    return 2 * (states == {SKIPPED})
