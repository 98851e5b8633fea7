from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from neucrowd_tf import aggregate, convert, relabel, stopping
from neucrowd_tf.aggregation.engine import fit
from neucrowd_tf.commands import command_line
from neucrowd_tf.report import __main__ as report
from neucrowd_tf.stopping import Stopped, check_stopped, stoppable
from tests.processes import python

# Stops a process when it begins to import a module, as `sitecustomize` of Python's own.
AT_IMPORT = """
import os, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            sys.meta_path.remove(self)
            for _ in range(3):
                os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder())
"""


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)


def _heed_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rows = [f"t{task},w{worker},{'ab'[task % 2]}" for task in range(20) for worker in range(3)]
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    return tmp_path / "labels.csv"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "neucrowd_tf.aggregate", "--annotations=labels.csv"],
        ["-m", "neucrowd_tf.convert", "--input=labels.csv"],
        ["-m", "neucrowd_tf.relabel", "--annotations=labels.csv", "--budget=3"],
        ["-m", "neucrowd_tf.predict", "--help"],
        ["-m", "neucrowd_tf.report", "--annotations=labels.csv"],
        ["-m", "neucrowd_tf", "report", "--annotations=labels.csv"],
        ["run_experiment.py", "--list"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_command_that_is_stopped_while_it_loads(
    command: list[str], number: int, labels: Path, repository: Path
) -> None:
    folder = labels.parent
    text = AT_IMPORT.format(module="numpy", number=int(number))
    (folder / "sitecustomize.py").write_text(text)
    if command[0].endswith(".py"):
        command = [str(repository / command[0]), *command[1:]]
    done = python(
        repository,
        *command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{repository}"},
        preexec_fn=_heed_sigint,  # which a shell's background jobs ignore, and the tests with them
    )
    message = "stopped (SIGTERM)\n" if number == signal.SIGTERM else "interrupted\n"
    assert (done.returncode, done.stderr) == (128 + number, message)


@pytest.mark.parametrize(
    ("main", "place", "flags"),
    [
        (aggregate.main, (aggregate, "to_csv"), ["--annotations={}"]),
        (convert.main, (convert, "to_csv"), ["--input={}", "--from=table"]),
        (relabel.main, (relabel, "to_csv"), ["--annotations={}", "--budget=3"]),
        (report.main, (report, "model_names"), ["--annotations={}"]),
        (aggregate.main, (fit, "make_shards"), ["--annotations={}", "--engine=local"]),
    ],
    ids=["aggregate", "convert", "relabel", "report", "engine"],
)
def test_a_command_that_is_stopped_at_work(
    main: object,
    place: tuple[object, str],
    flags: list[str],
    labels: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(*place, lambda *_, **__: _kill())
    output = labels.parent / "output"
    passed = [*(flag.format(labels) for flag in flags), f"--output={output}"]
    assert main(passed) == 143  # type: ignore[operator]
    *_, line = capsys.readouterr().err.splitlines()
    engine = "--engine=local" in flags
    assert line == "stopped (SIGTERM)" + engine * ": start again with --resume to go on"
    assert not output.exists() and not list(labels.parent.rglob("*.part*"))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.ci
def test_dask_is_stopped_with_its_workers(labels: Path, repository: Path) -> None:
    pytest.importorskip("distributed")
    flags = [f"--annotations={labels}", f"--output={labels.parent / 'out'}", "--engine=dask"]
    with subprocess.Popen(
        [sys.executable, "-m", "neucrowd_tf.aggregate", *flags, "--tol=0", "--max_iter=100000"],
        cwd=repository,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert any("iteration 2:" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        printed = [line for line in process.stderr if not line.startswith("iteration ")]
        assert process.wait(20) == 143
    # That stderr ended means that nobody holds it any more: no process is left.
    assert printed == ["stopped (SIGTERM): start again with --resume to go on\n"]


def test_the_second_signal_does_not_disturb_what_the_first_one_ends() -> None:
    cleared = False
    with pytest.raises(Stopped), stoppable():
        try:
            _kill()
        finally:
            _kill()
            cleared = True
    assert cleared


def test_what_a_library_makes_of_a_signal_is_none_of_its_errors() -> None:
    with pytest.raises(Stopped), stoppable():
        try:
            _kill()
        except KeyboardInterrupt:
            raise ValueError("of a library") from None
    with pytest.raises(ValueError, match="of a user"), stoppable():
        raise ValueError("of a user")
    check_stopped()


STUCK = """
import os, signal, sys, time
from neucrowd_tf import stopping
from neucrowd_tf.commands.command_line import run
from neucrowd_tf.io.files.atomic import atomic_path
stopping.while_loading()
stopping.GRACE = 0.2
def command():
    with atomic_path(sys.argv[1]) as path:
        path.write_text("half")
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(9)
        except KeyboardInterrupt:
            time.sleep(60)
sys.exit(run(command))
"""


@pytest.mark.ci
def test_what_does_not_end_is_ended(repository: Path, tmp_path: Path) -> None:
    done = python(repository, "-c", STUCK, str(tmp_path / "labels.csv"), timeout=30)
    assert (done.returncode, done.stderr) == (143, "stopped (SIGTERM)\n")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ignored")
def test_ignored_signals_stay_so() -> None:
    stopping.while_loading()
    assert command_line.run(lambda: [_kill() or "went on"]) == 0
