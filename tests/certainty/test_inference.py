"""What commands and reports say about inferred labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty.estimate import Estimate
from neucrowd_tf.certainty.inference import infer, warn_if_worse
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share
from tests.crowds import Labelled


def crowd(seed: int = 0) -> Labelled:
    truth = default_rng(seed).integers(3, size=300)
    matrices = simulation.confusion_annotators(20, 3, seed, accuracy=0.7)
    return simulation.simulate(truth, matrices, seed, rates=0.25), truth


def test_labels_probabilities_and_lines_without_gold_labels() -> None:
    result = infer(crowd()[0])
    assert (result.probas.argmax(axis=1) == result.labels).all()
    assert "expected accuracy" in result.lines()[0] and "--gold" in result.lines()[-1]
    assert result.agreement is None and result.skills is not None


def test_gold_labels_are_kept_and_what_they_say_is_measured_without_them() -> None:
    labels, truth = crowd()
    other = (truth + 1) % 3
    gold = np.where(np.arange(300) < 60, other, -1)  # the crowd means other classes
    result = infer(labels, gold=gold)
    assert (result.labels[:60] == gold[:60]).all()
    assert result.agreement is not None
    agreed, total, _ = result.agreement
    assert total == 60 and agreed < 20
    assert result.without_gold.high < 0.2 < 0.7 < result.accuracy.low
    assert np.mean(result.labels[60:] == other[60:]) > 0.7


@pytest.mark.parametrize("labelled_by", ["nobody", "their author", "a model"])
def test_gold_labels_of_items_that_no_one_else_labelled_teach_nothing(labelled_by: str) -> None:
    dense = crowd()[0].to_dense()[:, :6]
    dense[:40] = -1
    dense[40:, 5] = np.where(labelled_by == "a model", dense[40:, 4], -1)
    if labelled_by != "nobody":
        dense[:40, 5] = 2
    labels = Annotations.from_dense(dense, num_classes=3)
    gold = np.where(np.arange(300) < 40, 2, -1)
    models = ("5",) if labelled_by == "a model" else ()
    result = infer(labels, "majority_vote", gold, models=models)
    assert (result.labels[:40] == 2).all() and result.probas[:40, 2].min() == 1.0
    alone = result.people or result
    assert alone.agreement is None and "No item with a gold label" in alone.lines()[-1]
    without = infer(labels, "majority_vote", models=models)
    rest = np.flatnonzero((gold < 0) & alone.crowd.annotated)
    assert (alone.labels[rest] == (without.people or without).labels[rest]).all()


def test_vote_counts_alone_have_no_skills() -> None:
    result = infer(Annotations.from_votes(crowd()[0].vote_counts()))
    assert result.skills is None and result.probas.shape == (300, 3)


def test_a_method_worse_than_majority_vote_is_reported() -> None:
    labels, _ = crowd(1)
    with pytest.warns(UserWarning, match="--method=consensus"):
        warn_if_worse(_nearly_alone(), "dawid_skene", 0)
    with warnings.catch_warnings(action="error"):
        warn_if_worse(labels, "dawid_skene", 0)


def test_a_method_that_did_not_converge_has_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def once(name: str, seed: int, ties: object = None) -> Aggregator:
        assert name == "dawid_skene"
        return DawidSkene(max_iter=1)

    monkeypatch.setattr("neucrowd_tf.certainty.inference.make_aggregator", once)
    with pytest.warns(UserWarning) as raised:
        infer(_nearly_alone(), "dawid_skene")
    assert ["did not converge" in str(one.message) for one in raised] == [True]


def _nearly_alone() -> Annotations:
    """Returns a sparse crowd of many classes, whose labels Dawid-Skene overturns."""
    rng = default_rng(3)
    truth = rng.choice(12, size=800, p=np.r_[0.45, np.full(11, 0.05)])
    items = np.repeat(np.arange(800), 3)
    annotators = rng.integers(300, size=2400)
    labels = np.where(rng.random(2400) < 0.8, truth[items], rng.integers(12, size=2400))
    _, first = np.unique(items * 300 + annotators, return_index=True)
    columns = (each[first].astype(np.int32) for each in (items, annotators, labels))
    return Annotations(*columns, num_instances=800, num_annotators=300, num_classes=12)


def test_one_class_says_nothing() -> None:
    labels = Annotations.from_dense(np.zeros((20, 3), dtype=int), num_classes=1)
    with warnings.catch_warnings(action="error"):
        result = infer(labels)
    assert "cannot be estimated" in result.lines()[0]
    assert result.certainty.accuracy() == (1.0, 0.0, 1.0)
    assert set(result.skills.note) == {"one class only"}


def test_ties_are_decided_once() -> None:
    labels = Annotations.from_dense(np.array([[0, 1], [1, 0]] * 20))
    result = infer(labels, "majority_vote")
    assert len(set(result.labels.tolist())) == 2
    assert (result.probas.argmax(axis=1) == result.labels).all()


def test_estimates_from_random_gold_labels() -> None:
    labels, truth = crowd(2)
    chosen = default_rng(3).permutation(300)[:40]
    gold = np.full(300, -1)
    gold[chosen] = truth[chosen]
    result = infer(labels, gold=gold)
    assert result.estimates is not None
    accuracy, shares = result.estimates
    assert accuracy.low < float((result.labels == truth)[gold < 0].mean()) < accuracy.high
    assert sum(share.value for share in shares.values()) == pytest.approx(1.0, abs=0.05)
    assert "if the gold items were drawn at random" in result.lines()[0]
    few = np.where(np.arange(300) == np.flatnonzero(gold >= 0)[0], gold, -1)
    assert infer(labels, gold=few).estimates is None


def test_a_share_of_equal_values_has_an_interval() -> None:
    share = prediction_powered_share(np.ones(20), np.full(20, 0.9), np.full(100, 0.9))
    assert share.value == 1.0 and share.low < 0.97 and share.high == 1.0


def test_an_estimate_without_draws_has_no_interval() -> None:
    with warnings.catch_warnings(action="error"):
        assert np.isnan(Estimate.of(float("nan"), [np.nan, np.nan])).all()
