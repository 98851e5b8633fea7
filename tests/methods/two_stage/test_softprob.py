"""SoftProb: one training example for each label."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.two_stage.softprob import SoftProb
from neucrowd_tf.training.logistic_head import fit_logistic
from tests.crowds import array_of, blobs


def crowd_data(classes: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x, dense, truth = blobs(rows, classes, width=4, apart=1.5, right=0.7, missing=0.3)
    dense[:, 0] = truth
    return x, dense


def test_by_hand_on_one_constant_feature() -> None:
    crowd, x = Annotations.from_votes(array_of("1 3; 0 2; 2 0")), np.zeros((3, 1), np.float32)
    fitted = SoftProb(Cs=(1.0,)).fit(x, crowd)  # the share of positive votes
    assert fitted.predict_proba(x)[0, 1] == pytest.approx(5 / 8, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_equals_one_row_for_each_label(classes: int) -> None:
    x, dense = crowd_data(classes)
    rows, columns = np.nonzero(dense >= 0)
    copies, codes = x[rows].astype(np.float64), dense[rows, columns]
    mean, deviation = copies.mean(axis=0), copies.std(axis=0)
    plain = LogisticRegression(C=0.5, max_iter=1000).fit((copies - mean) / deviation, codes)
    expected = plain.predict_proba((x - mean) / deviation)
    fitted = SoftProb(Cs=(0.5,)).fit(x, Annotations.from_dense(dense, num_classes=classes))
    assert_allclose(fitted.predict_proba(x), expected, atol=2e-3)


def test_votes_alone_suffice_and_a_unanimous_crowd_is_plain_regression() -> None:
    x, dense = crowd_data(2)
    crowd = Annotations.from_dense(dense)
    votes = Annotations.from_votes(crowd.vote_counts())
    first, second = (SoftProb().fit(x, each).predict_proba(x) for each in (crowd, votes))
    assert_array_equal(first, second)
    alone = SoftProb(Cs=(1.0,)).fit(x, dense[:, :1]).predict_proba(x)
    plain = fit_logistic(x, dense[:, 0], 2, Cs=(1.0,)).predict_proba(x)
    assert_allclose(alone, plain, atol=1e-6)
