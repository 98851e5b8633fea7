"""The posterior of crowd and classifier: by hand, by its formulas, and what leaves it as it is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation.crowd_and_classifier import (
    alternate,
    combine,
    error_matrices,
    evidence,
    log_likelihoods,
)
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of, one_hot, softmax


def test_one_turn_by_hand() -> None:
    # Annotator 0 labels both instances 0, annotator 1 only the second, 1. From certainty in classes
    # 0 and 1 with pseudo-counts of one half: annotator 0 has rows (1.5, .5)/2 and (1.5, .5)/2,
    # annotator 1 even odds for class 0 and (.5, 1.5)/2 for class 1.
    one_hot = evidence(Annotations.from_dense(array_of("0 -1; 0 1")))
    prior = array_of("0.8 0.2; 0.5 0.5")
    together = alternate(one_hot, prior, np.eye(2), pseudo_counts=0.5, max_iter=1)
    assert_allclose(together.errors, [[[0.75, 0.25], [0.75, 0.25]], [[0.5, 0.5], [0.25, 0.75]]])
    assert_allclose(np.exp(together.log_likelihoods), [[0.75] * 2, [0.375, 0.5625]])
    assert_allclose(together.probas, array_of("0.8 0.2; 0.4 0.6"))


def test_two_turns(crowd: Annotations) -> None:
    rng = default_rng(0)
    model, beliefs = rng.dirichlet(np.ones(3), (2, 300))
    together = alternate(evidence(crowd), model, beliefs, pseudo_counts=0.1, max_iter=2)
    labels = one_hot(crowd.to_dense(), 3)
    for _ in range(2):
        counts = 0.1 + np.einsum("ic,irl->rcl", beliefs, labels)
        errors = counts / counts.sum(axis=2, keepdims=True)
        beliefs = softmax(np.log(model) + np.einsum("irl,rcl->ic", labels, np.log(errors)))
    assert_allclose(together.errors, errors)
    assert_allclose(together.probas, beliefs)


def test_a_prior_of_the_posterior_and_pseudo_counts_of_the_counts(crowd: Annotations) -> None:
    one_hot, start = evidence(crowd), np.full((300, 3), 1 / 3)
    shares = alternate(
        one_hot,
        lambda posterior: posterior.mean(axis=0),
        np.eye(3)[crowd.vote_counts().argmax(axis=1)],
        pseudo_counts=lambda counts: counts.sum(axis=0) + 1.0,
        max_iter=500,
    )
    again = combine(shares.log_likelihoods, shares.probas.mean(axis=0))
    assert_allclose(again, shares.probas, atol=1e-9)  # it has settled
    errors = error_matrices(one_hot, start, lambda counts: counts.sum(axis=0))
    assert_allclose(errors.sum(axis=2), 1)


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_annotators_who_say_nothing_leave_the_classifier(crowd: Annotations, scale: float) -> None:
    model = default_rng(1).dirichlet(np.ones(3), 300)
    even = np.full((crowd.num_annotators, 3, 3), 1 / 3)
    likely = log_likelihoods(evidence(crowd), even)
    assert_allclose(combine(likely, scale * model), model, atol=1e-12)


def test_vote_counts_are_one_annotators() -> None:
    one_hot = evidence(Annotations.from_votes(array_of("2 1; 0 3")))
    assert_array_equal(one_hot.toarray(), array_of("2 1; 0 3"))
    assert_allclose(error_matrices(one_hot, np.eye(2), 0.0), [[[2 / 3, 1 / 3], [0, 1]]])
