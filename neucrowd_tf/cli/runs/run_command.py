"""The command of runs: `run_experiment.py` in a checkout, otherwise `neucrowd run`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from neucrowd_tf.cli.command_line import run as run_to_exit_code
from neucrowd_tf.cli.command_line import say
from neucrowd_tf.cli.runs import plugins, process
from neucrowd_tf.cli.runs.executors import ready
from neucrowd_tf.cli.runs.options import Options, parse
from neucrowd_tf.cli.signals import RESUME, end_at_signals, hinted
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import UsageError, printable
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.roles import RUNNING

if TYPE_CHECKING:  # `--list` imports nothing that runs need
    from neucrowd_tf.cli.runs.execute import Outcome
    from neucrowd_tf.cli.runs.work import RunKey


def start(modules: Texts = ()) -> NoReturn:
    """Runs the command line of this process and exits; see `main`."""
    end_at_signals()
    raise SystemExit(main(sys.argv[1:], modules))


def main(argv: Texts, modules: Texts = ()) -> int:
    """Makes the runs that the flags ask for.

    Args:
        argv: the flags.
        modules: what to import besides the library and installed plug-ins: methods, datasets and
            suites register when their modules are imported.

    Returns:
        the exit code: 0, 1 if a run failed, 2 for flags, data or folders that cannot be used.
    """
    RUNNING.set(tuple(argv))
    return run_to_exit_code(lambda: run(parse(argv), tuple(modules)))


def run(options: Options, modules: tuple[str, ...] = ()) -> int:
    """Makes the runs of checked flags; see `main`."""
    ready(modules)
    if options.list:
        say(plugins.listing())
        return 0
    with hinted(RESUME):
        if options.suite:
            return _run_suites(options, modules)
        return _run(options, modules)


def _run(options: Options, modules: tuple[str, ...]) -> int:
    from neucrowd_tf.cli.runs import results, runner

    before = {row["method"] for row in results.read_results(options.output_dir / "results.csv")}
    for name in sorted({*options.baseline} - {*options.method} - before):
        raise UsageError(f"--baseline={name}: no runs in {options.output_dir}. Add it to --method.")
    # Several processes show no progress of their fits.
    works = runner.works(options, False if options.jobs > 1 or options.scheduler else None)
    if not process.first_worker(options):
        return runner.exit_code(runner.follow(options, works, _print))
    rows, outcomes = runner.run_all(options, works, _print, modules)
    methods = {*options.method, *options.baseline}
    asked = [r for r in rows if r["dataset"] in options.dataset and r["method"] in methods]
    folders = [work.folder for work in works]
    table = results.summary_table(asked, options.output_dir, options.baseline, options.table)
    if options.table:
        write_text(options.output_dir / f"summary.{options.table}", f"{table}\n")
    say("\n".join([table, *_notes(outcomes), *_places(options, folders)]))
    return runner.exit_code(outcomes)


def _run_suites(options: Options, modules: tuple[str, ...]) -> int:
    """Runs suites one after the other."""
    failures = []
    for suite in registry.chosen_suites(options.suite):
        for line in suite.make(options, _print, modules):
            failures.append(f"{suite.name}: {line}")
    if failures:
        _print("\n".join([f"{len(failures)} failed:", *failures]))
    return int(bool(failures))


def _notes(outcomes: Mapping[RunKey, Outcome]) -> list[str]:
    """Returns what the test labels of each dataset are, if they are not true labels."""
    by_dataset = {key.dataset: each.metrics for key, each in outcomes.items() if each.metrics}
    notes = []
    voted = []
    for name, metrics in sorted(by_dataset.items()):
        if "test_meaning" in metrics:
            notes.append(f"{name}: {metrics['test_meaning']}")
        if metrics.get("test_labels") == "majority vote":
            voted.append(name)
    if voted:
        hint = " (--truth names a file with true ones)" * (voted == ["table"])
        notes.append(f"Test labels of {', '.join(voted)} are majority votes, not the truth{hint}.")
    return notes


def _places(options: Options, folders: Sequence[Path]) -> Iterator[str]:
    """Yields where the results, TensorBoard logs, reports and SavedModels of these runs are."""
    out = options.output_dir
    tables = [out / "results.csv", out / "summary.csv"]
    if options.table:
        tables.append(out / f"summary.{options.table}")
    yield f"\nResults:     {', '.join(map(str, tables))}"
    yield f"TensorBoard: tensorboard --logdir {out}"
    for title, name in (("Report:     ", "report.html"), ("SavedModel: ", "saved_model")):
        for folder in folders:
            if (folder / name).exists():
                yield f"{title} {folder / name}"


def _print(text: str) -> None:
    """Prints to stderr; control characters from names in a user's files are replaced."""
    print(printable(text, keep="\n"), file=sys.stderr, flush=True)
