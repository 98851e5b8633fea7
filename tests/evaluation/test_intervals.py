"""Intervals against scipy, scikit-learn, values worked out by hand, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics as sk

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation import mean_interval, paired_interval
from neucrowd_tf.evaluation.influence import VALUES, instance_values
from neucrowd_tf.evaluation.intervals import crossed_interval, metric_intervals
from neucrowd_tf.evaluation.metrics import classification_metrics
from tests.cases import raises
from tests.crowds import array_of


def test_mean_interval_by_hand_and_by_scipy() -> None:
    # Values 1, 2, 3: mean 2, standard error 1 / sqrt 3, t(.975, 2) = 4.30265: 2 -+ 2.48414.
    interval = mean_interval([1.0, 2.0, 3.0])
    assert (interval.estimate, interval.low, interval.high) == pytest.approx(
        (2.0, -0.484138, 4.484138)
    )
    values = default_rng(0).normal(size=9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9).low == pytest.approx(expected.low)
    # With 5 folds the variance is 1/9 + 1/4 instead of 1/9.
    plain, corrected = mean_interval(values), mean_interval(values, test_train_ratio=0.25)
    assert (corrected.high - corrected.low) / (plain.high - plain.low) == pytest.approx(
        math.sqrt((1 / 9 + 1 / 4) * 9)
    )


def test_one_value_no_value_and_gaps() -> None:
    one = mean_interval([0.5])
    assert one.estimate == 0.5 and math.isnan(one.low)
    assert mean_interval([1.0, math.nan, 3.0]) == mean_interval([1.0, 3.0])
    raises(DataError, "at least one value", mean_interval, [math.nan])


def test_a_paired_interval_is_scipys_and_keeps_its_level_when_corrected() -> None:
    """Two equal methods scored by 5 x 5 cross-validation: a share of the spread is common to all
    folds of a training sample, which the plain interval mistakes for a difference.
    """
    rng = default_rng(0)
    first, second = rng.normal(0.85, 0.03, 8), rng.normal(0.82, 0.03, 8)
    interval = paired_interval(first, second)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert paired_interval([0.7, math.nan, 0.9], [0.6, 0.5, 0.7]).estimate == pytest.approx(0.15)
    raises(DataError, "received 3 and 1", paired_interval, [0.8, 0.9, 0.7], [0.75])
    raises(UsageError, "between 0 and 1, received 95", mean_interval, [0.8, 0.9], confidence=95)
    plain = corrected = 0
    for _ in range(300):
        scores = rng.normal(0, 1, 25) + rng.normal(0, math.sqrt(0.25))
        zeros = np.zeros(25)
        plain += not paired_interval(scores, zeros).low <= 0 <= paired_interval(scores, zeros).high
        wide = paired_interval(scores, zeros, test_train_ratio=0.25)
        corrected += not wide.low <= 0 <= wide.high
    assert plain > 60 and corrected < 30


def test_a_crossed_interval_by_hand() -> None:
    # Two seeds, three instances. Means by seed 1/3 and 2/3, by instance 0, 1/2, 1; grand mean 1/2.
    # MS_seeds = 3 * ((1/6)^2 + (1/6)^2) = 1/6; MS_instances = 2 * (1/4 + 1/4) / 2 = 1/2.
    # Residuals: +-1/6, -+1/3, +-1/6, sum of squares 2 * (1/36 + 4/36 + 1/36) = 1/3, over 2: 1/6.
    # MS_seeds + MS_instances - MS_rest = 1/2, over 6: variance 1/12.
    interval = crossed_interval([[0, 0, 1], [0, 1, 1]])
    squares = array_of("1/6 1/2 1/6")
    freedom = 0.5**2 / np.sum(squares**2 / [1, 2, 2])
    half = stats.t.ppf(0.975, freedom) * np.sqrt(1 / 12)
    assert_allclose([interval.estimate, interval.low, interval.high], [0.5, 0.5 - half, 0.5 + half])
    # One seed is Student's interval over instances.
    values = default_rng(0).normal(size=(1, 40))
    expected = stats.ttest_1samp(values[0], 0.0).confidence_interval(0.95)
    interval = crossed_interval(values)
    assert_allclose([interval.low, interval.high], [expected.low, expected.high])


def _predictions(classes: int, size: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = default_rng(classes)
    truth = rng.permutation(np.arange(size) % classes)
    scores = rng.dirichlet(np.ones(classes), size) + 0.3 * np.eye(classes)[truth]
    return truth, scores / scores.sum(axis=1, keepdims=True)


def _weighted(metric: str, truth: np.ndarray, p: np.ndarray, weights: np.ndarray) -> float:
    """Scikit-learn's metric of weighted instances."""
    predicted, classes = p.argmax(axis=1), range(p.shape[1])
    curves = [1] if p.shape[1] == 2 else classes
    squares = np.square(p - np.eye(p.shape[1])[truth]).sum(axis=1) / (2 if p.shape[1] == 2 else 1)
    table = {
        "accuracy": lambda: sk.accuracy_score(truth, predicted, sample_weight=weights),
        "balanced_accuracy": lambda: sk.recall_score(
            truth, predicted, average="macro", sample_weight=weights
        ),
        "f1": lambda: sk.f1_score(truth, predicted, average="macro", sample_weight=weights),
        "auc": lambda: np.mean(
            [sk.roc_auc_score(truth == c, p[:, c], sample_weight=weights) for c in curves]
        ),
        "log_loss": lambda: sk.log_loss(truth, p, sample_weight=weights),
        "brier": lambda: np.average(squares, weights=weights),
    }
    return float(table[metric]())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("metric", VALUES)
