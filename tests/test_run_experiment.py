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

SMALL = (
    "--hparam=epochs=2",
    "--hparam=steps_per_epoch=2",
    "--hparam=batch_size=16",
    "--hparam=hidden_units=[8,4]",
)


def command(repository: Path, *flags: str, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run_experiment.py", *flags],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--dataset=breast_cancer", "--metod=mv_lr"],
            "error: --metod: expected a flag of this command",
        ),
        (["--dataset=breast_cancer", "--method=mv_lr", "--seed=x"], "error: flag --seed=x"),
        (["--dataset=breast_cancer", "--method=mv_rl"], "did you mean 'mv_lr'"),
        (
            ["--dataset=breast_cancer", "--method=mv_lr", "--distribute=multi_worker"],
            "error: --distribute: expected none or mirrored",
        ),
    ],
)
def test_bad_flags(repository: Path, tmp_path: Path, flags: list[str], message: str) -> None:
    done = command(repository, *flags, f"--output_dir={tmp_path / 'out'}")
    assert (
        done.returncode == 2
        and message in done.stderr
        and len(done.stderr.splitlines()) == 1
        and done.stdout == ""
    )
    assert not (tmp_path / "out").exists()


def test_help_and_list(repository: Path) -> None:
    shown = command(repository, "--help")
    assert shown.returncode == 0 and "--hparam" in shown.stdout and "--dataset" in shown.stdout
    listed = command(repository, "--list")
    assert (
        listed.returncode == 0
        and "  mv_lr " in listed.stdout
        and "  breast_cancer " in listed.stdout
        and listed.stderr == ""
    )


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
    assert again.returncode == 2 and "holds a finished run" in again.stderr


def test_a_flagfile_in_another_encoding_is_one_line(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "flags").write_bytes("--dataset=bréast\n".encode("latin-1"))
    done = command(repository, f"--flagfile={tmp_path / 'flags'}")
    assert (
        done.returncode == 2
        and done.stderr == "error: --flagfile: expected text in UTF-8, received other bytes\n"
    )


def test_mirrored_and_mixed_precision(repository: Path, tmp_path: Path) -> None:
    base = ["--dataset=breast_cancer", "--method=neucrowd", *SMALL, "--device=cpu"]
    done = command(
        repository,
        *base,
        f"--output_dir={tmp_path / 'mirrored'}",
        "--distribute=mirrored",
        "--logical_cpus=2",
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
            json.loads((run / f"{part}.json").read_text()) for part in ("metrics", "config")
        )
        assert 0.4 < metrics["test"]["accuracy"] <= 1 and config["settings"]["mixed_precision"] == (
            name == "mixed"
        )
        predictions = pd.read_csv(run / "predictions.csv")
        assert np.isfinite(predictions[["p_benign", "p_malignant"]].to_numpy()).all()
        assert (run / "saved_model" / "saved_model.pb").exists()


@pytest.mark.gpu
def test_gpu(repository: Path, tmp_path: Path) -> None:
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        pytest.skip("this machine has no GPU")
    done = command(
        repository,
        "--dataset=breast_cancer",
        "--method=neucrowd",
        *SMALL,
        "--device=gpu",
        f"--output_dir={tmp_path}",
    )
    assert done.returncode == 0, done.stderr


def test_jobs_change_no_byte(repository: Path, tmp_path: Path) -> None:
    base = ["--dataset=breast_cancer", "--method=neucrowd,mv_lr", *SMALL]
    for jobs in (1, 2):
        done = command(repository, *base, f"--output_dir={tmp_path / str(jobs)}", f"--jobs={jobs}")
        assert done.returncode == 0, done.stderr
    written = [
        path
        for path in sorted((tmp_path / "1").rglob("*.csv"))
        if path.name in ("predictions.csv", "annotators.csv")
    ]
    assert sum(path.name == "predictions.csv" for path in written) == 2
    for path in written:
        assert (
            path.read_bytes() == (tmp_path / "2" / path.relative_to(tmp_path / "1")).read_bytes()
        ), path


