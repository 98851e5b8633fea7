"""Label confidence: eq. (1), eq. (2), the prior, and drawing d labels an instance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.rll.confidence import (
    bayesian_confidence,
    beta_parameters,
    mle_confidence,
    subsample_annotations,
)
from tests.cases import raises
from tests.crowds import array_of

VOTES = array_of("0 5; 2 3; 4 1; 0 0")
LABELS = array_of("1 1 0 1")


def test_mle_by_hand() -> None:
    # The paper's two examples (1,1,1,1,1) and (1,1,1,0,0): 5/5 and 3/5. A negative one with 4 of 5
    # votes: 4/5. No votes: 0.
    assert_allclose(mle_confidence(VOTES, LABELS), [1.0, 0.6, 0.8, 0.0], rtol=1e-6)
    # A single vote for the label is all of its votes.
    assert_array_equal(mle_confidence([[1, 0], [0, 1]], np.array([0, 0])), [1.0, 0.0])


def test_bayesian_by_hand() -> None:
    # Prior (1/4, 3/4) of mass 1. Positive: (3/4 + v) / (1 + d): 5.75/6, 3.75/6; without votes 3/4.
    # Negative: (1/4 + 4) / 6.
    parameters = beta_parameters([0.25, 0.75])
    assert_allclose(
        bayesian_confidence(VOTES, LABELS, parameters),
        array_of("5.75/6 3.75/6 4.25/6 0.75"),
        rtol=1e-6,
    )
    # Beta(3, 2) for the positive label: (3 + 5) / 10, (3 + 3) / 10, and for the negative one (2 +
    # 4) / 10.
    fixed = beta_parameters([0.5, 0.5], alpha=3.0, beta=2.0)
    assert_allclose(bayesian_confidence(VOTES, LABELS, fixed), [0.8, 0.6, 0.6, 0.6], rtol=1e-6)


def test_a_class_that_does_not_occur_has_a_proper_prior() -> None:
    result = bayesian_confidence([[2, 0]], np.array([0]), beta_parameters([1.0, 0.0]))
    assert np.isfinite(result).all() and result[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    "arguments", [{"alpha": 1.0}, {"prior": [0.2, 0.3, 0.5], "alpha": 1.0, "beta": 1.0}]
)
def test_wrong_priors(arguments: dict[str, object]) -> None:
    raises(UsageError, "expected", beta_parameters, **{"prior": [0.5, 0.5], **arguments})  # type: ignore[arg-type]


def test_subsample_keeps_d_labels_of_each_instance() -> None:
    rng = default_rng(0)
    dense = rng.integers(0, 3, size=(30, 7))
    dense[rng.random((30, 7)) < 0.4] = -1
    crowd = Annotations.from_dense(dense, num_classes=3)
    block = subsample_annotations(crowd, 3, 0)
    assert block.shape == crowd.shape and block.num_classes == 3
    assert_array_equal(block.vote_counts().sum(axis=1), np.minimum((dense >= 0).sum(axis=1), 3))
    rest = block.to_dense() >= 0
    assert_array_equal(block.to_dense()[rest], dense[rest])
    assert subsample_annotations(crowd, 7, 0).vote_counts().tolist() == crowd.vote_counts().tolist()
    assert subsample_annotations(crowd, 3, 0).to_dense().tolist() == block.to_dense().tolist()
    assert subsample_annotations(crowd, 3, 1).to_dense().tolist() != block.to_dense().tolist()


def test_subsampled_votes_follow_the_hypergeometric_distribution() -> None:
    # 3 of (4, 2, 1): the expected counts are 3 * (4, 2, 1) / 7; with identities or without.
    votes = np.tile([4, 2, 1], (4000, 1))
    crowd = Annotations.from_votes(votes)
    named = Annotations.from_dense(np.tile([0, 0, 0, 0, 1, 1, 2], (4000, 1)))
    for source in (crowd, named):
        drawn = subsample_annotations(source, 3, 5).vote_counts()
        assert (drawn.sum(axis=1) == 3).all() and (drawn <= votes).all()
        # Standard error of each mean: sqrt(3 * p * (1 - p) * 4 / 6 / 4000) < .012.
        assert_allclose(drawn.mean(axis=0), 3 * array_of("4 2 1") / 7, atol=0.05)
        # No 3 of 7 hold two of the third class, and (2, 1, 0) has probability 6 * 2 / 35.
        assert np.mean((drawn == [2, 1, 0]).all(axis=1)) == pytest.approx(12 / 35, abs=0.03)
