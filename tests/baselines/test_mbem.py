"""MBEM: the bootstrapped posterior by hand and against a naive loop, and the estimator."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.mbem import bootstrapped_posterior
from neucrowd_tf.annotations import Annotations


def test_posterior_by_hand() -> None:
    # Two annotators, predictions (0, 0, 1, 1). Annotator 0 says 0 0 1 0: errors [[1, 0], [.5, .5]]
    # before smoothing; annotator 1 says 0 1 1 1: [[.5, .5], [0, 1]]. With pseudo-count 1: [[3/4,
    # 1/4], [1/2, 1/2]] and [[1/2, 1/2], [1/4, 3/4]].
    annotations = Annotations.from_dense([[0, 0], [0, 1], [1, 1], [0, 1]])
    posterior, prior, errors = bootstrapped_posterior(annotations, np.array([0, 0, 1, 1]), 1.0)
    assert prior == pytest.approx([0.5, 0.5])
    assert errors[0] == pytest.approx(np.array([[3 / 4, 1 / 4], [1 / 2, 1 / 2]]))
    assert errors[1] == pytest.approx(np.array([[1 / 2, 1 / 2], [1 / 4, 3 / 4]]))
    # Labels (0, 0): 3/4 * 1/2 = 3/8 against 1/2 * 1/4 = 1/8.
    assert posterior[0] == pytest.approx([0.75, 0.25])
    # Labels (0, 1): 3/4 * 1/2 = 3/8 against 1/2 * 3/4 = 3/8.
    assert posterior[1] == pytest.approx([0.5, 0.5])


def test_posterior_against_a_naive_loop() -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(-1, 3, (40, 5))
    dense[:, 0] = rng.integers(3, size=40)
    annotations = Annotations.from_dense(dense, num_classes=3)
    predicted = rng.integers(3, size=40)
    posterior, prior, errors = bootstrapped_posterior(annotations, predicted, 0.5)
    for j in range(5):
        for true in range(3):
            seen = [dense[i, j] for i in range(40) if predicted[i] == true and dense[i, j] >= 0]
            assert errors[j, true] == pytest.approx(
                [(seen.count(s) + 0.5) / (len(seen) + 1.5) for s in range(3)]
            )
    for i in range(40):
        scores = [
            prior[t] * np.prod([errors[j, t, dense[i, j]] for j in range(5) if dense[i, j] >= 0])
            for t in range(3)
        ]
        assert posterior[i] == pytest.approx(np.array(scores) / sum(scores))
    # What the predictions do not contain, the posterior does not either.
    assert bootstrapped_posterior(annotations, np.zeros(40, dtype=int), 0.5)[0][
        :, 0
    ] == pytest.approx(np.ones(40))
