"""What a process sets once, and what each run starts with."""

from __future__ import annotations

import json

import pytest

from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.errors import UsageError


def test_a_device_that_is_not_there() -> None:
    import tensorflow as tf

    with pytest.raises(UsageError, match="--device=gpu:63: this machine has"):
        process._choose_device(tf, Options(device="gpu:63"))


CLUSTER = {"worker": ["a:1", "b:1"]}


@pytest.mark.parametrize(
    ("cluster", "task", "count", "first"),
    [
        (CLUSTER, {"type": "worker", "index": 0}, 2, True),
        (CLUSTER, {"type": "worker", "index": "0"}, 2, True),
        (CLUSTER, {"type": "worker", "index": 1}, 2, False),
        ({"chief": ["c:1"], **CLUSTER}, {"type": "worker", "index": 0}, 3, False),
        ({"chief": ["c:1"], **CLUSTER}, {"type": "chief", "index": 0}, 3, True),
    ],
)
def test_the_chief_or_else_the_first_worker_writes(
    cluster: dict[str, list[str]],
    task: dict[str, object],
    count: int,
    first: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
