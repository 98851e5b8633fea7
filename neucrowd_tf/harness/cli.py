"""The command line: `run_experiment.py` in a checkout, `neucrowd` where the wheel is installed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from absl import app, logging
from absl import flags as absl_flags

from neucrowd_tf import registry
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.harness import flags, process

if TYPE_CHECKING:
    from neucrowd_tf.harness.execute import Outcome
    from neucrowd_tf.harness.run_folder import RunKey

PROBLEM = 2
CHECKOUT = (
    "The baselines (auto, mv_lr, ds_lr, ...), the benchmark data and the suites are in a checkout:"
    " python run_experiment.py there."
)


def _tell(text: str) -> None:
    """Prints to stderr; characters that a terminal would act on, which ids in a user's files may
    hold, are replaced.
    """
    plain = "".join(
        letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text
    )
    print(plain, file=sys.stderr, flush=True)


def plain_warnings() -> None:
    """Shows each warning once in this process, on one line, without the place in the code."""
    told: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = (
            "warning:"
            f" {one_line(message if isinstance(message, Warning) else UserWarning(message))}"
        )
        if text not in told:
            told.add(text)
            print(text, file=file or sys.stderr, flush=True)

    warnings.showwarning = show


def run(options: flags.Options, rooms: Sequence[str] = (), *, installed: bool = False) -> int:
    """Runs what the flags ask for.

    Args:
        rooms: modules to import, beside the library's, because methods and datasets register in
            them.
        installed: whether this is the wheel's command, which says what only a checkout has.

    Returns:
        the exit code: 0, 1 when some runs failed, 2 for flags, data or folders that cannot be used.
    """
    process.quiet()
    plain_warnings()
    try:
        return _run(options, tuple(rooms), installed)
    except (UsageError, DataError, OSError) as error:
        _tell(f"error: {one_line(error)}")
    except KeyboardInterrupt:
        _tell("interrupted: start again with --resume to go on")
        return 130
    return PROBLEM


def _run(options: flags.Options, rooms: tuple[str, ...], installed: bool) -> int:
    from neucrowd_tf.harness import rooms as registers

    registers.register(rooms)
    if options.list:
        print(registers.listing(suites=not installed))
        if installed:
            print(f"\n{CHECKOUT}")
        return 0
    if installed:
        _check_installed(options)
    if options.suite:
        from reproduction.run import run_suites

        return run_suites(options.suite, options, _tell, rooms)
    from neucrowd_tf.harness import runner
    from neucrowd_tf.harness.results import summary_table

    wanted = runner.tasks(options, runner.progress_wanted(options))
    rows, outcomes = runner.run_all(options, wanted, _tell, rooms)
    mine = [
        row for row in rows if row["dataset"] in options.dataset and row["method"] in options.method
    ]
    print(summary_table(mine))
    print("\n".join([*_notes(outcomes), _where(options, wanted)]))
    _compare(options, wanted)
    return runner.exit_code(outcomes)


def _check_installed(options: flags.Options) -> None:
    """Raises UsageError for what the installed command does not have, and says where it is."""
    if options.suite:
        raise UsageError(
            "--suite: expected run_experiment.py, received it with the installed command."
            f" {CHECKOUT}"
        )
    try:
        for name in options.method:
            registry.method(name)
        for name in options.dataset:
            registry.dataset(name)
    except UsageError as error:
        raise UsageError(f"{error}. {CHECKOUT}") from None


def _notes(outcomes: Mapping[RunKey, Outcome]) -> list[str]:
    """Returns what to know of the figures in the table."""
    voted = sorted(
        {
            key.dataset
            for key, found in outcomes.items()
            if found.metrics and found.metrics.get("test_labels") == "majority vote"
        }
    )
    hint = " (--truth names a file with true ones)" if voted == ["table"] else ""
    return (
        [f"Test labels of {', '.join(voted)} are majority votes, not the truth{hint}."]
        if voted
        else []
    )


def _where(options: flags.Options, wanted: list) -> str:  # type: ignore[type-arg]
    """Returns where the results, TensorBoard logs, reports and SavedModels of these runs lie."""
    out: Path = options.output_dir
    lines = [
        "",
        f"Results:     {out / 'results.csv'}, {out / 'summary.csv'}",
        f"TensorBoard: tensorboard --logdir {out}",
    ]
    reports = [task.key.folder(out, options.folds) / "report.html" for task in wanted]
    lines += [f"Report:      {path}" for path in reports if path.is_file()][:10]
    models = [task.key.folder(out, options.folds) / "saved_model" for task in wanted]
    lines += [f"SavedModel:  {path}" for path in models if path.is_dir()][:10]
    return "\n".join(lines)


def _compare(options: flags.Options, wanted: list) -> None:  # type: ignore[type-arg]
    """Brings the comparisons in these runs' reports up to date: each was written before the runs
    after it had finished.
    """
    from neucrowd_tf.report import refresh_comparison

    for task in wanted:
        refresh_comparison(task.key.folder(options.output_dir, options.folds))


def start(rooms: Sequence[str] = (), *, installed: bool = False) -> NoReturn:
    """Runs the command line of this process through absl (--help, --flagfile and its other flags),
    and exits.
    """
    values = absl_flags.FLAGS
    for name in flags.NAMES:  # --help shows the flags of the main module
        values.register_key_flag_for_module(sys.argv[0], values[name])
    parsed: list[flags.Options] = []
    chatty: list[bool] = []

    def parse(argv: Sequence[str]) -> list[str]:
        try:
            parsed.append(flags.parse(argv, values))
            chatty.append(not values["verbosity"].using_default_value)
        except UsageError as error:
            _tell(f"error: {error}")
            sys.exit(PROBLEM)
        except UnicodeDecodeError:
            _tell("error: --flagfile: expected text in UTF-8, received other bytes")
            sys.exit(PROBLEM)
        except SystemExit:  # --help, which absl ends with 1
            sys.exit(0)
        return [argv[0]]

    def begin(_: Sequence[str]) -> int:
        if not chatty[0]:
            logging.set_verbosity(logging.WARNING)  # app.run turns TensorFlow's and Keras' notes on
        return run(parsed[0], rooms, installed=installed)

    app.run(begin, flags_parser=parse)
    raise SystemExit(0)


def console_main() -> NoReturn:
    """The wheel's command: the library's methods."""
    start(installed=True)
