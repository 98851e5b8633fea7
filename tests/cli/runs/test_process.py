"""What a process sets once, and what each run starts with."""

from __future__ import annotations

import json

import pytest

from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.work import RunKey, Work
from neucrowd_tf.declare import dataset_registration, registry
from neucrowd_tf.errors import UsageError
from tests.cases import cases, raises


def test_a_device_that_is_not_there() -> None:
    import tensorflow as tf

    with pytest.raises(UsageError, match="--device=gpu:63: this machine has"):
        process._choose_device(tf, Options(device="gpu:63"))


@pytest.mark.parametrize(
    ("chief", "kind", "index", "count", "first"),
    cases("""
["", "worker", 0, 2, true], ["", "worker", "0", 2, true], ["", "worker", 1, 2, false],
["c:1", "worker", 0, 3, false], ["c:1", "chief", 0, 3, true]
"""),
)
def test_the_chief_or_else_the_first_worker_writes(
    chief: str, kind: str, index, count: int, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"type": kind, "index": index}
    cluster = {"worker": ["a:1", "b:1"]} | ({"chief": [chief]} if chief else {})
    options = Options(distribute="multi_worker")
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    assert (process.workers(), process.first_worker(options)) == (count, first)
    assert process.first_worker(Options())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"cluster": {}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}}',
        '{"cluster": {"worker": ["a:1"], "chief": 5}, "task": {"type": "worker", "index": 0}}',
    ],
)
def test_what_tf_config_has_to_be(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    raises(UsageError, "the environment variable TF_CONFIG must be", process.workers)


@pytest.mark.parametrize(
    ("dataset", "method", "options", "needed"),
    cases("""
["breast_cancer", "mv_lr", {}, false], ["breast_cancer", "softprob", {}, false],
["table", "glad_lr", {}, false], ["breast_cancer", "rll", {}, true],
["breast_cancer", "mv_lr", {"export": true}, true],
["breast_cancer", "mv_lr", {"device": "cpu"}, true],
["breast_cancer", "mv_lr", {"distribute": "mirrored"}, true]
"""),
)
def test_runs_without_networks_do_not_wait_for_tensorflow(
    dataset: str, method: str, options, needed: bool
) -> None:
    work = Work(RunKey(dataset, method, 0), {}, Options(**options))
    assert work.needs_tensorflow() == needed


@pytest.mark.parametrize("package", ["data", "neucrowd_tf.plugins.data"])
def test_what_a_plugin_simulates_may_need_tensorflow(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is part of a wheel: TensorFlow's threads are set before its first use."""
    entry = registry.Dataset("drawn", print, "x", simulated=True, module=f"{package}.synthetic")
    monkeypatch.setitem(dataset_registration.DATASETS, "drawn", entry)
    assert Work(RunKey("drawn", "mv_lr", 0), {}, Options()).needs_tensorflow()
