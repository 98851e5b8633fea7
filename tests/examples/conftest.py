"""Sixty instances with the votes of seven annotators, and what compares two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.training.representation import EmbeddingData


@pytest.fixture(scope="session")
def voted() -> tuple[EmbeddingData, Any]:
    """What an embedding is trained on, and the numbers of positive votes."""
    rng = default_rng(5)
    positive = rng.integers(0, 8, size=60)
    labels = (positive > 3).astype(np.int64)
    x = (rng.normal(size=(60, 8)) + labels[:, None]).astype(np.float32)
    crowd = Annotations.from_votes(np.stack([7 - positive, positive], axis=1))
    return EmbeddingData(x, labels, crowd, x[:20], labels[:20]), positive


@pytest.fixture(scope="session")
def alike() -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """Compares values one by one, to 1e-5 of the largest entry; none may be all zeros."""

    def compare(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
        for one, other in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
            assert one.shape == other.shape and np.any(other)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * np.abs(other).max())

    return compare
