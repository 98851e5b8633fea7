"""The command as a user starts it, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import neucrowd_tf
from neucrowd_tf.__main__ import console_main
from tests.processes import python

SMALL = (
    "--hparam=epochs=2",
    "--hparam=steps_per_epoch=2",
    "--hparam=batch_size=16",
    "--hparam=hidden_units=[8,4]",
)


def command(repository: Path, *flags: str, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    return python(repository, "run_experiment.py", *flags, timeout=timeout)


def test_a_flagfile_and_what_is_on_stderr(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "flags").write_text(
        f"--dataset=breast_cancer\n--method=mv_lr\n--output_dir={tmp_path / 'out'}\n"
    )
    done = command(repository, f"--flagfile={tmp_path / 'flags'}", "--export")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        line
        for line in done.stderr.splitlines()
        if line.startswith("[1/1] breast_cancer mv_lr seed 0: accuracy")
    ]
    assert "\r" not in done.stdout + done.stderr, "no bar when piped"
    again = command(repository, f"--flagfile={tmp_path / 'flags'}")
    assert again.returncode == 2 and "contains a finished run" in again.stderr


def test_mirrored_and_mixed_precision(repository: Path, tmp_path: Path) -> None:
    base = ["--dataset=breast_cancer", "--method=neucrowd", *SMALL, "--device=cpu"]
    done = command(
        repository,
        *base,
        f"--output_dir={tmp_path / 'mirrored'}",
        "--distribute=mirrored",
        "--export",
    )
    assert done.returncode == 0, done.stderr
    done = command(
        repository, *base, f"--output_dir={tmp_path / 'mixed'}", "--mixed_precision", "--export"
    )
    assert done.returncode == 0, done.stderr
    for name in ("mirrored", "mixed"):
        run = tmp_path / name / "breast_cancer" / "neucrowd" / "seed-0"
        metrics, config = (
            json.loads((run / f"{piece}.json").read_text()) for piece in ("metrics", "config")
        )
        assert 0.4 < metrics["test"]["accuracy"] <= 1
        assert config["settings"]["mixed_precision"] == (name == "mixed")
        predictions = pd.read_csv(run / "predictions.csv")
        assert np.isfinite(predictions[["p_benign", "p_malignant"]].to_numpy()).all()
        assert (run / "saved_model" / "saved_model.pb").exists()


def test_what_a_process_made_before_changes_no_byte(repository: Path, tmp_path: Path) -> None:
    """TensorFlow orders sums by names of a graph's nodes, which Keras numbers; CrowdInG's game is
    where that showed.
    """
    short = [f"--hparam={name}=3" for name in ("epochs", "pretrain_epochs", "game_pretrain_epochs")]
    base = ["--dataset=breast_cancer", "--method=crowding", *short, "--noreport"]
    for name, seeds in {"second": ["--seed=0", "--num_runs=2"], "first": ["--seed=1"]}.items():
        done = command(repository, *base, *seeds, f"--output_dir={tmp_path / name}")
        assert done.returncode == 0, done.stderr
    first, second = (
        tmp_path / name / "breast_cancer" / "crowding" / "seed-1" for name in ("first", "second")
    )
    for file in ("history.json", "predictions.csv"):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file


def test_the_installed_command_knows_the_library(repository: Path, tmp_path: Path) -> None:
    done = python(repository, "-m", "neucrowd_tf", "--list", cwd=tmp_path, env=_library_path())
    assert done.returncode == 0 and "  neucrowd " in done.stdout and "Suites:" not in done.stdout


# Arguments, the exit code, and a part of what is printed.
SUB_COMMANDS = """
--version => 0 neucrowd
predict --help => 0 usage: neucrowd predict
report --help => 0 usage: neucrowd report
predict => 2 error: --model is missing:
preditc => 2 no command 'preditc'. Did you mean predict? Commands: report, aggregate
help predict => 0 usage: neucrowd predict
help predcit => 2 Did you mean predict?
zzz => 2 Commands: report, aggregate, relabel, merge, gold, convert, run, predict.
=> 0 relabel    list the labels to collect next
--help => 0 Flags without a command are those of `run`
"""


@pytest.mark.parametrize("line", SUB_COMMANDS.strip().splitlines())
def test_sub_commands(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, _, expected = line.partition("=> ")
    code, message = expected.split(maxsplit=1)
    monkeypatch.setattr(sys, "argv", ["neucrowd", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        console_main()
    assert ended.value.code == int(code) and message in "".join(capsys.readouterr())


def _library_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(neucrowd_tf.__file__).parent.parent)}
