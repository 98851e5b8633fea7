"""CROWDLAB: weights and probabilities by hand, a naive loop, and what a good model adds."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.aggregation import Crowdlab, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError

DENSE = np.array([[0, 0, 1], [1, 1, -1], [0, -1, -1], [1, 0, 1]])
MODEL = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])


def test_by_hand() -> None:
    found = Crowdlab().fit(DENSE, probabilities=MODEL)
    # Consensus 0, 1, (0), 1. Annotator 0 meets others at 0 (agrees with 1 of 2), 1 (1 of 1) and 3
    # (1 of 2): 3 of 5; annotator 1: 1 of 2, 1 of 1, 0 of 2: 2 of 5; annotator 2: 0 of 2, 1 of 2.
    np.testing.assert_allclose(found.skills_, [3 / 5, 2 / 5, 1 / 4])
    # Of the labels 0, 1, 1 of the three instances with several, guessing 1 is wrong once: 1 / 3.
    # Weights 1 - error / (1 / 3): 1 - 1.2 < 0 for annotator 0 already.
    np.testing.assert_allclose(found.weights_, 1e-6)
    # The model is wrong at the last instance, 1 of 3: weight 0, too; 9 labels, 4 instances.
    np.testing.assert_allclose(found.model_weight_, 1e-6 * np.sqrt(9 / 4))
    # The shares that agree with the consensus: (2/3 + 1 + 2/3) / 3 = 7/9. The first instance:
    # (7/9 + 7/9 + 2/9 + 1.5 * .9) / 4.5 for class 0.
    assert found.probas_[0, 0] == pytest.approx((16 / 9 + 1.35) / 4.5)


def test_agrees_with_loops(crowd: Annotations, truth: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    model = rng.dirichlet(np.ones(3), 300) + 2.0 * np.eye(3)[truth]
    model /= model.sum(axis=1, keepdims=True)
    found = Crowdlab().fit(crowd, probabilities=model)
    dense = crowd.to_dense()
    votes = crowd.vote_counts()
    first = [int(np.argmax(votes[i] + model[i] / 2)) for i in range(300)]
    right = np.mean([votes[i, first[i]] / votes[i].sum() for i in range(300)])
    guess = np.mean(np.array(first) != np.bincount(first).argmax())
    weights = []
    for r in range(crowd.num_annotators):
        pairs = [
            dense[i, r] == dense[i, s]
            for i in range(300)
            for s in range(crowd.num_annotators)
            if s != r and dense[i, r] >= 0 and dense[i, s] >= 0
        ]
        weights.append(max(1 - (1 - np.mean(pairs)) / guess, 1e-6))
    wrong = np.mean(model.argmax(axis=1) != first)
    own = max(1 - wrong / guess, 1e-6) * np.sqrt(5)
    for i in range(20):
        total = own * model[i]
        whole = own
        for r in np.flatnonzero(dense[i] >= 0):
            row = np.full(3, (1 - right) / 2)
            row[dense[i, r]] = right
            total = total + weights[r] * row
            whole += weights[r]
        np.testing.assert_allclose(found.probas_[i], total / whole)
    vote = (MajorityVote().fit(crowd).labels_ == truth).mean()
    assert (found.labels_ == truth).mean() > vote + 0.05  # the model is nearly always right


def test_probabilities_that_cannot_be_used_are_one_error(crowd: Annotations) -> None:
    with pytest.raises(DataError, match="probabilities: expected a model's, of shape"):
        Crowdlab().fit(crowd)
    with pytest.raises(DataError, match=r"received shape \(4, 2\)"):
        Crowdlab().fit(crowd, probabilities=MODEL)
    with pytest.raises(DataError, match="row 1: expected a positive sum"):
        Crowdlab().fit(DENSE, probabilities=MODEL * [[1], [0], [1], [1]])
