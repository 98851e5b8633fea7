"""All runs of one command: which there are, which are finished already, and how it ends."""

from __future__ import annotations

import dataclasses
import gc
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.annotations.simulation import remove_annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import IdentitiesError, UnsupportedDataError, UsageError
from neucrowd_tf.evaluation.cross_validation import fold_dataset
from neucrowd_tf.harness import process, rooms
from neucrowd_tf.harness.execute import Outcome, check_supported, complete, execute, lacks
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import FAILED, OK, SKIPPED, Row, add_rows, make_row, read_results
from neucrowd_tf.harness.run_config import Task, settings
from neucrowd_tf.harness.run_folder import RunFolder, RunKey

Report = Callable[[str], None]


def tasks(options: Options, progress: bool | None = None) -> list[Task]:
    """Returns every run the flags ask for, those that share data beside each other.

    Raises:
        UsageError: an unknown method, dataset or hyper-parameter.
    """
    if not registry.datasets():
        raise UsageError(
            "--dataset: expected a checkout of the project, which has the datasets, received"
            f" {','.join(options.dataset)} without one"
        )
    for name in options.dataset:
        rooms.dataset_options(registry.dataset(name), dataset_flags(options, name))
    hparams = rooms.hyper_parameters(options.method, options.hparam)
    parts: list[tuple[int | None, int | None]] = [(None, None)]
    if options.evaluation == "cv":
        parts = [
            (repeat, fold) for repeat in range(options.repeats) for fold in range(options.folds)
        ]
    return [
        Task(RunKey(dataset, method, seed, repeat, fold), hparams[method], progress)
        for dataset in options.dataset
        for seed in options.seeds
        for repeat, fold in parts
        for method in options.method
    ]


def dataset_flags(options: Options, name: str) -> dict[str, Any]:
    """Returns the options that the flags give to a dataset's loader."""
    given: dict[str, Any] = dict(options.table) if name == "table" else {}
    if name == "table" and options.image_size is not None:
        given["image_size"] = options.image_size
    if name == "table" and options.classes is not None:
        given["classes"] = options.classes
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
        wanted: tuple[Any, ...] = (key.dataset, seed if drawn else 0)
        whole = self._get("dataset", wanted, lambda: self._read(key.dataset, wanted[1]))
        if key.fold is None or key.repeat is None:
            return whole
        repeat, fold = key.repeat, key.fold
        return self._get(
            "fold",
            (*wanted, seed, repeat, fold),
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
        self, what: str, wanted: tuple[Any, ...], load: Callable[[], CrowdDataset]
    ) -> CrowdDataset:
        if what not in self._kept or self._kept[what][0] != wanted:
            self._kept.pop(what, None)  # the old one is released before the new one is read
            self._kept[what] = wanted, load()
        return self._kept[what][1]


@dataclasses.dataclass
class Plan:
    """What is left to do.

    Attributes:
        finished: runs that are finished and stay as they are.
        to_complete: finished runs that lack the SavedModel, or a file that an earlier version did
            not write.
        to_run: the others.
    """

    finished: list[Task]
    to_complete: list[Task]
    to_run: list[Task]


def plan(options: Options, wanted: Iterable[Task]) -> Plan:
    """Sorts runs by what is left to do; touches nothing.

    Raises:
        UsageError: a finished run without --resume, or one that was started with other settings.
        DataError: an output folder whose results.csv is something else.
    """
    found = Plan([], [], [])
    read_results(options.output_dir / "results.csv")
    for task in wanted:
        folder = RunFolder(task.key.folder(options.output_dir, options.folds))
        if folder.finished and not options.resume:
            raise UsageError(
                f"--output_dir: {folder.path} holds a finished run; choose another folder, or pass"
                " --resume to keep it"
            )
        if folder.started and options.resume:
            folder.check_settings(settings(task, options))
        if not folder.finished:
            found.to_run.append(task)
        elif lacks(folder, options):
            found.to_complete.append(task)
        else:
            found.finished.append(task)
    return found


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


