"""The tables of `auto` by seed, and the labels that a thinned crowd keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.auto_accuracy import KEY, cells
from benchmarks.crowds import thinned
from neucrowd_tf.annotations import Annotations


def test_means_and_paired_differences() -> None:
    values = [("auto", 1, 0.8), ("mv_lr", 1, 0.7), ("auto", 2, 0.9), ("mv_lr", 2, 0.7)]
    rows = [("music", name, seed, 0, "as_trained", x) for name, seed, x in values]
    rows.append(("music", "mv_lr", 3, 0, "as_trained", 0.7))  # without auto
    result = list(cells(pd.DataFrame(rows, columns=[*KEY, "accuracy"])))
    # The half width of two values is t(.975, 1) = 12.706 times half of their difference.
    shown = "0.700 [0.700, 0.700] (3)", "+0.150 [-0.485, +0.785] (2)"
    assert result == [
        ("music", "no", "as_trained", "auto", "0.850 [0.215, 1.485] (2)", ""),
        ("music", "no", "as_trained", "mv_lr", *shown),
    ]


def test_at_most_so_many_labels_of_each_text() -> None:
    dense = np.array([[0, 1, 0, 1], [1, -1, -1, -1], [0, 0, -1, 1]])
    crowd = Annotations.from_dense(dense)
    draws = [thinned(crowd, 2, np.random.default_rng(seed)) for seed in range(8)]
    for few in draws:
        assert np.bincount(few.instances).tolist() == [2, 1, 2]
        assert (dense[few.instances, few.annotators] == few.labels).all()
    assert len({tuple(few.annotators) for few in draws}) > 1
