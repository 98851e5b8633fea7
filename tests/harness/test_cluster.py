"""--scheduler: runs on Dask workers have the bytes of one process, also those whose worker died."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf import registry
from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness.executors import Cluster, WorkerDied
from neucrowd_tf.harness.flags import Options, check
from reproduction.run import run_suite
from reproduction.suite import Case, Suite

distributed = pytest.importorskip("distributed")

RUNS = ["--dataset=breast_cancer", "--method=mv_lr,mv_dnn", "--hparam=mv_dnn.epochs=10"]
RUNS += ["--checkpoint_seconds=0", "--report=false"]


@pytest.fixture
def workers() -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", memory_limit=0
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def command(repository: Path, *flags: str) -> list[str]:
    return [sys.executable, str(repository / "run_experiment.py"), *RUNS, *flags]


def kill_a_worker_at(client: Any, output: Path, done: subprocess.Popen[str]) -> None:
    """Ends a worker that has written a checkpoint of a run which is not finished."""
    pids = client.run(os.getpid)
    while done.poll() is None:
        for found in output.rglob("checkpoints"):
            if any(found.iterdir()) and not (found.parent / "metrics.json").exists():
                busy = [address for address, keys in client.processing().items() if keys]
                if busy:
                    os.kill(pids[busy[0]], signal.SIGKILL)
                    return
        time.sleep(0.01)
    raise AssertionError("expected a checkpoint before the end")


@dataclasses.dataclass(frozen=True)
class Deadly:
    """A task whose first worker dies."""

    mark: Path
    resumed: bool = False

    def again(self) -> Deadly:
        return dataclasses.replace(self, resumed=True)


def die_once(task: Deadly) -> tuple[bool, int]:
    try:
        task.mark.touch(exist_ok=False)
    except FileExistsError:
        return task.resumed, os.getpid()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def always_die(task: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(task: Any) -> None:
    raise UsageError("--this: expected that")


@pytest.mark.slow
def test_a_task_whose_worker_died_is_made_again_as_one_to_resume(
    tmp_path: Path, workers: Any
) -> None:
    executor = Cluster(workers.scheduler.address, ())
    assert executor.width == 2
    with contextlib.closing(executor):
        assert executor.submit(die_once, Deadly(tmp_path / "died")).result(300)[0] is True
        (tmp_path / "there").touch()
        assert executor.submit(die_once, Deadly(tmp_path / "there")).result(300)[0] is False
        with pytest.raises(UsageError, match="--this: expected that"):
            executor.submit(fail, None).result(300)
        workers.run_on_scheduler(one_death)
        with pytest.raises(WorkerDied, match="so many workers died while they made it: 2"):
            executor.submit(always_die, None).result(300)


def one_death(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = 1


@pytest.mark.slow
def test_workers_of_a_scheduler_write_the_bytes_of_one_process(
    repository: Path, tmp_path: Path, workers: Any
) -> None:
    one, other = tmp_path / "one", tmp_path / "cluster"
    subprocess.run(command(repository, f"--output_dir={one}"), check=True, timeout=300)
    address = f"--scheduler={workers.scheduler.address}"
    running = subprocess.Popen(
        command(repository, f"--output_dir={other}", address), stderr=subprocess.PIPE, text=True
    )
    kill_a_worker_at(workers, other, running)
    assert running.wait(300) == 0, running.stderr.read() if running.stderr else ""
    written = [path for path in sorted(one.rglob("*.csv")) if path.parent != one]
    assert len([path for path in written if path.name == "predictions.csv"]) == 2
    for path in written:
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path


@pytest.mark.ci
def test_a_suite_on_a_cluster_with_a_death_has_the_bytes_of_two_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Any, without_tensorflow: None
) -> None:
    cases = (
        Case(("tiny",), ("mean", "once"), seeds=3),
        Case(("tiny",), ("once",), "shift=0.1", seeds=2, hparams={"shift": 0.1}, x=0.1),
    )
    suite = Suite("tiny", "Tiny", cases, baseline="mean")
    monkeypatch.setitem(registry._METHODS, "once", registry.Method("once", tiny, "for tests"))
    plugin = ("tests.harness.worker_plugin",)
    jobs = Options(output_dir=tmp_path / "jobs", jobs=2)
    assert run_suite(suite, jobs, lambda line: None, plugin) == []
    monkeypatch.setenv("DIE_ONCE", str(tmp_path / "died"))
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", memory_limit=0
    )
    with cluster:
        sent = Options(output_dir=tmp_path / "cluster", scheduler=cluster.scheduler_address)
        assert run_suite(suite, sent, lambda line: None, plugin) == []
    assert (tmp_path / "died").exists()
    written = [
        path
        for path in sorted((tmp_path / "jobs").rglob("*.csv"))
        if path.name not in ("results.csv", "summary.csv")
    ]
    assert len([path for path in written if path.name == "predictions.csv"]) == 8
    for path in written:
        other = tmp_path / "cluster" / path.relative_to(tmp_path / "jobs")
        assert path.read_bytes() == other.read_bytes(), path


def test_scheduler_and_jobs_are_one_or_the_other() -> None:
    given = Options(dataset=("d",), method=("m",), scheduler="tcp://host:8786", jobs=2)
    with pytest.raises(UsageError, match="--jobs: not with --scheduler"):
        check(given)
