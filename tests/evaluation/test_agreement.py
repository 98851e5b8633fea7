"""Agreement by pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.agreement import pairs


def test_a_pair_by_hand() -> None:
    """Of four shared instances three are labelled alike: p_o = .75. The first says 0 on two of
    four, the second on three: p_e = .5 .75 + .5 .25 = .5, kappa = .25 / .5 = .5.
    """
    crowd = Annotations.from_dense([[0, 0], [0, 0], [1, 1], [1, 0], [1, -1]])
    (pair,) = pairs(crowd, least=4)
    assert (pair.first, pair.second, pair.shared) == (0, 1, 4)
    assert (pair.same, pair.kappa) == (0.75, pytest.approx(0.5))
    assert pairs(crowd, least=5) == []


def test_they_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((80, 5)) < 0.7, rng.integers(0, 3, (80, 5)), -1)
    result = pairs(Annotations.from_dense(dense), least=1)
    assert len(result) == 10
    assert [pair.kappa for pair in result] == sorted(pair.kappa for pair in result)
    for pair in result:
        both = (dense[:, [pair.first, pair.second]] >= 0).all(axis=1)
        expected = cohen_kappa_score(*dense[both][:, [pair.first, pair.second]].T)
        assert pair.kappa == pytest.approx(expected) and pair.shared == both.sum()


def test_chance_corrected_by_hand() -> None:
    # (.75 - .5) / .5 = .5; full agreement by chance alone says nothing.
    corrected = statistics.chance_corrected([0.75, 1.0], [0.5, 1.0])
    np.testing.assert_allclose(corrected, [0.5, np.nan])
