"""The command line of runs: `run_experiment.py` in a checkout, `neucrowd run` where the wheel is
installed.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from absl import app, logging
from absl import flags as absl_flags

from neucrowd_tf import registry
from neucrowd_tf.errors import DataError, UsageError, one_line, printable
from neucrowd_tf.harness import flags, plugins, process
from neucrowd_tf.harness.execute import FATAL, Outcome
from neucrowd_tf.harness.run_folder import RunKey
from neucrowd_tf.io.command_line import PROBLEM, say, standard_output
from neucrowd_tf.io.quiet import quiet
from neucrowd_tf.stopping import RESUME, end, hinted, stoppable

CHECKOUT = (
    "Further methods, the benchmark data and the suites are in a checkout:"
    " python run_experiment.py there."
)
MOST_PLACES = 10  # of reports and of SavedModels, that are listed in the end


def _tell(text: str) -> None:
    """Prints to stderr; characters that a terminal would act on, which ids in a user's files may
    hold, are replaced.
    """
    print(printable(text, kept="\n"), file=sys.stderr, flush=True)


def run(options: flags.Options, modules: Sequence[str] = (), *, installed: bool = False) -> int:
    """Runs what the flags ask for.

    Args:
        modules: what to import, beside the library and installed plug-ins, because methods,
            datasets and suites register there.
        installed: whether this is the wheel's command, which says what only a checkout has.

    Returns:
        the exit code: 0, 1 when some runs failed, 2 for flags, data or folders that cannot be used.
    """
    quiet()
    process.plain_warnings()
    try:
        with stoppable(), hinted(RESUME):
            return _run(options, tuple(modules), installed)
    except KeyboardInterrupt as stop:
        return end(stop)
    except (UsageError, DataError, OSError) as error:
        _tell(f"error: {one_line(error)}")
    except MemoryError as error:
        _tell(f"error: expected enough memory, received less ({one_line(error)})")
    except process.WorkerLost as error:
        _tell(f"error: {one_line(error)}")
        os._exit(1)  # TensorFlow's own end would wait for the lost one
    return PROBLEM


def _run(options: flags.Options, modules: tuple[str, ...], installed: bool) -> int:
    plugins.register(modules)
    if options.list:
        say(plugins.listing() + (f"\n\n{CHECKOUT}" if installed else ""))
        return 0
    if installed:
        _check_installed(options)
    if options.suite:
        return _run_suites(options, modules)
    from neucrowd_tf.harness import runner
    from neucrowd_tf.harness.results import summary_table

    works = runner.works(options, runner.progress_wanted(options))
    if not process.first_worker(options):
        return runner.exit_code(runner.follow(options, works, _tell))
    rows, outcomes = runner.run_all(options, works, _tell, modules)
    asked = [
        row for row in rows if row["dataset"] in options.dataset and row["method"] in options.method
    ]
    folders = [work.folder.path for work in works]
    table = summary_table(asked, options.output_dir)
    say("\n".join([table, *_notes(outcomes), *_places(options.output_dir, folders)]))
    from neucrowd_tf.report.build import refresh_comparison

    for folder in folders:  # each was written before the runs after it had finished
        refresh_comparison(folder)
    return runner.exit_code(outcomes)


def _run_suites(options: flags.Options, modules: tuple[str, ...]) -> int:
    """Runs suites one after the other; a failing one does not keep the others from running."""
    failures: list[str] = []
    for suite in registry.chosen_suites(options.suite):
        try:
            lines = suite.make(options, _tell, modules)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL:
                raise
            _tell("".join(traceback.format_exception(error)))
            lines = [f"{type(error).__name__}: {one_line(error)}"]
        failures += [f"{suite.name}: {line}" for line in lines]
    if failures:
        _tell("\n".join([f"{len(failures)} failed:", *failures]))
    return 1 if failures else 0


def _check_installed(options: flags.Options) -> None:
    """Raises UsageError for what the installed command does not have, and says where it is."""
    try:
        registry.chosen_suites(options.suite)
        for name in options.method:
            registry.method(name)
        for name in options.dataset:
            registry.dataset(name)
    except UsageError as error:
        said = str(error)
        raise UsageError(f"{said}{'' if said.endswith('?') else '.'} {CHECKOUT}") from None


def _notes(outcomes: Mapping[RunKey, Outcome]) -> list[str]:
    """Returns what to know of the figures in the table."""
    voted, meanings = set(), {}
    for key, outcome in outcomes.items():
        metrics = outcome.metrics or {}
        if metrics.get("test_labels") == "majority vote":
            voted.add(key.dataset)
        if "test_meaning" in metrics:
            meanings[key.dataset] = metrics["test_meaning"]
    told = [f"{name}: {meaning}" for name, meaning in sorted(meanings.items())]
    if voted:
        hint = " (--truth names a file with true ones)" if voted == {"table"} else ""
        named = ", ".join(sorted(voted))
        told.append(f"Test labels of {named} are majority votes, not the truth{hint}.")
    return told


def _places(out: Path, folders: Sequence[Path]) -> Iterator[str]:
    """Yields where the results, TensorBoard logs, reports and SavedModels of these runs lie."""
    yield f"\nResults:     {out / 'results.csv'}, {out / 'summary.csv'}"
    yield f"TensorBoard: tensorboard --logdir {out}"
    for title, name in (("Report:     ", "report.html"), ("SavedModel: ", "saved_model")):
        places = [folder / name for folder in folders if (folder / name).exists()]
        yield from (f"{title} {path}" for path in places[:MOST_PLACES])
        if len(places) > MOST_PLACES:
            yield f"{title} ... and {len(places) - MOST_PLACES} more"


def start(modules: Sequence[str] = (), *, installed: bool = False) -> NoReturn:
    """Runs the command line of this process through absl (--help, --flagfile and its other flags),
    and exits.
    """
    values = absl_flags.FLAGS
    for name in flags.NAMES:  # --help shows the flags of the main module
        values.register_key_flag_for_module(sys.argv[0], values[name])
    parsed: list[tuple[flags.Options, bool]] = []

    def parse(argv: Sequence[str]) -> list[str]:
        try:
            with standard_output():
                options = flags.parse(argv, values)
            parsed.append((options, values["verbosity"].using_default_value))
        except (UsageError, OSError) as error:
            _tell(f"error: {one_line(error)}")
            sys.exit(PROBLEM)
        except SystemExit:  # --help, which absl ends with 1
            sys.exit(0)
        return [argv[0]]

    def begin(_: Sequence[str]) -> int:
        options, quiet = parsed[0]
        if quiet:
            logging.set_verbosity(logging.WARNING)  # app.run turns TensorFlow's and Keras' notes on
        return run(options, modules, installed=installed)

    app.run(begin, flags_parser=parse)
    raise SystemExit(0)
