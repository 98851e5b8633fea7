"""MBEM: the bootstrapped posterior by hand and against a naive loop, and the estimator."""

from __future__ import annotations

import pytest

from baselines.mbem import bootstrapped_posterior
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of


def test_posterior_by_hand() -> None:
    # Two annotators, predictions (0, 0, 1, 1). Annotator 0 says 0 0 1 0: errors [[1, 0], [.5, .5]]
    # before smoothing; annotator 1 says 0 1 1 1: [[.5, .5], [0, 1]]. With pseudo-count 1: [[3/4,
    # 1/4], [1/2, 1/2]] and [[1/2, 1/2], [1/4, 3/4]].
    annotations = Annotations.from_dense(array_of("0 0; 0 1; 1 1; 0 1"))
    posterior, prior, errors = bootstrapped_posterior(annotations, array_of("0 0 1 1"), 1.0)
    assert prior == pytest.approx([0.5, 0.5])
    assert errors[0] == pytest.approx(array_of("3/4 1/4; 1/2 1/2"))
    assert errors[1] == pytest.approx(array_of("1/2 1/2; 1/4 3/4"))
    # Labels (0, 0): 3/4 * 1/2 = 3/8 against 1/2 * 1/4 = 1/8.
    assert posterior[0] == pytest.approx([0.75, 0.25])
    # Labels (0, 1): 3/4 * 1/2 = 3/8 against 1/2 * 3/4 = 3/8.
    assert posterior[1] == pytest.approx([0.5, 0.5])
