"""The benchmark of ICED's fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_benchmark_prints_one_json_object(data_dir: Path, repository: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.iced",
        "--json",
        "--rounds=1",
        f"--data_dir={data_dir}",
    ]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["fit_seconds"] > 0
