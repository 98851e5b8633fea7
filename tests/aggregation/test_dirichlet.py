"""Expected logarithms and divergences of Dirichlet distributions, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neucrowd_tf.aggregation.dirichlet import divergence, expected_log
from tests.crowds import array_of


def test_by_hand() -> None:
    """Beta(2, 1) has density 2x: E[log x] = -1/2, E[log(1 - x)] = -3/2, against Beta(1, 1) the
    divergence is E[log 2x] = log 2 - 1/2.
    """
    counts = array_of("2.0 1.0; 1.0 1.0")
    logs = expected_log(counts)
    assert_allclose(logs, array_of("-0.5 -1.5; -1.0 -1.0"))
    prior = np.ones((2, 2))
    assert divergence(counts, prior, logs) == pytest.approx(np.log(2) - 0.5)
    assert_allclose(expected_log(counts.T, axis=0), logs.T)
    assert divergence(counts.T, prior, logs.T, axis=0) == pytest.approx(np.log(2) - 0.5)
    assert divergence(counts, counts, logs) == 0
