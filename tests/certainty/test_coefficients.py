"""Agreement coefficients against loops, the unweighted ones, and hand-computed values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from neucrowd_tf.annotations import statistics
from neucrowd_tf.annotations.statistics import agreement_coefficients as coefficients
from neucrowd_tf.certainty.coefficients import agreement_intervals, agreement_weights
from neucrowd_tf.errors import DataError


def votes(seed: int = 0, size: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(size, size=60)
    each = rng.integers(1, 6, size=60)
    table = np.zeros((60, size), dtype=int)
    for row, (label, number) in enumerate(zip(truth, each, strict=True)):
        for _ in range(number):
            table[row, label if rng.random() < 0.7 else rng.integers(size)] += 1
    return table


def test_fleiss_kappa_is_that_of_statistics_for_equal_numbers_of_labels() -> None:
    several = votes()[votes().sum(axis=1) == 3]
    expected = statistics.fleiss_kappa(several)
    assert coefficients(several, np.eye(4))["fleiss"] == pytest.approx(expected)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_observed_agreement_is_the_naive_loop(scale: str) -> None:
    weights = agreement_weights(4, scale)  # type: ignore[arg-type]
    shares = []
    for row in votes():
        labels = np.repeat(np.arange(4), row)
        if len(labels) > 1:
            shares.append(np.mean([weights[a, b] for a, b in itertools.permutations(labels, 2)]))
    assert coefficients(votes(), weights)["observed"] == pytest.approx(np.mean(shares))


def test_gwets_ac1_by_hand() -> None:
    # Two raters, two classes, 8 of 10 items agree: 7 yes, 1 no; shares .8 and .2.
    table = np.array([[2, 0]] * 7 + [[0, 2]] + [[1, 1]] * 2)
    chance = 2 * 0.8 * 0.2
    assert coefficients(table, np.eye(2))["gwet"] == pytest.approx((0.8 - chance) / (1 - chance))


def test_weights_by_hand() -> None:
    assert agreement_weights(3, "ordinal")[0].tolist() == pytest.approx([1, 2 / 3, 0])
    assert agreement_weights(3, "interval")[0].tolist() == pytest.approx([1, 0.75, 0])
    assert agreement_weights(3, "interval", [0, 3, 4])[0, 1] == pytest.approx(1 - 9 / 16)


def test_intervals_hold_the_estimate_and_repeat() -> None:
    first, again = (agreement_intervals(votes(), "ordinal", seed=1) for _ in range(2))
    assert first == again
    for estimate in first.values():
        assert estimate.low < estimate.value < estimate.high


def test_single_labels_are_an_error() -> None:
    with pytest.raises(DataError, match="two labels"):
        agreement_intervals(np.eye(3, dtype=int))
