"""AggNet: the M-step and the E-step against loops and by hand, and a fit."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.aggnet import AggNet, crowd_posterior, soft_confusions
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError

RNG = np.random.default_rng(0)
DENSE = np.array([[0, 1, -1], [1, 1, 0], [-1, 0, 2], [2, -1, 2], [0, 0, 0]])
CROWD = Annotations.from_dense(DENSE, num_classes=3)
POSTERIOR = RNG.dirichlet(np.ones(3), size=5)


def test_confusions_by_hand() -> None:
    # One annotator: labels 0, 0, 1 where class 0 has posterior 1, .5, 0: row 0 counts 1.5 and 0,
    # row 1 counts .5 and 1.
    crowd = Annotations.from_dense([[0], [0], [1]], num_classes=2)
    errors = soft_confusions(crowd, np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), 0.0)
    np.testing.assert_allclose(errors, [[[1.0, 0.0], [1 / 3, 2 / 3]]])


def test_confusions_equal_a_naive_loop() -> None:
    expected = np.full((3, 3, 3), 0.2)
    for n in range(5):
        for r in range(3):
            if DENSE[n, r] >= 0:
                for c in range(3):
                    expected[r, c, DENSE[n, r]] += POSTERIOR[n, c]
    expected /= expected.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(soft_confusions(CROWD, POSTERIOR, 0.2), expected)


def test_posterior_equals_a_naive_loop() -> None:
    errors, predicted = soft_confusions(CROWD, POSTERIOR, 0.2), RNG.dirichlet(np.ones(3), size=5)
    expected = predicted.copy()
    for n in range(5):
        for r in range(3):
            if DENSE[n, r] >= 0:
                expected[n] *= errors[r, :, DENSE[n, r]]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(crowd_posterior(CROWD, errors, predicted), expected, rtol=1e-6)


def test_posterior_of_uninformative_annotators_is_the_prediction() -> None:
    predicted = RNG.dirichlet(np.ones(3), size=5)
    np.testing.assert_allclose(
        crowd_posterior(CROWD, np.full((3, 3, 3), 1 / 3), predicted), predicted, rtol=1e-6
    )


def test_a_fit_learns_the_classes_and_who_errs() -> None:
    truth = np.arange(90) % 3
    x = (2.5 * np.eye(3, 5)[truth] + RNG.normal(size=(90, 5))).astype(np.float32)
    good = np.where(RNG.random((90, 3)) < 0.85, truth[:, None], RNG.integers(0, 3, (90, 3)))
    dense = np.concatenate(
        [good, RNG.integers(0, 3, (90, 1))], axis=1
    )  # the last annotator guesses
    model = AggNet(
        base={"hidden_units": (16,), "dropout": 0.0},
        learning_rate=1e-2,
        batch_size=30,
        rounds=2,
        epochs=15,
    ).fit(x, Annotations.from_dense(dense))
    assert model.score(x, truth) > 0.85 and np.mean(model.labels_ == truth) > 0.85
    right = np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)
    assert right[3] < right[:3].min() - 0.2
    with pytest.raises(UsageError, match="rounds"):
        AggNet(rounds=0).fit(x, Annotations.from_dense(dense))
