"""Intervals over seeds and instances: values by hand, coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation.crossed import VALUES, crossed_interval, instance_values
from neucrowd_tf.evaluation.intervals import weighted_metrics
from neucrowd_tf.metrics import classification_metrics


def test_by_hand() -> None:
    # Two seeds, three instances. Means by seed 1/3 and 2/3, by instance 0, 1/2, 1; grand mean 1/2.
    # MS_seeds = 3 * ((1/6)^2 + (1/6)^2) = 1/6; MS_instances = 2 * (1/4 + 1/4) / 2 = 1/2.
    # Residuals: +-1/6, -+1/3, +-1/6, sum of squares 2 * (1/36 + 4/36 + 1/36) = 1/3, over 2: 1/6.
    # MS_seeds + MS_instances - MS_rest = 1/2, over 6: variance 1/12.
    table = [[0, 0, 1], [0, 1, 1]]
    found = crossed_interval(table)
    squares = np.array([1 / 6, 1 / 2, 1 / 6])
    freedom = 0.5**2 / np.sum(squares**2 / [1, 2, 2])
    # Instances alone give 1/2 too; the larger of equals is the first, the sum of all three.
    half = stats.t.ppf(0.975, freedom) * np.sqrt(1 / 12)
    np.testing.assert_allclose([found.estimate, found.high], [0.5, 0.5 + half])
    np.testing.assert_allclose(found.high - found.estimate, found.estimate - found.low)


def test_one_seed_is_students_interval_over_instances() -> None:
    values = np.random.default_rng(0).normal(size=(1, 40))
    expected = stats.ttest_1samp(values[0], 0.0).confidence_interval(0.95)
    found = crossed_interval(values)
    np.testing.assert_allclose([found.low, found.high], [expected.low, expected.high])


def test_never_narrower_than_over_seeds_or_instances_alone() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        table = rng.choice([-1, 0, 1], size=(4, 30), p=[0.1, 0.8, 0.1])
        found = crossed_interval(table)
        error = table.mean(axis=1).std(ddof=1) / 2
        assert found.high - found.estimate >= 1.9 * error


@pytest.mark.parametrize(("of_seeds", "of_instances"), [(0.0, 0.3), (0.05, 0.0), (0.04, 0.4)])
def test_coverage(of_seeds: float, of_instances: float) -> None:
    """Of 600 simulated tables the interval holds the truth in 95 %, within what chance allows; the
    interval over seeds alone does not where instances differ.
    """
    rng = np.random.default_rng(2)
    held = narrow = 0
    for _ in range(600):
        table = (
            of_seeds * rng.normal(size=(5, 1))
            + of_instances * rng.normal(size=(1, 80))
            + rng.normal(scale=0.3, size=(5, 80))
        )
        found = crossed_interval(table)
        held += found.low <= 0.0 <= found.high
        alone = stats.ttest_1samp(table.mean(axis=1), 0.0).pvalue
        narrow += alone >= 0.05
    assert 0.925 <= held / 600 <= 0.995
    if of_instances:
        assert narrow / 600 < 0.85


def _predictions(classes: int, size: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    truth = rng.permutation(np.arange(size) % classes)
    scores = rng.dirichlet(np.ones(classes), size) + 0.3 * np.eye(classes)[truth]
    return truth, scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("metric", VALUES)
def test_what_instances_add_to_a_metric(metric: str, classes: int) -> None:
    truth, scores = _predictions(classes)
    values = instance_values(metric, truth, scores)
    assert values.mean() == pytest.approx(classification_metrics(truth, scores)[metric])
    # Naively: a metric's slope in an instance's weight is its influence, value minus mean, over M.
    for row in (0, 7, 31):
        weights = np.ones((2, len(truth)))
        weights[:, row] += [1e-4, -1e-4]
        up, down = weighted_metrics(truth, scores, weights)[metric]
        slope = (up - down) / 2e-4
        assert slope * len(truth) == pytest.approx(values[row] - values.mean(), rel=1e-3, abs=1e-6)


def test_auc_values_by_hand() -> None:
    # Positives score .8 and .3, negatives .5 and .3. Placements: .8 is above both (1), .3 above
    # none and level with one (1/4); .5 is below one of two (1/2), .3 below one, level with one
    # (3/4).
    # AUC 5/8; each side's influence counts M / 2 = 2 times.
    scores = np.array([0.8, 0.3, 0.5, 0.3])
    found = instance_values("auc", np.array([1, 1, 0, 0]), np.stack([1 - scores, scores], axis=1))
    assert found == pytest.approx(5 / 8 + 2 * (np.array([1, 1 / 4, 1 / 2, 3 / 4]) - 5 / 8))
    alone = instance_values("auc", np.array([1, 1]), np.array([[0.5, 0.5], [0.2, 0.8]]))
    assert np.isnan(alone).all()
    with pytest.raises(UsageError, match="metric: expected one of accuracy"):
        instance_values("ece", np.array([0, 1]), np.eye(2))


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, match="a table of seeds by two instances"):
        crossed_interval([1.0, 2.0])
