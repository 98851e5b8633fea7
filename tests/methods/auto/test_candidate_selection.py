"""What labels known to be right do to the choice, and a regression's strength."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.auto import candidate_selection, search
from neucrowd_tf.methods.auto.candidate_selection import held_out_interval
from neucrowd_tf.methods.auto.candidates import Candidate
from neucrowd_tf.methods.auto.evidence import Evidence
from neucrowd_tf.methods.auto.recommendation import advice


def test_the_interval_by_hand() -> None:
    """Differences 1, 0, 0, 0: mean .25, variance .25. With two folds the error is sqrt(.25 * (1 +
    2) / 4) = .4330.

    The 97.5 % point of t with 3 degrees of freedom is 3.1824: .25 - 1.3781 and .25 + 1.3781.
    """
    interval = held_out_interval([1, 1, 0, 1], [0, 1, 0, 1], folds=2)
    assert (interval.estimate, interval.low, interval.high) == pytest.approx(
        (0.25, -1.1281, 1.6281), abs=1e-4
    )
    # Two methods that are right with the same probability: 0 is outside in at most 5 % of trials.
    rng = default_rng([21, 5])
    missed = 0
    for _ in range(400):
        first, second = rng.random((2, 200)) < 0.8
        equal = held_out_interval(first, second, folds=3)
        missed += not equal.low <= 0 <= equal.high
    assert missed / 400 < 0.05


def predictions(right: np.ndarray, truth: np.ndarray) -> np.ndarray:
    classes = np.where(right, truth, 1 - truth)
    return np.where(np.eye(2)[classes] > 0, 0.8, 0.2)


@pytest.fixture
def case() -> tuple[dict[str, np.ndarray], Evidence, np.ndarray]:
    """A hundred instances, whose crowd is wrong on every third: "shares" has its mistakes, "true"
    has none.
    """
    truth = np.arange(100) % 2
    message = np.where(np.arange(100) % 3 == 0, 1 - truth, truth)
    crowd = Annotations(
        np.repeat(np.arange(100), 3), np.tile([0, 1, 2], 100), np.repeat(message, 3), num_classes=2
    )
    held = {
        "shares": predictions(message == truth, truth),
        "true": predictions(np.ones(100, bool), truth),
    }
    return held, Evidence.of(crowd, message, 0), truth


def gold(truth: np.ndarray, count: int) -> np.ndarray:
    return np.where(np.arange(100) < count, truth, -1)


@pytest.mark.parametrize(
    ("count", "remaining"), [(0, ["shares"]), (29, ["shares"]), (60, ["true"])]
)
def test_gold_labels_leave_out_what_is_clearly_worse(case, count, remaining) -> None:
    held, evidence, truth = case
    certain = dataclasses.replace(evidence, gold=gold(truth, count))
    assert candidate_selection.select(held, certain).members[:1] == remaining


def test_gold_labels_change_nothing_where_the_average_gains_nothing() -> None:
    """The third candidate is wrong on 15 of 60 gold labels, and the other two outvote it there: the
    average of all three is as right as that of the two.
    """
    place, truth = np.arange(100), np.arange(100) % 2
    message = np.where(place % 8 == 0, 1 - truth, truth)
    crowd = Annotations(place, np.zeros(100, int), message, num_classes=2)
    good = predictions(np.ones(100, bool), truth)
    held = {"a": good, "b": good, "c": predictions(place % 4 > 0, truth)}
    without = candidate_selection.select(held, Evidence.of(crowd, message, 0))
    evidence = Evidence.of(crowd, message, 0, gold(truth, 60))
    passed = candidate_selection.select(held, evidence)
    assert sorted(without.members) == ["a", "b", "c"] and passed.members == without.members
    held["b"] = predictions(place % 4 > 0, truth)
    assert candidate_selection.select(held, evidence).members == ["a"]


def test_few_labels_of_a_class_tell_little_of_a_balanced_target(case) -> None:
    # Fifty labels of class 0 weigh 1/100 each, four of class 1 1/8: they tell as much as
    # 1 / (50 / 100^2 + 4 / 8^2) = 14.8 equal ones, fewer than 30.
    held, evidence, truth = case
    rows = np.full(100, -1)
    rows[np.flatnonzero(truth == 0)[:50]] = 0
    rows[np.flatnonzero(truth == 1)[:4]] = 1
    certain = dataclasses.replace(evidence, gold=rows)
    assert candidate_selection.select(held, certain).members[:1] == ["true"]
    assert candidate_selection.select(held, certain, balanced=True).members[:1] == ["shares"]


def test_a_regression_s_strength_is_chosen_in_the_first_fold_and_kept() -> None:
    rng = default_rng(0)
    truth = np.arange(60) % 2
    x = rng.normal(size=(60, 3)).astype(np.float32) + truth[:, None]
    crowd = Annotations(np.arange(60), np.zeros(60, int), truth, num_classes=2)
    strengths = (1e-3, 1.0)
    one = Candidate("mv_lr", "mv_lr", {"Cs": strengths}, 1.0)
    fold = np.arange(60) % 3
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    result = search.held_out(search.Task(one, x, crowd, splits, 0))
    alone = one.make(0).fit(x[splits[0][0]], crowd[splits[0][0]])
    assert result.strength == alone.head_.C_
    fixed = one.with_strength(result.strength)
    assert fixed.hparams["Cs"] == (result.strength,)
    assert one.with_strength(None) is one
    for train, test in splits:
        again = fixed.make(0).fit(x[train], crowd[train]).predict_proba(x[test])
        np.testing.assert_array_equal(result.probabilities[test], again)


@pytest.mark.parametrize(("folds", "members"), [(2, ["a", "b"]), (100, ["a"])])
def test_few_folds_tell_less_of_a_difference(folds: int, members: list[str]) -> None:
    """A difference of .16 on 100 instances: up to -.034 with two folds, -.057 with a hundred."""
    truth = np.arange(100) % 2
    crowd = Annotations(np.arange(100), np.zeros(100, int), truth)
    right = np.arange(100) >= 16
    held = {"a": predictions(np.ones(100, bool), truth), "b": predictions(right, truth)}
    evidence = Evidence.of(crowd, truth, 0)
    assert candidate_selection.select(held, evidence, folds=folds).members == members


@pytest.mark.parametrize(("others", "left_out"), [(0, True), (8, False)])
def test_many_candidates_need_a_larger_difference(others: int, left_out: bool) -> None:
    """Five of 200 differ: z = 2.26, which is clear of one rival (1.96), not of nine (2.77)."""
    truth = np.arange(200) % 2
    crowd = Annotations(np.repeat(np.arange(200), 2), np.tile([0, 1], 200), np.repeat(truth, 2))
    perfect = predictions(np.ones(200, bool), truth)
    held = {f"perfect{place}": perfect for place in range(1 + others)}
    held["worse"] = predictions(np.arange(200) >= 5, truth)
    evidence = dataclasses.replace(Evidence.of(crowd, truth, 0), gold=truth)
    members = candidate_selection.select(held, evidence, unlike=("worse",)).members
    assert ("worse" not in members) == left_out


@pytest.mark.parametrize(("rare", "advised"), [(25, False), (24, True)])
def test_balanced_classes_are_advised_for_imbalanced_ones(rare: int, advised: bool) -> None:
    """75 to 25 is three to one, which is not more than three."""
    truth = (np.arange(100) < rare).astype(int)
    crowd = Annotations(np.repeat(np.arange(100), 3), np.tile([0, 1, 2], 100), np.repeat(truth, 3))
    sentences = advice(Evidence.of(crowd, truth, 0), balanced=False)
    assert any("target=balanced" in sentence for sentence in sentences) == advised
