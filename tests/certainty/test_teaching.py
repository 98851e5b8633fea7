"""What gold labels teach about a crowd's labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.certainty.teaching import Evidence, gold_votes, teach
from tests.crowds import Labelled, array_of


def minority(size: int = 200) -> Labelled:
    """Two annotators of six are right in nine items of ten, the others in three of ten."""
    rng = default_rng(5)
    truth = rng.integers(2, size=size)
    chances = array_of("0.3 0.3 0.3 0.3 0.9 0.9")
    right = rng.random((size, 6)) < chances
    return Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None])), truth


def some(truth: np.ndarray, count: int) -> np.ndarray:
    gold = np.full(len(truth), -1)
    rows = default_rng(0).permutation(len(truth))[:count]
    gold[rows] = truth[rows]
    return gold


def test_thirty_gold_labels_overrule_a_crowd() -> None:
    crowd, truth = minority()
    gold = some(truth, 30)
    rest = gold < 0
    result = infer(crowd, gold=gold)
    assert np.mean(infer(crowd).labels[rest] == truth[rest]) < 0.5
    right = np.mean(result.labels[rest] == truth[rest])
    assert right > 0.8
    assert abs(result.probas.max(axis=1)[rest].mean() - right) < 0.1
    assert result.estimates[0].low < right
    assert result.without_gold.high < 0.6
    assert result.skills.skill.argmax() in (4, 5)
    lines = result.lines()
    assert any("of items without gold labels: 0." in line for line in lines)
    assert any("without --gold: 0." in line for line in lines)


def test_five_gold_labels_that_contradict_everybody_do_not() -> None:
    rng = default_rng(1)
    truth = rng.integers(2, size=100)
    right = rng.random((100, 5)) < 0.85
    crowd = Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None]))
    agreed = np.flatnonzero(right.all(axis=1))
    gold = np.full(100, -1)
    gold[agreed[:5]] = 1 - truth[agreed[:5]]
    rest = gold < 0
    before, after = (infer(crowd, gold=known).labels[rest] for known in (None, gold))
    assert np.mean(before == after) > 0.9


def test_a_gold_label_does_not_count_for_its_own_item() -> None:
    crowd = Annotations.from_dense(array_of("0 1; 1 1; 0 0"))
    # Item 0: annotator 0 is right on item 1, annotator 1 too; without items, chance is even.
    scores = gold_votes(crowd, array_of("0 1 -1"))
    accuracy = (1 + 1) / (1 + 2)
    own = np.array([(0 + 8 * accuracy) / 8, (0 + 8 * (1 - accuracy)) / 8])
    first = own[0], (0 + 8 * (1 - accuracy)) / (1 + 8)
    second = own[1], (1 + 8 * accuracy) / (1 + 8)
    assert scores[0] == pytest.approx(np.log([first[0] * second[0], first[1] * second[1]]))


def test_blind_probabilities_do_not_depend_on_the_own_gold_label() -> None:
    crowd, truth = minority(60)
    consensus = expit(np.array([[-0.5, 0.5]] * 60))
    gold = some(truth, 8)  # each is a fold
    row = np.flatnonzero(gold >= 0)[3]
    other = gold.copy()
    other[row] = 1 - other[row]
    every = Evidence(crowd, consensus)
    blind = teach(every, gold).blind[0]
    assert teach(every, other).blind[0][row] == pytest.approx(blind[row])
    assert (teach(every, gold).probas[row] == np.eye(2)[gold[row]]).all()


def test_votes_without_names_teach_how_much_the_consensus_counts() -> None:
    votes = np.array([[3, 0], [0, 3]] * 60)
    gold = np.where(np.arange(120) < 40, np.arange(120) // 2 % 2, -1)  # half are right
    assert infer(Annotations.from_votes(votes), gold=gold).probas[gold < 0].max() < 0.75


def test_skills_with_gold_labels_allow_for_mistakes_that_annotators_share() -> None:
    crowd, truth = minority(2000)
    result = infer(crowd, "majority_vote", gold=some(truth, 300))
    # Of 2,000 labels the sampling error alone would be below 0.02.
    widths = result.skills.high - result.skills.low
    assert (widths > 2 * 1.28 * 0.03).all()
