"""Runs that are killed with SIGKILL at any moment and resumed end where an unbroken run ends, byte
for byte.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import default_rng
from numpy.testing import assert_allclose

from tests.cases import cases
from tests.processes import python

KILLED = -signal.SIGKILL
SMALL = (
    "--hparam=epochs=3",
    "--hparam=steps_per_epoch=2",
    "--hparam=batch_size=16",
    "--hparam=hidden_units=[8,4]",
    "--checkpoint_seconds=0",
)
# From the first file to the last: a file's second checkpoint, each result, the SavedModel, the row
# of results.csv.
MOMENTS = cases("""
["config.json", 1],
["train.npz", 1],
["train.npz", 2],
["predictions.csv", 1],
["annotators.csv", 1],
["saved_model", 1],
["metrics.json", 1],
["results.csv", 1],
["summary.csv", 1]
""")


def drive(repository: Path, moments: list[tuple[str, int]], *flags: str) -> list[int]:
    arguments = ("tests/kill_driver.py", json.dumps(moments), *flags)
    done = python(repository, *arguments, timeout=600, check=True)
    codes: list[int] = json.loads(done.stdout.strip().splitlines()[-1])
    return codes


def outcome(folder: Path) -> tuple[Any, ...]:
    """Returns what has to be the same: the files' bytes, and the metrics without their timings."""
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics.pop("timings")
    return (
        (folder / "predictions.csv").read_bytes(),
        (folder / "annotators.csv").read_bytes(),
        json.dumps(metrics),
    )


def rows(folder: Path) -> list[list[Any]]:
    frame = pd.read_csv(folder / "results.csv").drop(columns=["fit_seconds", "peak_memory_mb"])
    return frame.to_numpy().tolist()


def same_export(first: Path, second: Path) -> None:
    import tensorflow as tf

    x = default_rng(0).normal(size=(5, 30)).astype(np.float32)
    one, two = (
        tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"](features=x)
        for folder in (first, second)
    )
    assert set(one) == {"probabilities", "embedding"}
    for name in one:
        assert_allclose(one[name], two[name], atol=1e-6)


def flags(out: Path, method: str, *more: str) -> list[str]:
    return ["--dataset=breast_cancer", f"--method={method}", f"--output_dir={out}", *SMALL, *more]


def test_killed_before_a_file_and_resumed(repository: Path, tmp_path: Path) -> None:
    more = ("--export", "--noreport")
    (code,) = drive(repository, [("", 0)], *flags(tmp_path / "whole", "neucrowd", *more))
    assert code == 0
    codes = drive(
        repository, [*MOMENTS, ("", 0)], *flags(tmp_path / "broken", "neucrowd", *more, "--resume")
    )
    assert codes == [KILLED] * len(MOMENTS) + [0]
    whole, broken = (
        tmp_path / name / "breast_cancer" / "neucrowd" / "seed-0" for name in ("whole", "broken")
    )
    assert outcome(whole) == outcome(broken)
    assert rows(tmp_path / "whole") == rows(tmp_path / "broken")
    same_export(whole, broken)
    assert not [item for item in broken.iterdir() if item.name.startswith(".")]


def test_auto_with_networks_is_killed_and_resumed(repository: Path, tmp_path: Path) -> None:
    """In its cross-validation (of a crowd layer and of self-training's rounds), in the last fits
    and when it writes.
    """
    moments = [
        *(("train.npz", 2), ("cv-crowd_layer-1.npz", 1), ("cv-dasc_crowd_layer-0.npz", 1)),
        ("metrics.json", 1),
    ]

    def command(out: str, *more: str) -> list[str]:
        return [
            *("--dataset=breast_cancer", "--method=auto", f"--output_dir={tmp_path / out}"),
            '--hparam=methods=["crowd_layer","dasc_crowd_layer"]',
            *("--hparam=jobs=1", "--checkpoint_seconds=0", "--noreport", *more),
        ]

    assert drive(repository, [("", 0)], *command("whole")) == [0]
    codes = drive(repository, [*moments, ("", 0)], *command("broken", "--resume"))
    assert codes == [KILLED] * len(moments) + [0]
    whole, broken = (
        tmp_path / name / "breast_cancer" / "auto" / "seed-0" for name in ("whole", "broken")
    )
    assert outcome(whole) == outcome(broken)


def test_a_missing_export_is_made_from_the_checkpoints(repository: Path, tmp_path: Path) -> None:
    assert drive(repository, [("", 0)], *flags(tmp_path, "neucrowd")) == [0]
    run = tmp_path / "breast_cancer" / "neucrowd" / "seed-0"
    before = {
        name: (run / name).read_bytes()
        for name in ("predictions.csv", "annotators.csv", "metrics.json")
    }
    assert drive(
        repository,
        [("saved_model", 1), ("", 0)],
        *flags(tmp_path, "neucrowd", "--resume", "--export"),
    ) == [KILLED, 0]
    assert {name: (run / name).read_bytes() for name in before} == before
    import tensorflow as tf

    from neucrowd_tf.datasets.bundled import load_cancer

    serve = tf.saved_model.load(str(run / "saved_model")).signatures["serving_default"]
    test = load_cancer(None, 0).test
    written = pd.read_csv(run / "predictions.csv")[["p_benign", "p_malignant"]].to_numpy()
    assert_allclose(serve(features=test.features)["probabilities"], written, atol=1e-5)
