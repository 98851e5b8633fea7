"""SoftProb: one training example for each label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.linear import fit_logistic
from neucrowd_tf.two_stage.softprob import SoftProb


def crowd_data(classes: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(rows) % classes
    x = (rng.normal(size=(rows, 4)) + 1.5 * np.eye(classes, 4)[truth]).astype(np.float32)
    dense = np.where(
        rng.random((rows, 5)) < 0.7, truth[:, None], rng.integers(classes, size=(rows, 5))
    )
    dense[rng.random((rows, 5)) < 0.3] = -1
    dense[:, 0] = truth
    return x, dense


def test_by_hand_on_one_constant_feature() -> None:
    # Nothing to learn from features: the probability is the share of positive votes, 5 of 8. With
    # shares, the mean of the instances' shares: (3/4 + 2/2 + 0/2) / 3 = 7/12.
    crowd = Annotations.from_votes([[1, 3], [0, 2], [2, 0]])
    x = np.zeros((3, 1), np.float32)
    assert SoftProb(Cs=(1.0,)).fit(x, crowd).predict_proba(x)[0, 1] == pytest.approx(
        5 / 8, abs=1e-3
    )
    assert SoftProb(weighting="shares", Cs=(1.0,)).fit(x, crowd).predict_proba(x)[
        0, 1
    ] == pytest.approx(7 / 12, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_equals_one_row_for_each_label(classes: int) -> None:
    x, dense = crowd_data(classes)
    rows, columns = np.nonzero(dense >= 0)
    copies, codes = x[rows].astype(np.float64), dense[rows, columns]
    mean, deviation = copies.mean(axis=0), copies.std(axis=0)
    plain = LogisticRegression(C=0.5, max_iter=1000).fit((copies - mean) / deviation, codes)
    fitted = SoftProb(Cs=(0.5,)).fit(x, Annotations.from_dense(dense, num_classes=classes))
    np.testing.assert_allclose(
        fitted.predict_proba(x), plain.predict_proba((x - mean) / deviation), atol=2e-3
    )


def test_votes_alone_suffice_and_a_unanimous_crowd_is_plain_regression() -> None:
    x, dense = crowd_data(2)
    crowd = Annotations.from_dense(dense)
    np.testing.assert_array_equal(
        SoftProb().fit(x, crowd).predict_proba(x),
        SoftProb().fit(x, Annotations.from_votes(crowd.vote_counts())).predict_proba(x),
    )
    alone = SoftProb(Cs=(1.0,)).fit(x, dense[:, :1]).predict_proba(x)
    np.testing.assert_allclose(
        alone, fit_logistic(x, dense[:, 0], 2, Cs=(1.0,)).predict_proba(x), atol=1e-6
    )


def test_wrong_weighting() -> None:
    x, dense = crowd_data(2)
    with pytest.raises(UsageError, match="weighting"):
        SoftProb(weighting="none").fit(x, dense)
