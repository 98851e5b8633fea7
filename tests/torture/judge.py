"""Runs an input in this process and says what became of it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from absl import flags as absl_flags
from absl.testing import flagsaver

from neucrowd_tf.io.files.reading import digest
from tests.torture.oracle import Input

SECONDS = 20
# What tells of something else than the data.
IDLE = re.compile(r"^\[\d+/\d+\]|^$")


class Hang(BaseException):
    """An input took too long."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a command did: its exit code (None where it raised), what it said, its result."""

    code: int | None
    errors: str
    result: bytes


@contextlib.contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raises Hang in what takes longer."""

    def ring(*_: Any) -> None:
        raise Hang

    # Of its own time, so that a busy machine makes no hangs; what waits for nothing uses none.
    clocks = ((signal.ITIMER_PROF, signal.SIGPROF, 1), (signal.ITIMER_REAL, signal.SIGALRM, 10))
    old = {number: signal.signal(number, ring) for _, number, _ in clocks}
    for clock, _, times in clocks:
        signal.setitimer(clock, times * seconds)
    try:
        yield
    finally:
        for clock, number, _ in clocks:
            signal.setitimer(clock, 0)
            signal.signal(number, old[number])


def prepare() -> None:
    """Imports what all commands need, which no input is to answer for."""
    from neucrowd_tf.io.quiet import import_tensorflow

    import_tensorflow()
    import neucrowd_tf.aggregate
    import neucrowd_tf.two_stage.labels_first  # noqa: F401


def run(argv: list[str]) -> int:
    """The harness' command line in this process."""
    from neucrowd_tf.harness import cli, flags

    # A suite's worth of commands in one process: flags are parsed afresh each time.
    with flagsaver.flagsaver():
        absl_flags.FLAGS.unparse_flags()
        options = cli.parse(["run", *argv]) if hasattr(cli, "parse") else _parse(flags, argv)
    return options if isinstance(options, int) else cli.run(options)


def _parse(flags: Any, argv: list[str]) -> Any:
    import sys

    from neucrowd_tf.errors import UsageError, one_line

    try:
        return flags.parse(["run", *argv])
    except UsageError as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return 2


def _main(command: str) -> Any:
    if command == "run":
        return run
    if command == "aggregate":
        from neucrowd_tf.aggregate import main as aggregate

        return aggregate
    if command == "convert":
        from neucrowd_tf.convert import main as convert

        return convert
    if command == "relabel":
        from neucrowd_tf.relabel import main as relabel

        return relabel
    if command == "predict":
        from neucrowd_tf.predict import main as predict

        return predict
    from neucrowd_tf.report.__main__ import main as report

    return report


def answer(command: str, flags: tuple[str, ...], folder: Path) -> Answer:
    """Runs a command on the files in a folder."""
    argv = [flag.replace("{folder}", str(folder)) for flag in flags]
    out, errors = io.StringIO(), io.StringIO()
    code: int | None
    raised = ""
    warnings.resetwarnings()
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.filterwarnings("always", module="neucrowd_tf")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), limited():
        try:
            code = _main(command)(argv)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except Hang:
            raise
        except BaseException:
            code, raised = None, traceback.format_exc()
    results = sorted(folder.rglob("predictions.csv")) + sorted(folder.rglob("scores.csv"))
    result = b"".join(path.read_bytes() for path in results if path.is_file())
    return Answer(code, errors.getvalue() + raised, result or out.getvalue().encode())


_SOUND: dict[tuple[str, ...], Answer] = {}


def _sound(command: str, flags: tuple[str, ...], folder: Path) -> Answer:
    """Returns the answer to sound files; the same ones are asked once."""
    key = (command, *flags, digest(folder))
    if key not in _SOUND:
        _SOUND[key] = answer(command, flags, folder)
    return _SOUND[key]


def judge(given: Input, folder: Path) -> tuple[str, str]:
    """Returns the outcome, one of `OUTCOMES`, and what to say of a bad one."""
    files = folder / "files"
    files.mkdir(parents=True)
    given.write(files)
    try:
        found = answer(given.command, given.flags, files)
    except Hang:
        return "hang", f"over {SECONDS} s"
    if found.code is None or "Traceback" in found.errors or found.code not in (0, 1, 2):
        return "traceback", found.errors[-1500:]
    if found.code:
        problem = _bad_refusal(given, found)
        if problem:
            return "traceback" if found.code == 1 else "refused wrongly", problem
        if "refused" not in given.right:
            return "refused wrongly", found.errors[-600:]
        return "refused", ""
    if "anything" in given.right:
        return "accepted right", ""
    told = [line for line in found.errors.splitlines() if not IDLE.search(line)]
    if not given.right & {"same", "told"}:
        return "accepted wrong", f"exit 0 {told[-1:]}"
    if "same" not in given.right and not told:
        return "accepted wrong", "accepted without a word"
    if given.sound is not None:
        other = folder / "sound"
        other.mkdir()
        given.sound(other)
        wanted = _sound(given.command, given.sound_flags or given.flags, other)
        if wanted.code or wanted.result != found.result:
            return "accepted wrong", f"other result; {wanted.code} {wanted.errors[-300:]}"
    return "accepted right", ""


def _bad_refusal(given: Input, found: Answer) -> str:
    """Returns what is wrong with a refusal's line, "" where nothing is."""
    lines = [line for line in found.errors.splitlines() if line.startswith("error:")]
    rest = [
        line
        for line in found.errors.splitlines()
        if line and not line.startswith(("error:", "warning:"))
    ]
    if found.code == 1 or len(lines) != 1 or rest:
        return f"exit {found.code}, expected one line: {found.errors[-800:]!r}"
    missing = [word for word in given.words if word not in lines[0]]
    if missing:
        return f"expected {missing} in {lines[0]!r}"
    plain = ("expected", "received"), ("no such file",), ("No such file",), ("too long",)
    plain += (("holds a finished run",),)
    if not any(all(word in lines[0] for word in words) for words in plain):
        return f"expected what was expected and received: {lines[0]!r}"
    return ""


def tried(given: Input) -> tuple[str, str]:
    """Judges an input in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="torture-", dir=os.environ.get("TORTURE_DIR")))
    try:
        return judge(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
