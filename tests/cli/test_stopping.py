from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from neucrowd_tf.cli import command_line
from neucrowd_tf.cli import signals as stopping
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
    [["-m", "neucrowd_tf", "report", "--annotations=labels.csv"], ["run_experiment.py", "--list"]],
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


def test_a_command_that_is_stopped_at_work(labels: Path, repository: Path) -> None:
    folder = labels.parent
    text = AT_IMPORT.format(module="neucrowd_tf.aggregation.engine.shards", number=15)
    (folder / "sitecustomize.py").write_text(text)
    flags = [f"--annotations={labels}", "--output=output", "--engine=local"]
    done = python(
        repository,
        *("-m", "neucrowd_tf", "aggregate", *flags),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{repository}"},
    )
    *_, line = done.stderr.splitlines()
    assert done.returncode == 143
    assert line == "stopped (SIGTERM): start again with --resume to go on"
    assert not (folder / "output").exists() and not list(folder.rglob("*.part*"))


def test_dask_is_stopped_with_its_workers(labels: Path, repository: Path) -> None:
    pytest.importorskip("distributed")
    flags = [f"--annotations={labels}", f"--output={labels.parent / 'out'}", "--engine=dask"]
    with subprocess.Popen(
        [sys.executable, "-m", "neucrowd_tf", "aggregate", *flags, "--tol=0", "--max_iter=100000"],
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


HALF = """
import os, signal, sys, time
from neucrowd_tf.cli import signals as stopping
from neucrowd_tf.cli.command_line import run
from neucrowd_tf.io.files.atomic import atomic_path
stopping.end_at_signals()
def command():
    with atomic_path(sys.argv[1]) as path:
        path.write_text("half")
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            time.sleep(60)
sys.exit(run(command))
"""


def test_half_a_file_is_removed(repository: Path, tmp_path: Path) -> None:
    done = python(repository, "-c", HALF, str(tmp_path / "labels.csv"), timeout=30)
    assert (done.returncode, done.stderr) == (143, "stopped (SIGTERM)\n")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ignored")
def test_ignored_signals_stay_so() -> None:
    stopping.end_at_signals()
    assert command_line.run(lambda: [_kill() or "went on"]) == 0
