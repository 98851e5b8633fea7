"""Differences over seeds and instances, from the files of runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.evaluation.intervals import crossed_interval
from neucrowd_tf.evaluation.shared_test import shared_test_interval
from tests.runs import write_run

LABELS = "ab" * 6


def two_methods(tmp_path: Path) -> tuple[list[Path], list[Path], np.ndarray]:
    rng = default_rng(0)
    right = rng.random((2, 3, 12)) < np.array([0.8, 0.5])[:, None, None]
    first, second = (
        [
            write_run(tmp_path / f"{method}/seed-{seed}", values, LABELS, test_digest="one")
            for seed, values in enumerate(runs)
        ]
        for method, runs in enumerate(right)
    )
    return first, second, right.astype(float)


def test_it_is_the_crossed_interval_of_what_was_right(tmp_path: Path) -> None:
    first, second, right = two_methods(tmp_path)
    result = shared_test_interval(first, second, "accuracy")
    assert result == crossed_interval(right[0] - right[1])
    assert shared_test_interval(first, second, "auc") is not None
    # Instances without a label do not count.
    for runs, row in zip((first, second), right, strict=True):
        for folder, values in zip(runs, row, strict=True):
            write_run(folder, values, "????" + LABELS[4:], test_digest="one")
            os.utime(folder / "metrics.json", ns=(1, 1))
    result = shared_test_interval(first, second, "accuracy")
    assert result == crossed_interval((right[0] - right[1])[:, 4:])


@pytest.mark.parametrize("subject", ["digest", "labels", "no digest", "no file", "one seed"])
def test_none_where_the_test_set_is_not_shared(tmp_path: Path, subject: str) -> None:
    first, second, right = two_methods(tmp_path)
    folder, values = second[1], right[1, 1]
    if subject == "digest":
        write_run(folder, values, LABELS, test_digest="another")
    elif subject == "labels":
        write_run(folder, values, LABELS[::-1], test_digest="one")
    elif subject == "no digest":
        write_run(folder, values, LABELS)
    elif subject == "no file":
        (folder / "predictions.csv").unlink()
    else:
        first, second = first[:1], second[:1]
    assert shared_test_interval(first, second, "accuracy") is None
