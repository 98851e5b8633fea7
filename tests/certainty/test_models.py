"""Models beside people: by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.models import (
    compare_models,
    label_worth,
    model_annotators,
    shared_mistakes,
)
from tests.crowds import array_of


def simulated(model: float, person: float = 0.75, items: int = 600) -> Annotations:
    """Returns three classes labelled by five people and, as the last annotator, a model."""
    rng = default_rng(0)
    truth = rng.integers(3, size=items)
    accuracy = np.array([person] * 5 + [model])
    right = rng.random((items, 6)) < accuracy
    wrong = (truth[:, None] + rng.integers(1, 3, size=(items, 6))) % 3
    return Annotations.from_dense(np.where(right, truth[:, None], wrong))


def models(size: int = 6, *codes: int) -> np.ndarray:
    return np.isin(np.arange(size), codes or (size - 1,))


def test_worth_by_hand() -> None:
    # Two classes. People agree in 82 of 100 pairs: (2 a - 1)^2 = .64, so a = .9. The model agrees
    # in 74: (2 a - 1) (2 b - 1) = .48, so b = .8. The worth is log(4) / log(9).
    votes = np.array([[2.0, 0.0]] * 82 + [[1.0, 1.0]] * 18)
    labels = np.r_[np.zeros(65, int), np.ones(17, int), np.zeros(18, int)]
    worth = label_worth(votes, labels)
    assert worth.value == pytest.approx(np.log(4) / np.log(9))
    assert worth.low < worth.value < worth.high


@pytest.mark.parametrize("accuracy", [0.6, 0.75, 0.9])
def test_worth_is_the_ratio_of_log_odds(accuracy: float) -> None:
    (row,) = model_annotators(simulated(accuracy), models())
    odds = [np.log(2 * a / (1 - a)) for a in (accuracy, 0.75)]
    assert row.worth.low - 0.05 < odds[0] / odds[1] < row.worth.high + 0.05
    assert row.test.passed is (accuracy > 0.7)


def test_people_who_share_no_items_say_nothing() -> None:
    assert np.isnan(label_worth(np.eye(2)[[0, 1, 0, 1]], array_of("0 1 0 1")).value)
    (row,) = model_annotators(Annotations.from_dense(array_of("0 0; 1 1")), models(2))
    assert row.test is None and "30 items" in row.note


def test_shared_mistakes_by_hand() -> None:
    # The consensus is 0 everywhere. Both models give 1 in two items of ten, alone in one each.
    dense = np.zeros((10, 3), dtype=int)
    dense[:2, 1:] = 1
    dense[2, 1] = dense[3, 2] = 1
    (pair,) = shared_mistakes(Annotations.from_dense(dense), models(3, 1, 2), np.zeros(10, int))
    assert (pair.first, pair.second, pair.items, pair.shared) == (1, 2, 10, 2)
    assert pair.expected == pytest.approx(3 * 3 / 10)


def test_models_alone_get_one_line() -> None:
    crowd = Annotations.from_dense(array_of("0 0; 1 1; 1 0"), annotator_names=["a", "b"])
    rows, (line,) = compare_models(crowd, ["a", "b"], None)
    assert len(rows) == 2 and line.startswith("all 2 annotators are models")
