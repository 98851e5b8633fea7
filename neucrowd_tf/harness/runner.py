"""All runs of one command: which there are, which are finished already, the one loop that makes
the others, and how the command ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice, product
from pathlib import Path
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
from neucrowd_tf.harness.execute import FATAL, Outcome, accompany, check_supported, execute, lacks
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import (
    FAILED,
    OK,
    SKIPPED,
    Row,
    add_rows,
    check_tables,
    make_row,
    read_results,
)
from neucrowd_tf.harness.run_folder import RunKey, check_place
from neucrowd_tf.harness.work import Work
from neucrowd_tf.io.command_line import check_apart
from neucrowd_tf.io.run_files import FILES, FOLDERS
from neucrowd_tf.stopping import check_stopped

Report = Callable[[str], None]


def works(options: Options, progress: bool | None = None, label: str = "") -> list[Work]:
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
        Work(RunKey(dataset, method, seed, *fold), hparams[method], options, progress, label=label)
        for dataset, seed, fold, method in product(
            options.dataset, options.seeds, folds, options.method
        )
    ]


def dataset_flags(options: Options, name: str) -> dict[str, Any]:
    """Returns the options that the flags give to a dataset's loader."""
    given = {**options.table, **options.layout} if name == "table" else {}
    return given | dict(options.dataset_option)


# The last dataset that this process loaded and its last fold, and which these are: all methods of a
# seed share them.
_kept: dict[str, tuple[Any, CrowdDataset]] = {}


def load(work: Work) -> CrowdDataset:
    """Returns the dataset of a run (of its fold, with cross-validation)."""
    options, key, seed = work.options, work.key, work.data_seed
    drawn = registry.dataset(key.dataset).simulated or options.keep_annotations is not None
    which = (options, key.dataset, seed if drawn else 0)
    if "dataset" not in _kept or _kept["dataset"][0] != which:
        _kept.clear()  # the old one is released before the new one is read
        _kept["dataset"] = which, _read(*which)
    if key.fold is None or key.repeat is None:
        return _kept["dataset"][1]
    fold = {"repeat": key.repeat, "fold": key.fold, "folds": options.folds, "seed": seed}
    if "fold" not in _kept or _kept["fold"][0] != fold:
        _kept.pop("fold", None)
        _kept["fold"] = fold, fold_dataset(_kept["dataset"][1], **fold)
    return _kept["fold"][1]


def _read(options: Options, name: str, seed: int) -> CrowdDataset:
    whole = registry.dataset(name).load(options.data_dir, seed, **dataset_flags(options, name))
    if options.keep_annotations is None:
        return whole
    left = remove_annotations(
        whole.annotations, options.keep_annotations, seed, at_least_one=options.keep_one
    )
    return whole.replace(annotations=left)


def plan(options: Options, works: Iterable[Work]) -> tuple[list[Work], list[Work]]:
    """Sorts runs by what is left to do; touches nothing.

    Returns:
        the finished runs, and what is left: the others, then those finished ones that lack the
        SavedModel, or a file that an earlier version did not write.

    Raises:
        UsageError: a finished run without --resume, or one that was started with other settings.
        DataError: an output folder whose results.csv or summary.csv is something else.
    """
    check_place(options.output_dir / "summary.csv", folder=False)
    works = list(works)
    _check_inputs(options.output_dir, works)
    check_tables(options.output_dir)
    finished: list[Work] = []
    to_run: list[Work] = []
    for work in works:
        work.check()
        (finished if work.folder.finished else to_run).append(work)
    lacking = [dataclasses.replace(work, only_complete=True) for work in finished if lacks(work)]
    return finished, to_run + lacking


def _check_inputs(out: Path, works: Sequence[Work]) -> None:
    """Raises UsageError where runs would write what they read: what a killed run left is cleared
    before it is made again.
    """
    read: dict[str, Path | None] = {}
    for work in works:
        read |= {f"--{name}'s": path for name, path in work.files().items()}
    _check_names(out, ("results.csv", "summary.csv"), read)
    real = Path(os.path.realpath(out))
    if any(path and real in Path(os.path.realpath(path)).parents for path in read.values()):
        for work in works:
            _check_names(work.folder.path, (*FILES, *FOLDERS), read)


def _check_names(folder: Path, names: Iterable[str], read: Mapping[str, Path | None]) -> None:
    check_apart({f"--output_dir: {name}": folder / name for name in names}, read)


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


def follow(options: Options, works: Iterable[Work], report: Report) -> dict[RunKey, Outcome]:
    """Trains along with the first worker of --distribute=multi_worker, run by run, and writes
    nothing.
    """
    outcomes = {}
    for work in plan(options, works)[1]:
        strategy = process.start(options)
        outcomes[work.key] = outcome = accompany(work, load(work), strategy)
        report(f"{work.key}: {outcome.status}: {outcome.reason}")
    return outcomes


def keep_finished(finished: Sequence[Work]) -> dict[RunKey, Outcome]:
    """Puts finished runs into results.csv, where a killed command did not come to it, and returns
    how they ended.
    """
    outcomes = {work.key: Outcome(OK, work.folder.metrics()) for work in finished}
    if finished:
        rows = [make_row(key, OK, outcome.metrics) for key, outcome in outcomes.items()]
        add_rows(finished[0].options.output_dir, rows)
    return outcomes


def run_all(
    options: Options, works: Sequence[Work], report: Report, modules: Sequence[str] = ()
) -> tuple[list[Row], dict[RunKey, Outcome]]:
    """Makes all runs of the flags that are left, and writes results.csv and summary.csv after each.

    Args:
        report: called with a line after each run.
        modules: what worker processes have to import to know all methods and datasets.

    Returns:
        the rows of results.csv (earlier commands' too), and how each run ended.
    """
    finished, left = plan(options, works)
    check_writable(options)
    alone = len({(work.key.dataset, work.key.method) for work in works}) == 1
    outcomes = keep_finished(finished)
    for work, outcome in make_all(left, options, report, modules, alone=alone):
        outcomes[work.key] = outcome
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
    _kept.clear()
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
            row = make_row(work.key, outcome.status, outcome.metrics)
            add_rows(work.options.output_dir, [row])
            minutes = (time.monotonic() - began) / done * (len(works) - done) / 60
            left = f", about {minutes:.0f} min left" if keep_going else ""
            bar.clear()
            report(f"[{done}/{len(works)}{left}] {work.label}{work.key}: {describe(outcome)}")
            bar.update()
            yield work, outcome
    _kept.clear()


def _ended(
    works: Iterable[Work], executor: pool.Executor, keep_going: bool
) -> Iterator[tuple[Work, Outcome]]:
    """Keeps the executor at work, and yields each run as it ends."""
    waiting = iter(works)
    running: dict[Any, Work] = {}
    while True:
        check_stopped()
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
    key = work.key
    if registry.dataset(key.dataset).simulated and key.dataset != "table":
        return
    dataset = load(work)
    try:
        if alone:
            check_supported(registry.method(key.method), dataset)
    except (IdentitiesError, UnsupportedDataError) as error:
        raise UsageError(str(error)) from None


def make_run(work: Work) -> Outcome:
    """Makes one run in this process, or only what a finished one lacks."""
    strategy = process.start(work.options)
    return execute(work, load(work), strategy)


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
    """Whether to show the progress of each fit: never where several processes would, else as a
    terminal or none takes it (None).
    """
    return False if _elsewhere(options) else None
