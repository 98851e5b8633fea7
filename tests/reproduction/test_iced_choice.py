"""The score by which ICED's settings are compared without truth."""

from __future__ import annotations

import numpy as np
import pytest

from reproduction.iced_choice import informedness


def test_by_hand_and_naively() -> None:
    # Sure posteriors: two of three 1s and one of four 0s are called 1: 2/3 - 1/4.
    truth = np.array([1, 1, 1, 0, 0, 0, 0])
    predicted = np.array([1, 1, 0, 1, 0, 0, 0])
    assert informedness(predicted, np.eye(2)[truth]) == pytest.approx(2 / 3 - 1 / 4)
    soft = np.random.default_rng(0).dirichlet([2.0, 1.0], size=7)
    rates = [sum(p * row[c] for p, row in zip(predicted, soft, strict=True)) for c in (0, 1)]
    shares = [sum(row[c] for row in soft) for c in (0, 1)]
    naive = rates[1] / shares[1] - rates[0] / shares[0]
    assert informedness(predicted, soft) == pytest.approx(naive)


def test_errors_of_the_crowd_scale_all_predictions_alike() -> None:
    """Labels that err independently of the predictions multiply the score by one factor, so the
    order is that of balanced accuracy.
    """
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], [20_000, 2_000])
    seen = np.where(rng.random(len(truth)) < np.where(truth == 1, 0.9, 0.95), truth, 1 - truth)
    ratios = []
    for right in (0.95, 0.8, 0.6):
        predicted = np.where(rng.random(len(truth)) < right, truth, 1 - truth)
        ratios.append(informedness(predicted, np.eye(2)[seen]) / (2 * right - 1))
    assert max(ratios) - min(ratios) < 0.04 and max(ratios) < 0.9
