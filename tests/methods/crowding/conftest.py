"""A crowd small enough to see through, and one estimator whose compiled networks all tests
share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowding import CrowdInG
from tests.crowds import Crowd, corners, noisy_labels

N, R, C, D = 48, 5, 3, 4


def make_crowd(seed: int = 0) -> Crowd:
    """Three classes around three points; annotator 4 labels nearly everything, the others about a
    quarter, 80 % right.
    """
    rng = default_rng(seed)
    truth = np.arange(N) % C
    features = corners(rng, truth, D, 2.5)
    dense = noisy_labels(rng, truth, R, 0.8, C)
    seen = rng.random((N, R)) < 0.25
    seen[:, 4] = rng.random(N) < 0.9
    seen[~seen.any(axis=1), 4] = True
    return features, Annotations.from_dense(np.where(seen, dense, -1), num_classes=C), truth


ARGUMENTS: dict[str, Any] = {
    "base": {"hidden_units": (16,), "dropout": 0.1},
    "pretrain_epochs": 20,
    "pretrain_learning_rate": 1e-2,
    "pretrain_batch": 16,
    "game_pretrain_epochs": 2,
    "embedding_size": 6,
    "noise_size": 3,
    "passes": 2,
    "batch_size": 20,
    "epochs": 3,
}


@pytest.fixture(scope="session")
def crowd() -> Crowd:
    return make_crowd()


@pytest.fixture(scope="session")
def estimator() -> CrowdInG:
    return CrowdInG(**ARGUMENTS)
