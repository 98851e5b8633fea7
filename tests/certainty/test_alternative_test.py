"""The alternative annotator test, prediction-powered means and soft-label scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.alternative_test import alternative_test
from neucrowd_tf.certainty.prediction_powered import (
    prediction_powered_mean,
    prediction_powered_share,
)
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.soft_labels import perspectivist_error, soft_label_scores
from tests.cases import raises
from tests.crowds import array_of


def dense_crowd(seed: int, good: float = 0.8) -> np.ndarray:
    """Three people and a model (the last column) of 60 items."""
    rng = default_rng(seed)
    truth = rng.integers(3, size=60)
    right = rng.random((60, 4)) < np.array([0.7, 0.7, 0.7, good])
    labels = np.where(right, truth[:, None], rng.integers(3, size=(60, 4)))
    labels[rng.random((60, 4)) < 0.1] = -1
    return labels


def test_it_is_the_naive_loop() -> None:
    dense = dense_crowd(0)
    result = alternative_test(Annotations.from_dense(dense), 3, epsilon=0.1)
    expected = []
    for person in range(3):
        wins, differences = [], []
        for row in dense:
            others = [row[k] for k in range(3) if k != person and row[k] >= 0]
            if row[3] < 0 or row[person] < 0 or not others:
                continue
            model, human = (np.mean([label == one for one in others]) for label in row[[3, person]])
            wins.append(model >= human)
            differences.append(float(human >= model) - float(model >= human))
        p = stats.ttest_1samp(differences, 0.1, alternative="less").pvalue
        expected.append((np.mean(wins), p))
    assert result.advantages == pytest.approx([each[0] for each in expected])
    assert result.p_values == pytest.approx([each[1] for each in expected])


def test_a_good_model_passes_and_a_random_one_fails() -> None:
    for good, passed in ((1.0, True), (0.0, False)):
        assert alternative_test(Annotations.from_dense(dense_crowd(1, good)), 3).passed is passed


def test_too_few_items_are_an_error() -> None:
    raises(DataError, "30 items", alternative_test, Annotations.from_dense(dense_crowd(0)[:20]), 3)


def test_a_prediction_powered_mean_by_hand() -> None:
    # var of the eight predictions is 15/56; cov is 1/4; weight 0.25 / (2 * 15/56) = 7/15.
    estimate = prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0])
    assert estimate.value == pytest.approx(0.75 - 7 / 15 * 0.25)


@pytest.mark.parametrize(
    ("values", "predicted"), [([], []), ([1], [1]), ([1, 0], [1]), ([[1, 0]] * 2, [[1, 0]] * 2)]
)
def test_it_needs_two_gold_values_and_their_predictions(values, predicted) -> None:
    for estimate in (prediction_powered_mean, prediction_powered_share):
        raises(DataError, "expected two or more gold values", estimate, values, predicted, [1, 0])


def test_useless_predictions_get_no_weight() -> None:
    assert prediction_powered_mean([1, 0, 1, 0], [0.5] * 4, [0.5] * 100).value == 0.5


def test_its_interval_covers_and_is_narrower_than_gold_labels_alone() -> None:
    rng = default_rng(0)
    covered, ratios = 0, []
    for _ in range(300):
        f = rng.random(1050)
        y = (rng.random(1050) < f).astype(float)
        estimate = prediction_powered_mean(y[:50], f[:50], f[50:], level=0.8)
        covered += estimate.low <= y.mean() <= estimate.high
        alone = 2 * 1.2816 * y[:50].std(ddof=1) / np.sqrt(50)
        ratios.append((estimate.high - estimate.low) / alone)
    assert 0.74 < covered / 300 < 0.9
    assert np.mean(ratios) < 0.92


def test_soft_label_scores_by_hand() -> None:
    outcome = soft_label_scores([[1, 1], [1, 0]], [[0.25, 0.75], [1, 0]])
    assert outcome["soft_manhattan"] == pytest.approx(0.5)
    assert outcome["soft_cross_entropy"] == pytest.approx(-(np.log(0.25) + np.log(0.75)) / 2)
    bits = [stats.entropy(p, base=2) for p in ([0.375, 0.625], [0.5, 0.5], [0.25, 0.75])]
    divergence = bits[0] - (bits[1] + bits[2]) / 2
    assert outcome["soft_jensen_shannon"] == pytest.approx(np.sqrt(divergence))
    assert soft_label_scores([[1, 0]], [[1, 0]]) == {}


def test_perspectivist_error_by_hand() -> None:
    crowd = Annotations.from_dense(array_of("0 1; 1 -1; 0 -1"))
    answers = np.zeros((3, 2, 2))
    answers[..., 0] = 1.0  # everybody is predicted to say class 0
    assert perspectivist_error(crowd, answers) == pytest.approx((1 / 3 + 1) / 2)
