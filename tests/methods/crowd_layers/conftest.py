"""A small crowd: three well separated classes and annotators of different skill."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of, noisy_labels


@pytest.fixture(scope="session")
def crowd():
    """Features `[120, 5]`, truth and annotations; annotator 0 swaps the first two classes."""
    rng = default_rng([0, 1])
    truth = rng.integers(3, size=120)
    features = rng.normal(size=(120, 5)).astype(np.float32)
    features[np.arange(120), truth] += 4.0
    dense = noisy_labels(rng, truth, 6, 0.85, 3)
    dense[:, 0] = array_of("1 0 2")[truth]
    dense[rng.random((120, 6)) > 0.5] = -1
    dense[np.arange(120), rng.integers(1, 6, size=120)] = truth
    return features, truth, Annotations.from_dense(dense, num_classes=3)
