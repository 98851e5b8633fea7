"""What gold labels say is about labels like those of other items."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from numpy.random import default_rng

from benchmarks.certainty.controls import UNLIKE, control_crowd
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.gold_items import gold_items
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.certainty.teaching import Evidence, teach
from tests.crowds import noisy_labels


def crowd(kind: str, seed: int) -> tuple[Annotations, np.ndarray, np.ndarray]:
    """Returns three of nine people an item, gold codes of 60 items of 400, and the truth."""
    rng = default_rng([seed, 3])
    truth = rng.integers(2, size=400)
    dense = noisy_labels(rng, truth, 9, 0.75)
    marked = rng.permutation(400)[:60]
    hidden = np.argsort(rng.random((400, 9)), axis=1)[:, 3:]
    everyone = dense[marked]
    np.put_along_axis(dense, hidden, -1, axis=1)
    gold = np.full(400, -1)
    gold[marked] = truth[marked]
    if kind == "control":
        dense[marked] = everyone
    if kind == "author":
        dense = np.column_stack([dense, gold])
    return Annotations.from_dense(dense, num_classes=2), gold, truth


@functools.cache
def usual_accuracy(seed: int) -> float:
    """Returns the accuracy of labels that no gold item has more of."""
    usual, _, truth = crowd("", seed)
    return float((infer(usual, "one_coin").labels == truth).mean())


@pytest.mark.parametrize("kind", ["author", "control"])
def test_intervals_hold_though_gold_items_have_more_labels(kind: str) -> None:
    held = []
    for seed in range(12):
        labels, gold, _ = crowd(kind, seed)
        estimates = infer(labels, "one_coin", gold).estimates
        held.append(estimates[0].low <= usual_accuracy(seed) <= estimates[0].high)
    assert np.mean(held) >= 0.6


def test_gold_items_like_the_others_keep_their_labels() -> None:
    labels, gold, _ = crowd("", 0)
    items = gold_items(labels, gold)
    assert items.draws == [labels] and not items.unlike
    assert infer(labels, "one_coin", gold).left_out == 0


def test_labels_left_out_are_said() -> None:
    labels, gold, _ = crowd("author", 0)
    assert gold_items(labels, gold).crowd.labels_per_annotator()[-1] == 0
    assert "60 labels that other items lack" in " ".join(infer(labels, "one_coin", gold).lines())
    votes = Annotations.from_votes(crowd("control", 0)[0].vote_counts())
    result = infer(votes, "majority_vote", gold)
    assert result.estimates is None and "more votes" in " ".join(result.lines())


def test_gold_items_that_are_unlike_the_others_change_no_other_label() -> None:
    labels, truth = control_crowd("no signal", UNLIKE["no signal"], 3, 0)
    gold = np.where(np.arange(len(truth)) < 30, truth, -1)
    result = infer(labels, "majority_vote", gold, skills=False)
    assert result.unlike and result.estimates is None
    assert (result.labels == np.where(gold >= 0, gold, infer(labels, "majority_vote").labels)).all()
    assert result.accuracy.low <= result.agreement[2].low
    assert "unlike the others" in " ".join(result.lines())


def test_each_draw_leaves_gold_items_as_many_labels_as_others_have() -> None:
    labels, gold, _ = crowd("control", 0)
    items = gold_items(labels, gold)
    assert items.crowd is labels and not items.unlike
    first, *others = (one.vote_counts() for one in items.draws)
    assert (first.sum(axis=1) == 3).all() and not any((first == one).all() for one in others)


def test_votes_of_items_with_more_labels_than_gold_items_count_as_so_many() -> None:
    gold_rows = [[0, 0, 1], [1, 1, 0]] * 10
    few = np.full((22, 15), -1)
    few[:20, :3] = gold_rows
    few[20, 3:6] = [0, 0, 1]
    few[21, 3:15] = [0, 0, 1] * 4
    every = Evidence(Annotations.from_dense(few), np.full((22, 2), 0.5))
    taught = teach(every, np.array([0, 1] * 10 + [-1, -1])).probas
    assert abs(taught[20, 0] - 0.5) > 0.05 and taught[21] == pytest.approx(taught[20])
