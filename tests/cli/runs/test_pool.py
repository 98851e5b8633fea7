"""--jobs: the same bytes as without, and what a failing or dying worker costs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pandas as pd

from neucrowd_tf.cli.runs import runner
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.work import RunKey
from neucrowd_tf.errors import UsageError
from tests.cases import raises

PLUGINS = ("tests.cli.runs.worker_plugin",)


def options(out: Path, *methods: str, **more) -> Options:
    passed = Options(dataset=("tiny",), method=methods, output_dir=out, num_runs=2)
    return dataclasses.replace(passed, report=False, **more)


def run(passed: Options) -> tuple[list[str], dict[RunKey, Any]]:
    lines: list[str] = []
    _, outcomes = runner.run_all(passed, runner.works(passed), lines.append, PLUGINS)
    return lines, outcomes


def test_jobs(tiny, tmp_path: Path, without_tensorflow: None) -> None:
    """One pool for everything: workers take seconds to start."""
    lines, outcomes = run(options(tmp_path / "two", "mean", "broken", "killed", jobs=2))
    assert tiny.calls == 0, "nothing ran in this process"
    assert len(lines) == 6 and lines[0].startswith("[1/6] tiny ") and lines[-1].startswith("[6/6] ")
    assert runner.exit_code(outcomes) == 1
    rows = pd.read_csv(tmp_path / "two" / "results.csv")
    assert rows["method"].tolist() == ["broken", "broken", "killed", "killed", "mean", "mean"]
    assert rows["status"].tolist() == ["failed"] * 4 + ["ok"] * 2
    assert any("killed seed 0: failed: its process was killed" in line for line in lines)
    assert any("broken seed 1: failed: RuntimeError: it broke badly" in line for line in lines)

    run(options(tmp_path / "one", "mean"))
    for seed in (0, 1):
        one, two = (tmp_path / name / "tiny" / "mean" / f"seed-{seed}" for name in ("one", "two"))
        for name in ("predictions.csv", "annotators.csv"):
            assert (one / name).read_bytes() == (two / name).read_bytes()
        first, second = (json.loads((folder / "metrics.json").read_text()) for folder in (one, two))
        assert first.pop("timings") and second.pop("timings") and first == second
        configs = [json.loads((folder / "config.json").read_text()) for folder in (one, two)]
        assert configs[0]["threads"] == configs[1]["threads"]


def test_what_no_run_can_go_on_with_ends_the_command(tiny, tmp_path: Path) -> None:
    passed = dataclasses.replace(options(tmp_path, "mean", jobs=2), device="gpu:63")
    raises(UsageError, "--device: expected another one", run, passed)
    assert not list(tmp_path.rglob("metrics.json"))