def run_all(
    options: Options, wanted: list[Task], report: Report, rooms_to_import: tuple[str, ...] = ()
) -> tuple[list[Row], dict[RunKey, Outcome]]:
    """Makes all runs that are left, and writes results.csv and summary.csv after each.

    Args:
        report: called with a line after each run.
        rooms_to_import: modules that worker processes have to import to know all methods and
            datasets.

    Returns:
        the rows of results.csv (earlier commands' too), and how each run ended.
    """
    left = plan(options, wanted)
    check_writable(options)
    alone = len({(task.key.dataset, task.key.method) for task in wanted}) == 1
    outcomes: dict[RunKey, Outcome] = {}
    for task in (*left.finished, *left.to_complete):
        outcomes[task.key] = Outcome(
            OK, RunFolder(task.key.folder(options.output_dir, options.folds)).metrics()
        )
    rows = (
        add_rows(
            options.output_dir,
            [make_row(key, OK, outcome.metrics) for key, outcome in outcomes.items()],
        )
        if outcomes
        else []
    )
    todo = [(task, False) for task in left.to_run] + [(task, True) for task in left.to_complete]
    if not todo:
        return rows, outcomes
    if options.jobs > 1 and len(todo) > 1:
        from neucrowd_tf.harness.jobs import run_jobs

        ended: Iterator[tuple[Task, Outcome]] = run_jobs(options, todo, rooms_to_import)
    else:
        ended = _run_here(options, todo, alone)
    for count, (task, outcome) in enumerate(ended, 1):
        outcomes[task.key] = outcome
        if outcome.status != OK and outcome.mendable and alone:
            RunFolder(task.key.folder(options.output_dir, options.folds)).discard()
            raise UsageError(outcome.reason)
        rows = add_rows(options.output_dir, [make_row(task.key, outcome.status, outcome.metrics)])
        report(f"[{count}/{len(todo)}] {task.key}: {describe(outcome)}")
    return rows, outcomes


def _run_here(
    options: Options, todo: list[tuple[Task, bool]], alone: bool
) -> Iterator[tuple[Task, Outcome]]:
    data = Data(options)
    key = todo[0][0].key
    if not registry.dataset(key.dataset).simulated or key.dataset == "table":
        dataset = data.load(
            key
        )  # files that are missing or wrong are told before TensorFlow's slow import
        if alone:
            _refuse_unsupported(key, dataset)
    strategy = process.start(options)
    for task, only_complete in todo:
        yield task, make_run(task, options, data, strategy, only_complete)


def _refuse_unsupported(key: RunKey, dataset: CrowdDataset) -> None:
    """Raises UsageError when the only method asked for cannot run on the only dataset."""
    try:
        check_supported(registry.method(key.method), dataset)
    except (IdentitiesError, UnsupportedDataError) as error:
        raise UsageError(str(error)) from None


def make_run(
    task: Task, options: Options, data: Data, strategy: Any, only_complete: bool
) -> Outcome:
    """Makes one run, or only what a finished one lacks."""
    dataset = data.load(task.key)
    if not only_complete:
        outcome = execute(task, options, dataset, strategy)
        gc.collect()  # models hold themselves in cycles, and would add up over many runs
        return outcome
    complete(task, options, dataset, strategy)
    return Outcome(OK, RunFolder(task.key.folder(options.output_dir, options.folds)).metrics())


def describe(outcome: Outcome) -> str:
    """Returns how a run ended, in a line."""
    if outcome.status != OK or outcome.metrics is None:
        return f"{outcome.status}: {outcome.reason}"
    test, timings = outcome.metrics["test"], outcome.metrics["timings"]
    shown = [
        f"{name} {test[name]:.3f}" for name in ("accuracy", "auc") if test.get(name) is not None
    ]
    found = ", ".join([*shown, f"{timings['fit_seconds']:.1f} s"])
    recommended = outcome.metrics.get("recommendation")
    return found if recommended is None else f"{found}\n{recommended['text']}"


def exit_code(outcomes: dict[RunKey, Outcome]) -> int:
    """Returns 0 when every run ended well or was skipped among others, 2 when nothing could run, 1
    when some failed.
    """
    states = [outcome.status for outcome in outcomes.values()]
    if FAILED in states:
        return 1
    return 2 if states and all(state == SKIPPED for state in states) else 0


def progress_wanted(options: Options) -> bool:
    """Whether to show the bars of each fit: on a terminal, when there is one process to show
    them."""
    return options.jobs == 1 and sys.stdout.isatty() and sys.stderr.isatty()
