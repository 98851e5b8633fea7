"""Exports as they are, through the report and as a dataset of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.datasets import table
from neucrowd_tf.io.importers import read_export
from neucrowd_tf.report.__main__ import main as report
from tests.io.importers.exports import EXPORTS, IDS, label_studio_result

Writer = Callable[[Path], Path]


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_report(write: Writer, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the counts of what is left out
        assert report([f"--annotations={write(tmp_path)}", f"--output={output}"]) == 0
    assert "12" in output.read_text()


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_dataset(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path)
    export = read_export(path)
    tasks = sorted(set(export.tasks))
    features, truth = tmp_path / "features.csv", tmp_path / "truth.csv"
    features.write_text("task,x\n" + "".join(f"{task},{i}\n" for i, task in enumerate(tasks)))
    truth.write_text("task,label\n" + "".join(f"{task},{export.labels[0]}\n" for task in tasks))
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        dataset = table.load(
            features=features, annotations=path, test_features=features, test_truth=truth
        )
    assert dataset.annotations.num_annotations == 12 and dataset.annotations.num_annotators == 3
    said = [str(warning.message) for warning in raised if "left out" in str(warning.message)]
    assert len(said) == bool(export.left_out)


@pytest.mark.slow
def test_auto_on_an_export(tmp_path: Path, repository: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    rows = np.column_stack([truth + rng.normal(0, 0.4, 80), rng.normal(size=80)])
    tasks = [
        {
            "id": number,
            "data": {"text": "a"},
            "annotations": [
                {
                    "completed_by": worker,
                    "result": label_studio_result("ny"[label ^ (rng.random() < 0.2)]),
                }
                for worker in range(4)
            ],
        }
        for number, label in enumerate(truth.tolist())
    ]
    export, features = tmp_path / "export.json", tmp_path / "features.csv"
    export.write_text(json.dumps(tasks))
    lines = [f"{number},{a:.4f},{b:.4f}" for number, (a, b) in enumerate(rows.tolist())]
    features.write_text("task,a,b\n" + "\n".join(lines) + "\n")
    flags = ["--dataset=table", f"--features={features}", f"--annotations={export}"]
    command = [sys.executable, "run_experiment.py", *flags, "--method=auto"]
    output = tmp_path / "out"
    done = subprocess.run(
        [*command, f"--output_dir={output}"],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ok" in (output / "results.csv").read_text()
