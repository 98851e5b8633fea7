"""--scheduler: runs on Dask workers have the bytes of one process, also those whose worker died."""

from __future__ import annotations

from pathlib import Path

import pytest

from neucrowd_tf.cli.runs.options import Options, check
from neucrowd_tf.declare import registration, registry
from neucrowd_tf.errors import UsageError
from reproduction.run import run_suite
from reproduction.suite import Case, Suite
from tests.cases import raises

distributed = pytest.importorskip("distributed")


def test_a_suite_on_a_cluster_with_a_death_has_the_bytes_of_two_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny, without_tensorflow: None
) -> None:
    cases = (
        Case(("tiny",), ("mean", "once"), seeds=3),
        Case(("tiny",), ("once",), "shift=0.1", seeds=2, hparams={"shift": 0.1}, x=0.1),
    )
    suite = Suite("tiny", "Tiny", cases, baseline="mean")
    monkeypatch.setitem(registration.METHODS, "once", registry.Method("once", tiny, "for tests"))
    plugin = ("tests.cli.runs.worker_plugin",)
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
    passed = Options(dataset=("d",), method=("m",), scheduler="tcp://host:8786", jobs=2)
    raises(UsageError, "--jobs: not with --scheduler", check, passed)
