"""Intervals over seeds and instances: values by hand, coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.crossed import crossed_bootstrap, crossed_interval


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


def test_the_bootstrap_agrees_with_the_closed_form_on_accuracy() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=300)
    skill = rng.normal(size=300)

    def predictions(shift: float) -> np.ndarray:
        score = skill + shift + rng.normal(size=(5, 300))
        right = 1 / (1 + np.exp(-score))
        positive = np.where(truth == 1, right, 1 - right)
        return np.stack([1 - positive, positive], axis=2)

    first, second = predictions(0.6), predictions(0.2)
    drawn = crossed_bootstrap(truth, first, second, "accuracy", resamples=300)
    closed = crossed_interval(
        (first.argmax(axis=2) == truth).astype(float) - (second.argmax(axis=2) == truth)
    )
    np.testing.assert_allclose(drawn.estimate, closed.estimate)
    ratio = (drawn.high - drawn.low) / (closed.high - closed.low)
    assert 0.8 < ratio < 1.6
    assert crossed_bootstrap(truth, first, second, "auc", resamples=50).estimate > 0


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, match="a table of seeds by two instances"):
        crossed_interval([1.0, 2.0])