def test_what_a_process_made_before_changes_no_byte(repository: Path, tmp_path: Path) -> None:
    """TensorFlow orders sums by names of a graph's nodes, which Keras numbers; CrowdInG's game is
    where that showed.
    """
    short = [
        f"--hparam={name}=3"
        for name in (
            "epochs",
            "pretrain_epochs",
            "generator_pretrain_epochs",
            "discriminator_pretrain_passes",
        )
    ]
    base = ["--dataset=breast_cancer", "--method=crowding", *short, "--noreport"]
    for name, seeds in {"second": ["--seed=0", "--num_runs=2"], "first": ["--seed=1"]}.items():
        done = command(repository, *base, *seeds, f"--output_dir={tmp_path / name}")
        assert done.returncode == 0, done.stderr
    first, second = (
        tmp_path / name / "breast_cancer" / "crowding" / "seed-1" for name in ("first", "second")
    )
    for file in ("history.json", "predictions.csv"):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file


def test_a_table_with_formulas_in_its_ids(repository: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    tasks = [f"=task{i}" for i in range(40)]
    (tmp_path / "f.csv").write_text(
        "\n".join(
            [
                "task,a",
                *(f"{t},{rng.normal() + 3 * y:.3f}" for t, y in zip(tasks, truth, strict=True)),
            ]
        )
        + "\n"
    )
    votes = [
        f"{t},{w},{'+yes' if y else 'no'}"
        for t, y in zip(tasks, truth, strict=True)
        for w in ("@w", "v")
    ]
    (tmp_path / "a.csv").write_text("\n".join(["task,worker,label", *votes]) + "\n")
    table = [f"--features={tmp_path / 'f.csv'}", f"--annotations={tmp_path / 'a.csv'}"]
    done = command(
        repository,
        "--dataset=table",
        "--method=mv_lr,ds_lr",
        *table,
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    run = tmp_path / "out" / "table" / "ds_lr" / "seed-0"
    predictions, annotators = (
        pd.read_csv(run / "predictions.csv"),
        pd.read_csv(run / "annotators.csv"),
    )
    assert predictions["task"].str.startswith("'=task").all() and set(predictions["predicted"]) <= {
        "'+yes",
        "no",
    }
    assert annotators["annotator"].tolist() == ["'@w", "v"] and "recall_no" in annotators


def test_bad_tables_are_one_line(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("task,a\n1,2\n2,x\n")
    (tmp_path / "a.csv").write_text("task,worker,label\n1,w,a\n2,w,b\n")
    table = [
        f"--features={tmp_path / 'f.csv'}",
        f"--annotations={tmp_path / 'a.csv'}",
        f"--output_dir={tmp_path / 'out'}",
    ]
    done = command(repository, "--dataset=table", "--method=mv_lr", *table)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "f.csv" in done.stderr, (
        done.stderr
    )
    assert not list(tmp_path.rglob("results.csv"))


@pytest.mark.slow
def test_hotel_as_the_paper_splits_it(repository: Path, tmp_path: Path, data_dir: Path) -> None:
    flags = [
        "--dataset=hotel",
        "--method=neucrowd,mv_lr",
        "--num_runs=5",
        f"--data_dir={data_dir}",
        f"--output_dir={tmp_path}",
    ]
    done = command(repository, *flags, timeout=1200)
    assert done.returncode == 0, done.stderr
    summary = pd.read_csv(tmp_path / "summary.csv").set_index("method")
    assert (
        summary.loc["neucrowd", "accuracy_mean"] >= 0.84
        and summary.loc["neucrowd", "auc_mean"] >= 0.91
    )
    assert summary.loc["neucrowd", ["accuracy_paper", "auc_paper"]].tolist() == [0.871, 0.928]


def test_the_console_command_knows_the_library(tmp_path: Path) -> None:
    code = (
        "import sys; from neucrowd_tf.harness.cli import console_main; sys.argv = ['neucrowd',"
        " '--list']; console_main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=_library_path(),
    )
    assert done.returncode == 0 and "  neucrowd " in done.stdout and "  mv_lr " not in done.stdout


def _library_path() -> dict[str, str]:
    import neucrowd_tf

    return {**os.environ, "PYTHONPATH": str(Path(neucrowd_tf.__file__).parent.parent)}
