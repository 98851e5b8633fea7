"""A suite that is killed and run again ends with the same bytes as one that was not."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

from tests.processes import python


def _drive(repository: Path, *moments: tuple[str, str]) -> list[list[int]]:
    arguments = ("-m", "tests.reproduction.suite_driver", json.dumps(moments))
    done = python(repository, *arguments, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _tables(out: Path) -> dict[str, bytes]:
    """Returns the tables' bytes.

    Times stand in metrics.json and in the pool's results.csv alone, which is compared without them;
    the commits that made the runs stand in the suite's JSON, and a checkout may move while its
    tests run.
    """
    result = {path.name: path.read_bytes() for path in sorted((out / "results").iterdir())}
    for name in [name for name in result if name.endswith(".json")]:
        result[name] = repr(
            {key: value for key, value in json.loads(result[name]).items() if key != "revisions"}
        ).encode()
    for path in sorted(out.glob("runs/*/results.csv")):
        rows = [
            {k: v for k, v in row.items() if k not in ("fit_seconds", "peak_memory_mb")}
            for row in csv.DictReader(path.open())
        ]
        result[f"{path.parent.name}/results.csv"] = repr(rows).encode()
    return result


def test_killed_twice_a_suite_ends_with_the_same_bytes(tmp_path: Path, repository: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    moments = [("whole", ""), ("killed", "fit 3"), ("killed", "page"), ("killed", "")]
    # The third process of the killed suite has no run left to make.
    assert _drive(repository, *((str(tmp_path / out), moment) for out, moment in moments)) == [
        [10, 6],
        [-signal.SIGKILL, 2],
        [-signal.SIGKILL, 6],
        [0, 6],
    ]
    assert set(_tables(whole)) >= {
        "tiny.csv",
        "tiny.md",
        "tiny.json",
        "tiny_curve.csv",
        "default/results.csv",
        "shift=0.1/results.csv",
    }
    assert _tables(killed) == _tables(whole)
