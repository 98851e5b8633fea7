"""Intervals against scipy, hand-worked values and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from neucrowd_tf import metrics
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation import bootstrap_intervals, mean_interval, wilson_interval
from neucrowd_tf.evaluation.intervals import weighted_metrics


def test_mean_interval_by_hand_and_by_scipy() -> None:
    # Values 1, 2, 3: mean 2, standard error 1 / sqrt 3, t(.975, 2) = 4.30265: 2 -+ 2.48414.
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.estimate, found.low, found.high) == pytest.approx((2.0, -0.484138, 4.484138))
    values = np.random.default_rng(0).normal(size=9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9).low == pytest.approx(expected.low)
    # With 5 folds the variance is 1/9 + 1/4 instead of 1/9.
    plain, corrected = mean_interval(values), mean_interval(values, test_train_ratio=0.25)
    assert (corrected.high - corrected.low) / (plain.high - plain.low) == pytest.approx(
        math.sqrt((1 / 9 + 1 / 4) * 9)
    )


def test_mean_interval_of_one_value_of_none_and_with_gaps() -> None:
    one = mean_interval([0.5])
    assert one.estimate == 0.5
    assert math.isnan(one.low)
    assert mean_interval([1.0, math.nan, 3.0]) == mean_interval([1.0, 3.0])
    with pytest.raises(DataError, match="at least one value"):
        mean_interval([math.nan])
    with pytest.raises(UsageError, match="confidence"):
        mean_interval([1.0, 2.0], 95)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_wilson_interval_agrees_with_scipy(confidence: float) -> None:
    hits, trials = np.array([0, 1, 5, 10, 93]), np.array([4, 1, 10, 10, 120])
    low, high = wilson_interval(hits, trials, confidence)
    for i in range(len(hits)):
        expected = stats.binomtest(hits[i], trials[i]).proportion_ci(confidence, method="wilson")
        assert (low[i], high[i]) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert [bound.item() for bound in wilson_interval([0], [0])] == [0.0, 1.0]
    with pytest.raises(DataError, match="successes"):
        wilson_interval([3], [2])


def test_bootstrap_agrees_with_the_normal_interval_of_accuracy() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    positive = np.clip(truth * 0.4 + 0.3 + rng.normal(0, 0.25, 400), 0.01, 0.99)
    scores = np.stack([1 - positive, positive], axis=1)
    table = bootstrap_intervals(
        truth, scores, resamples=300, metrics=("accuracy", "auc", "f1_positive")
    )
    assert list(table.index) == ["accuracy", "auc", "f1_positive"]
    accuracy = metrics.classification_metrics(truth, scores, calibration=False)["accuracy"]
    assert table.loc["accuracy", "estimate"] == accuracy
    half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / 400)
    assert table.loc["accuracy", "low"] == pytest.approx(accuracy - half, abs=0.012)
    assert table.loc["accuracy", "high"] == pytest.approx(accuracy + half, abs=0.012)
    assert (table["low"] < table["estimate"]).all()
    assert (table["estimate"] < table["high"]).all()
    assert bootstrap_intervals(truth, scores, resamples=5, seed=3).equals(
        bootstrap_intervals(truth, scores, resamples=5, seed=3)
    )


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_metrics_of_many_resamples_at_once_agree_with_one_by_one(classes: int) -> None:
    rng = np.random.default_rng(classes)
    truth = rng.integers(0, classes, 60)
    scores = rng.dirichlet(np.ones(classes), 60).round(1) + 0.01  # rounded, so that scores tie
    scores /= scores.sum(axis=1, keepdims=True)
    index = rng.integers(0, 60, (6, 60))
    index[0] = np.flatnonzero(truth == 0)[0]  # one class only
    found = weighted_metrics(
        truth, scores, np.stack([np.bincount(row, minlength=60) for row in index]).astype(float)
    )
    for b, row in enumerate(index):
        expected = metrics.classification_metrics(truth[row], scores[row], calibration=False)
        for name, values in found.items():
            assert values[b] == pytest.approx(expected[name], nan_ok=True, abs=1e-12), name
    assert set(found) == {name for name, value in expected.items() if isinstance(value, float)}


def test_bootstrap_where_a_metric_is_undefined() -> None:
    table = bootstrap_intervals([0, 0, 0], np.full((3, 2), 0.5), resamples=5)
    assert np.isnan(table.loc["auc"]).all()
    assert np.isfinite(table.loc["accuracy"]).all()
    # Resamples with one class only have no AUC and are left out.
    rare = bootstrap_intervals([1, 0, 0, 0], [[0.2, 0.8]] + [[0.9, 0.1]] * 3, resamples=40)
    assert rare.loc["auc"].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(UsageError, match="'kappa'"):
        bootstrap_intervals([0, 1], np.eye(2), metrics=("kappa",))
