"""What somebody with two CSVs sees: 3,000 rows, 40 annotators of whom ten are planted spammers,
three classes.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.annotations import Annotations, simulation

SIZE, GOOD, BAD, PRIOR = 3000, 30, 10, (0.5, 0.3, 0.2)
SPAMMERS = [f"spam{i}" for i in range(BAD)]


def crowd(seed: int) -> tuple[Annotations, np.ndarray]:
    """About five labels a row, from annotators who are busy to different degrees; and the truth."""
    rng = np.random.default_rng([23, seed])
    truth = rng.choice(3, SIZE, p=PRIOR)
    matrices = np.concatenate(
        [
            simulation.confusion_annotators(GOOD, 3, seed, accuracy=0.75),
            simulation.spammers(BAD, 3, seed),
        ]
    )
    names = [*(f"worker{i}" for i in range(GOOD)), *SPAMMERS]
    rates = 0.125 * rng.uniform(0.4, 1.6, GOOD + BAD)
    tasks = [f"t{i}" for i in range(SIZE)]
    given = simulation.simulate(
        truth,
        matrices,
        seed,
        rates=rates,
        instance_names=tasks,
        annotator_names=names,
        class_names=["cat", "dog", "owl"],
    )
    return given, truth


def _cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@pytest.mark.slow
def test_from_files_to_report_recommendation_and_model_in_one_command(
    tmp_path: Path, repository: Path
) -> None:
    given, truth = crowd(4)
    rng = np.random.default_rng([23, 5])
    features = rng.normal(size=(3, 20))[truth] + 1.2 * rng.normal(size=(SIZE, 20))
    given.to_frame().to_csv(tmp_path / "labels.csv", index=False)
    pd.DataFrame(
        features,
        columns=[f"f{i}" for i in range(20)],
        index=pd.Index(given.instance_names, name="task"),
    ).to_csv(tmp_path / "features.csv")
    table = [
        f"--features={tmp_path / 'features.csv'}",
        f"--annotations={tmp_path / 'labels.csv'}",
        f"--output_dir={tmp_path / 'runs'}",
    ]
    command = [
        sys.executable,
        "run_experiment.py",
        "--dataset=table",
        *table,
        "--method=auto",
        "--export",
    ]
    began = time.monotonic()
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert time.monotonic() - began < 300
    folder = tmp_path / "runs" / "table" / "auto" / "seed-0"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Recommendation:" in page
    assert len(page.encode()) < 5_000_000
    assert all(f">{name}<" in page for name in SPAMMERS)
    said = done.stdout + done.stderr
    assert "Recommended: " in said and ("interval" in said or "No other method" in said)
    scored = tmp_path / "scored.csv"
    model = [
        f"--model={folder / 'saved_model'}",
        f"--features={tmp_path / 'features.csv'}",
        f"--output={scored}",
    ]
    subprocess.run(
        [sys.executable, "-m", "neucrowd_tf.predict", *model],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    header, *rows = _cells(scored)
    assert header == ["task", "predicted", "p_cat", "p_dog", "p_owl"]
    assert [row[0] for row in rows] == given.instance_names.tolist()
    right = np.mean(
        [row[1] == given.class_names[label] for row, label in zip(rows, truth, strict=True)]
    )
    assert right > 0.85  # by the truth, which no method has seen