def test_what_instances_add_to_a_metric(metric: str, classes: int) -> None:
    truth, scores = _predictions(classes)
    values = instance_values(metric, truth, scores)
    assert values.mean() == pytest.approx(classification_metrics(truth, scores)[metric])
    # Naively: a metric's slope in an instance's weight is its influence, value minus mean, over M.
    for row in (0, 7, 31):
        step = np.zeros(len(truth))
        step[row] = 1e-4
        up, down = (_weighted(metric, truth, scores, 1.0 + sign * step) for sign in (1, -1))
        slope = (up - down) / 2e-4
        assert slope * len(truth) == pytest.approx(values[row] - values.mean(), rel=1e-3, abs=1e-6)


def test_auc_values_by_hand() -> None:
    # Positives score .8 and .3, negatives .5 and .3. Placements: .8 is above both (1), .3 above
    # none and equal to one (1/4); .5 is below one of two (1/2), .3 below one, equal to one (3/4).
    # AUC 5/8; each side's influence counts M / 2 = 2 times.
    scores = array_of("0.8 0.3 0.5 0.3")
    values = instance_values("auc", array_of("1 1 0 0"), np.stack([1 - scores, scores], axis=1))
    assert values == pytest.approx(5 / 8 + 2 * (array_of("1 1/4 1/2 3/4") - 5 / 8))
    alone = instance_values("auc", np.array([1, 1]), array_of("0.5 0.5; 0.2 0.8"))
    assert np.isnan(alone).all()


def test_intervals_of_metrics() -> None:
    """Accuracy has Wilson's interval; an undefined metric has none; bounds stay in range."""
    truth, scores = _predictions(2, 200)
    intervals = metric_intervals(truth, scores)
    assert set(intervals) == set(VALUES)
    # Wilson (1927): (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).
    p, z = float((scores.argmax(axis=1) == truth).mean()), 1.959964
    centre, half = p + z**2 / 400, z * math.sqrt(p * (1 - p) / 200 + z**2 / 160_000)
    expected = [(centre - half) / (1 + z**2 / 200), (centre + half) / (1 + z**2 / 200)]
    assert [intervals["accuracy"].low, intervals["accuracy"].high] == pytest.approx(expected)
    # Mann-Whitney: the interval of AUC is close to a bootstrap's.
    rng = default_rng(3)
    rows = rng.integers(0, 200, (400, 200))
    drawn = [sk.roc_auc_score(truth[row], scores[row, 1]) for row in rows]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (intervals["auc"].low, intervals["auc"].high) == pytest.approx((low, high), abs=0.02)
    sure = metric_intervals(array_of("0 0 0"), array_of("0.9 0.1; 0.8 0.2; 0.4 0.6"))
    assert "auc" not in sure and sure["f1"].low >= 0.0 and sure["log_loss"].low >= 0.0
