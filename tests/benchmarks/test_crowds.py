"""The labels that a thinned crowd keeps."""

from __future__ import annotations

import numpy as np

from benchmarks.crowds import thinned
from neucrowd_tf.annotations import Annotations


def test_at_most_so_many_labels_of_each_text() -> None:
    dense = np.array([[0, 1, 0, 1], [1, -1, -1, -1], [0, 0, -1, 1]])
    crowd = Annotations.from_dense(dense)
    draws = [thinned(crowd, 2, np.random.default_rng(seed)) for seed in range(8)]
    for few in draws:
        assert np.bincount(few.instances).tolist() == [2, 1, 2]
        assert (dense[few.instances, few.annotators] == few.labels).all()
    assert len({tuple(few.annotators) for few in draws}) > 1
