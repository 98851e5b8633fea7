"""What commands and reports say about inferred labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty.inference import infer, warn_if_worse


def crowd(seed: int = 0) -> tuple[Annotations, np.ndarray]:
    truth = np.random.default_rng(seed).integers(3, size=300)
    matrices = simulation.confusion_annotators(20, 3, seed, accuracy=0.7)
    return simulation.simulate(truth, matrices, seed, rates=0.25), truth


def test_labels_probabilities_and_lines_without_gold_labels() -> None:
    result = infer(crowd()[0])
    assert (result.probas.argmax(axis=1) == result.labels).all()
    assert "expected accuracy" in result.lines()[0] and "--gold" in result.lines()[-1]
    assert result.agreement is None and result.skills is not None


def test_gold_labels_are_kept_and_what_they_say_is_measured_without_them() -> None:
    labels, truth = crowd()
    gold = np.where(np.arange(300) < 60, (truth + 1) % 3, -1)  # all wrong
    result = infer(labels, gold=gold)
    assert (result.labels[:60] == gold[:60]).all()
    assert result.agreement is not None
    agreed, total, _ = result.agreement
    assert total == 60 and agreed < 20
    plain = infer(labels)
    rest = np.arange(60, 300)
    assert result.certainty.accuracy(rest).value < plain.certainty.accuracy(rest).value - 0.2


def test_vote_counts_alone_have_no_skills() -> None:
    result = infer(Annotations.from_votes(crowd()[0].vote_counts()))
    assert result.skills is None and result.probas.shape == (300, 3)


def test_a_method_worse_than_majority_vote_is_reported() -> None:
    labels, _ = crowd(1)
    with pytest.warns(UserWarning, match="--method=consensus"):
        warn_if_worse(_nearly_alone(), "dawid_skene", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_worse(labels, "dawid_skene", 0)


def _nearly_alone() -> Annotations:
    """Returns a sparse crowd of many classes, whose labels Dawid-Skene overturns."""
    rng = np.random.default_rng(3)
    truth = rng.choice(12, size=800, p=np.r_[0.45, np.full(11, 0.05)])
    items = np.repeat(np.arange(800), 3)
    annotators = rng.integers(300, size=2400)
    labels = np.where(rng.random(2400) < 0.8, truth[items], rng.integers(12, size=2400))
    _, first = np.unique(items * 300 + annotators, return_index=True)
    columns = (each[first].astype(np.int32) for each in (items, annotators, labels))
    return Annotations(*columns, num_instances=800, num_annotators=300, num_classes=12)
