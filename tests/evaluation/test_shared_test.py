"""Differences over seeds and instances, from the files of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.evaluation.intervals import crossed_interval
from neucrowd_tf.evaluation.shared_test import shared_test_interval

TRUTH = np.arange(12) % 2


def write_run(
    folder: Path, right: np.ndarray, *, digest: str | None = "one", labels: np.ndarray = TRUTH
) -> Path:
    """Writes a run that is right where `right` says so."""
    folder.mkdir(parents=True, exist_ok=True)
    positive = np.where(right.astype(bool) == (TRUTH == 1), 0.75, 0.25)
    rows = [
        f"t{i},{'' if label < 0 else 'ab'[label]},{'ab'[int(p > 0.5)]},{1 - p},{p}"
        for i, (label, p) in enumerate(zip(labels, positive, strict=True))
    ]
    (folder / "predictions.csv").write_text("task,label,predicted,p_a,p_b\n" + "\n".join(rows))
    metrics = {} if digest is None else {"test_digest": digest}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


def two_methods(tmp_path: Path) -> tuple[list[Path], list[Path], np.ndarray]:
    rng = np.random.default_rng(0)
    right = rng.random((2, 3, 12)) < np.array([0.8, 0.5])[:, None, None]
    folders = [
        [write_run(tmp_path / f"{name}/seed-{s}", right[m, s]) for s in range(3)]
        for m, name in enumerate("xy")
    ]
    return folders[0], folders[1], right.astype(float)


def test_it_is_the_crossed_interval_of_what_was_right(tmp_path: Path) -> None:
    first, second, right = two_methods(tmp_path)
    result = shared_test_interval(first, second, "accuracy")
    assert result == crossed_interval(right[0] - right[1])
    assert shared_test_interval(first, second, "auc") is not None
    # Instances without a label do not count.
    unknown = np.where(np.arange(12) < 4, -1, TRUTH)
    for runs, row in zip((first, second), right, strict=True):
        for folder, values in zip(runs, row, strict=True):
            write_run(folder, values, labels=unknown)
            os.utime(folder / "metrics.json", ns=(1, 1))
    result = shared_test_interval(first, second, "accuracy")
    assert result == crossed_interval((right[0] - right[1])[:, 4:])


@pytest.mark.parametrize("subject", ["digest", "labels", "no digest", "no file", "one seed"])
def test_none_where_the_test_set_is_not_shared(tmp_path: Path, subject: str) -> None:
    first, second, right = two_methods(tmp_path)
    folder, values = second[1], right[1, 1]
    if subject == "digest":
        write_run(folder, values, digest="another")
    elif subject == "labels":
        write_run(folder, values, labels=TRUTH[::-1])
    elif subject == "no digest":
        write_run(folder, values, digest=None)
    elif subject == "no file":
        (folder / "predictions.csv").unlink()
    else:
        first, second = first[:1], second[:1]
    assert shared_test_interval(first, second, "accuracy") is None
