"""What a process sets once, and what each run starts with."""

from __future__ import annotations

import json

import pytest

from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.work import RunKey, Work
from neucrowd_tf.errors import UsageError
from tests.cases import cases


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
    with pytest.raises(UsageError, match="the environment variable TF_CONFIG must be"):
        process.workers()


@pytest.mark.parametrize(
    ("dataset", "method", "options", "needed"),
    [
        ("breast_cancer", "mv_lr", Options(), False),
        ("breast_cancer", "softprob", Options(), False),
        ("table", "glad_lr", Options(), False),
        ("breast_cancer", "rll", Options(), True),
        ("breast_cancer", "mv_lr", Options(export=True), True),
        ("breast_cancer", "mv_lr", Options(device="cpu"), True),
        ("breast_cancer", "mv_lr", Options(distribute="mirrored"), True),
    ],
)
def test_runs_without_networks_do_not_wait_for_tensorflow(
    dataset: str, method: str, options: Options, needed: bool
) -> None:
    assert Work(RunKey(dataset, method, 0), {}, options).needs_tensorflow() == needed
