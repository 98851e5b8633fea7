"""Limits of the rules about certainty, at the limit and one beyond it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.annotations.codes import MOST_VOTES
from neucrowd_tf.certainty import Calibration
from neucrowd_tf.certainty.inference import infer, warn_if_worse
from neucrowd_tf.certainty.skills import notes
from neucrowd_tf.errors import DataError
from tests.cases import raises
from tests.crowds import array_of


def crowd(items: int = 60) -> Annotations:
    truth = default_rng(0).integers(2, size=items)
    matrices = simulation.confusion_annotators(5, 2, 0, accuracy=0.85)
    return simulation.simulate(truth, matrices, 0, rates=1.0)


def test_the_most_votes_of_an_instance() -> None:
    assert Annotations.from_votes(np.array([[MOST_VOTES, 0]])).num_instances == 1
    raises(DataError, "at most", Annotations.from_votes, np.array([[MOST_VOTES, 1]]))


def test_a_tie_has_at_most_an_even_probability_however_sure_the_calibration_is() -> None:
    sure = Calibration(array_of("5.0 1.0 1.0 0.0 0.0 0.0"), np.zeros(2), np.eye(2) * 0.01)
    certainty = sure.apply(array_of("0.5 0.5; 0.6 0.4"), array_of("2 2; 3 2"))
    right = certainty.right()
    assert right[0] == 0.5 and right[1] > 0.9


@pytest.mark.parametrize(("count", "estimated"), [(19, False), (20, True)])
def test_gold_labels_that_are_enough_for_estimates(count: int, estimated: bool) -> None:
    labels = crowd()
    gold = np.where(np.arange(60) < count, infer(labels, "majority_vote").labels, -1)
    assert (infer(labels, "majority_vote", gold).estimates is not None) == estimated


@pytest.mark.parametrize(("shared", "note"), [(9, "few labels"), (10, "")])
def test_shared_labels_that_are_enough_for_a_verdict(shared: int, note: str) -> None:
    dense = np.repeat(np.arange(60)[:, None] % 2, 4, axis=1)
    dense[shared:, 3] = -1
    labels = Annotations.from_dense(dense)
    assert notes(labels, infer(labels, "majority_vote").certainty, np.zeros(4))[3] == note


@pytest.mark.parametrize(("probability", "note"), [(0.94, ""), (0.96, "unreliable")])
def test_the_probability_of_unreliable(probability: float, note: str) -> None:
    dense = np.repeat(np.arange(100)[:, None] % 2, 5, axis=1)
    labels = Annotations.from_dense(dense)
    certainty = infer(labels, "majority_vote", np.arange(100) % 2).certainty
    assert set(notes(labels, certainty, np.full(5, probability))) == {note}


@pytest.mark.parametrize(("worse", "warned"), [(4, True), (3, False)])
def test_a_method_is_warned_about_if_it_is_clearly_worse(
    worse: int, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the held-out labels that differ favour majority vote: 4 > 1.96 sqrt(4), 3 < 3.39."""

    class Fixed:
        def __init__(self, wrong: int) -> None:
            self.wrong = wrong

        def fit(self, rest: Annotations) -> Fixed:
            self.labels_ = np.zeros(rest.num_instances, dtype=int)
            self.labels_[: self.wrong] = 1
            return self

    dense = np.full((10, 2), -1)
    dense[:, 0] = 0
    dense[:, 1] = 0
    labels = Annotations.from_dense(dense, num_classes=2)
    held = np.zeros(20, dtype=int)
    held[np.flatnonzero(labels.annotators)] = 1  # the second annotator's labels stay
    monkeypatch.setattr("neucrowd_tf.certainty.inference.deal", lambda *_: held)
    monkeypatch.setattr(
        "neucrowd_tf.certainty.inference.make_aggregator",
        lambda name, seed: Fixed(0 if name == "majority_vote" else worse),
    )
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        warn_if_worse(labels, "glad", 0)
    assert bool(raised) == warned
