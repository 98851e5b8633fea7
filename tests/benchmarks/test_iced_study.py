"""The ICED study: runs that stand are left out, tables have the paper's figures beside ours. No TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.iced_report import interval, table, write_report
from benchmarks.iced_study import append


def test_interval_by_hand() -> None:
    # Mean .5, standard deviation .1, n = 4: t(.975, 3) = 3.1824, half = 3.1824 * .1 / 2 = .1591; values .5 +- .1 / sqrt(4 / 3).
    step = 0.1 / (4 / 3) ** 0.5
    assert interval([0.5 - step, 0.5 + step, 0.5 - step, 0.5 + step]) == "0.5000 ± 0.1591"
    assert interval([0.25]) == "0.2500"


def test_table_has_a_cell_for_every_column() -> None:
    frame = pd.DataFrame({"dataset": ["a", "a"], "method": ["m", "n"], "seed": [0, 0], "accuracy": [0.5, 0.6], "f1": [0.4, None]})
    text = table(frame, ("accuracy", "f1"), {("a", "m", "accuracy"): 0.7})
    assert {line.count("|") for line in text.splitlines()} == {7}
    assert "| a | m | 1 | 0.5000 | 0.7000 | 0.4000 |" in text


def test_runs_that_stand_are_not_run_again(tmp_path: Path) -> None:
    def runs(count: int) -> object:
        for seed in range(count):
            yield {"dataset": "d", "method": "m", "seed": seed}, lambda seed=seed: called.append(seed) or {"accuracy": seed / 10}

    called: list[int] = []
    append(tmp_path / "iced_table2.csv", runs(2))  # type: ignore[arg-type]
    append(tmp_path / "iced_table2.csv", runs(3))  # type: ignore[arg-type]
    assert called == [0, 1, 2]
    assert pd.read_csv(tmp_path / "iced_table2.csv")["accuracy"].tolist() == [0.0, 0.1, 0.2]


def test_report_from_files(tmp_path: Path) -> None:
    rows = {"dataset": ["usps_syn"] * 4, "method": ["iced", "crowd_layer"] * 2, "seed": [0, 0, 1, 1]}
    pd.DataFrame({**rows, "accuracy": [0.9, 0.8, 0.95, 0.85], "f1": [0.9, 0.8, 0.95, 0.85]}).to_csv(tmp_path / "iced_table2.csv", index=False)
    write_report(tmp_path)
    text = (tmp_path / "iced.md").read_text()
    assert "0.9036" in text and "iced - crowd_layer: 0.1000 ± 0.0000 over 2 seeds" in text


@pytest.mark.slow
def test_benchmark_prints_one_json_object(data_dir: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.iced", "--json", "--rounds=1", f"--data_dir={data_dir}"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["fit_seconds"] > 0
