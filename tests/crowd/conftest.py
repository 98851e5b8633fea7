"""A small crowd: three well separated classes and annotators of different skill."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations


def make_crowd(
    n: int = 120, classes: int = 3, annotators: int = 6, seed: int = 0, share: float = 0.5
):
    """Returns features `[n, 5]`, truth and annotations; annotator 0 swaps the first two classes."""
    rng = np.random.default_rng([seed, 1])
    truth = rng.integers(classes, size=n)
    features = rng.normal(size=(n, 5)).astype(np.float32)
    features[np.arange(n), truth] += 4.0
    dense = np.where(
        rng.random((n, annotators)) < 0.85,
        truth[:, None],
        rng.integers(classes, size=(n, annotators)),
    )
    swapped = np.arange(classes)
    swapped[[0, 1]] = 1, 0
    dense[:, 0] = swapped[truth]
    dense[rng.random((n, annotators)) > share] = -1
    dense[np.arange(n), rng.integers(1, annotators, size=n)] = truth
    return features, truth, Annotations.from_dense(dense, num_classes=classes)


@pytest.fixture(scope="session")
def crowd():
    return make_crowd()
