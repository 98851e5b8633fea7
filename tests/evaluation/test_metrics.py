"""Metrics against hand-worked values, scikit-learn and naive loops."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn import metrics as sk

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation import metrics
from tests.cases import cases, raises
from tests.crowds import array_of

TRUTH = array_of("0 0 1 1")
SCORES = array_of("0.9 0.1; 0.4 0.6; 0.2 0.8; 0.7 0.3")


def _random(seed: int, rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = default_rng(seed)
    return rng.integers(0, classes, rows), rng.dirichlet(np.ones(classes), rows)


def test_hand_worked_two_classes() -> None:
    result = metrics.classification_metrics(TRUTH, SCORES, class_names=["no", "yes"])
    # Predicted 0 1 1 0: two of four right, one of two right in each class; precision and recall are
    # 1/2 for both.
    assert all(
        result[name] == 0.5 for name in ("accuracy", "balanced_accuracy", "f1", "f1_positive")
    )
    # Pairs (positive, negative): .8>.1, .8>.6, .3>.1, .3<.6 -> 3 of 4.
    assert result["auc"] == 0.75
    assert result["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.3]).mean())
    # (.01 + .36 + .04 + .49) / 4
    assert result["brier"] == pytest.approx(0.225)
    assert result["per_class"]["yes"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2}


def test_expected_calibration_error_by_hand_and_by_loop() -> None:
    # Confidences .9 (right), .6 (wrong), .8 (right), .7 (wrong), each in a bin of its own: (.1 + .6
    # + .2 + .7) / 4.
    assert metrics.expected_calibration_error(TRUTH, SCORES) == pytest.approx(0.4, abs=1e-6)
    truth, scores = _random(0, 300, 4)
    confidence, right = scores.max(axis=1), scores.argmax(axis=1) == truth
    expected = 0.0
    for bin_ in range(10):
        inside = (confidence * 10).astype(int) == bin_
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert metrics.expected_calibration_error(truth, scores) == pytest.approx(expected)
    # Soft correctness: one bin, mean confidence .75, mean probability of being right .5.
    soft = metrics.calibration_error(np.array([0.72, 0.78]), np.array([0.2, 0.8]), bins=4)
    assert soft == pytest.approx((abs(0.72 - 0.2) + abs(0.78 - 0.8)) / 2)


def test_agrees_with_scikit_learn_for_many_classes() -> None:
    truth, scores = _random(1, 200, 4)
    result = metrics.classification_metrics(truth, scores)
    predicted = scores.argmax(axis=1)
    assert result["accuracy"] == sk.accuracy_score(truth, predicted)
    assert result["balanced_accuracy"] == pytest.approx(
        sk.balanced_accuracy_score(truth, predicted)
    )
    assert result["f1"] == pytest.approx(sk.f1_score(truth, predicted, average="macro"))
    assert result["auc"] == pytest.approx(sk.roc_auc_score(truth, scores, multi_class="ovr"))
    assert result["log_loss"] == pytest.approx(sk.log_loss(truth, scores))
    assert result["brier"] == pytest.approx(
        np.mean(np.sum((scores - np.eye(4)[truth]) ** 2, axis=1))
    )
    assert "f1_positive" not in result


def test_a_class_that_does_not_occur_leaves_every_metric_defined_without_warning() -> None:
    truth, scores = _random(2, 100, 3)
    truth[truth == 2] = 0
    scores[:, 2] *= 1e-3  # never predicted either
    scores /= scores.sum(axis=1, keepdims=True)
    with warnings.catch_warnings(action="error"):
        result = metrics.classification_metrics(truth, scores)
    expected = np.mean([sk.roc_auc_score(truth == c, scores[:, c]) for c in (0, 1)])
    assert result["auc"] == pytest.approx(expected)
    assert result["f1"] == pytest.approx(sk.f1_score(truth, scores.argmax(axis=1), average="macro"))
    assert result["per_class"]["2"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}


def test_auc_without_the_first_class() -> None:
    # Class 1 has .6 and .4 above .2, class 2 has .7 above .2 and .5; class 0, which does not occur,
    # has no curve.
    scores = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.1, 0.4, 0.5]]
    assert metrics.roc_auc([1, 2, 1], scores) == 1.0


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_one_class_only_has_no_auc(classes: int) -> None:
    truth, scores = np.zeros(5, dtype=int), np.full((5, classes), 1.0 / classes)
    result = metrics.classification_metrics(truth, scores)
    assert math.isnan(result["auc"])
    assert result["accuracy"] == result["balanced_accuracy"] == 1.0
    assert result["log_loss"] == pytest.approx(math.log(classes))
    assert all(math.isfinite(result[name]) for name in ("f1", "log_loss", "brier", "ece"))


def test_float32_rows_that_sum_to_one_only_roughly_are_taken_without_warning() -> None:
    truth, scores = _random(5, 50, 7)
    with warnings.catch_warnings(action="error"):
        result = metrics.classification_metrics(truth, (scores * (1 + 1e-5)).astype(np.float32))
    assert result["log_loss"] == pytest.approx(
        sk.log_loss(truth, scores, labels=np.arange(7)), rel=1e-4
    )


@pytest.mark.parametrize(
    ("codes", "scores", "message"),
    cases("""
[[0, 1], [[0.5, 0.5]], "shape"],
[[0, 2], [[0.5, 0.5], [0.5, 0.5]], "expected class codes from 0 to 1"],
[[0, 1], [[0.5, 0.5], [NaN, 0.5]], "expected probabilities"],
[[0, 1], [[0.5, 0.5], [0.9, 0.9]], "expected probabilities"],
[[0, 1], [[0.5, 0.5], [0.5, 0.51]], "expected probabilities"],
[[0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]], "class codes"]
"""),
)
def test_bad_input_is_one_clear_error(codes: list, scores: list, message: str) -> None:
    raises(DataError, "M > 0", metrics.classification_metrics, np.zeros(0, int), np.zeros((0, 2)))
    raises(DataError, message, metrics.classification_metrics, np.asarray(codes), scores)
