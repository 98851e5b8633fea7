"""Models as judges, by hand and by simulation."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.judges import judge, judges
from neucrowd_tf.certainty.models import label_worth
from neucrowd_tf.errors import UsageError
from tests.cases import raises
from tests.crowds import array_of


def test_by_hand() -> None:
    # The person says 0 six times and 1 four times; the judge repeats 5 and 3 of them.
    person = np.r_[np.zeros(6, int), np.ones(4, int), -np.ones(10, int)]
    model = np.r_[np.zeros(5, int), 1, 1, 1, 1, 0, np.zeros(10, int)]
    crowd = Annotations.from_dense(np.column_stack([person, model]), annotator_names=["a", "llm"])
    (row,) = judges(crowd, ["llm"], None)
    assert (row.items, row.others) == (10, 10)
    assert row.agreement.value == pytest.approx(0.8)
    assert [one.value for one in row.right] == pytest.approx([5 / 6, 3 / 4])
    assert row.kappa.value == pytest.approx((0.8 - 0.52) / 0.48)
    assert row.model_shares.tolist() == [0.8, 0.2]
    assert row.counts.tolist() == [6, 4]
    for one in (row.agreement, row.kappa, *row.right, *row.shares):
        assert one.low <= one.value <= one.high
    gold = np.where(np.arange(20) < 10, model, -1)  # of which the person has two wrong
    (row,) = judges(crowd, ["llm"], None, gold)
    for one in (row.agreement, row.kappa, *row.right):
        assert one.value == one.high == 1 and 0.6 < one.low < 1  # of few items
    (row,) = judges(crowd.select(crowd.annotators == 1), ["llm"], None, gold)
    assert row.items == 10 and row.agreement.value == 1


def test_corrected_shares_cover_and_beat_gold_alone() -> None:
    rng, held, ours, gold = default_rng(0), [], [], []
    for _ in range(200):
        truth = (rng.random(1000) < 0.3).astype(int)
        model = np.where(rng.random(1000) < np.where(truth, 0.8, 0.9), truth, 1 - truth)
        person = np.where(rng.permutation(1000) < 100, truth, -1)
        crowd = Annotations.from_dense(np.column_stack([person, model]), num_classes=2)
        reference = np.where(person[:, None] >= 0, np.eye(2)[person], np.nan)
        share = judge(crowd, 1, reference).shares[1]
        held.append(share.low <= 0.3 <= share.high)
        ours.append((share.value - truth.mean()) ** 2)
        gold.append((person[person >= 0].mean() - truth.mean()) ** 2)
    assert 0.75 <= np.mean(held) <= 0.87
    assert np.mean(ours) < np.mean(gold)


def test_a_model_without_shared_items_has_no_figures() -> None:
    crowd = Annotations.from_dense(array_of("0 -1; 1 -1; -1 1"))
    row = judge(crowd, 1, array_of("1.0 0; 0 1; nan nan"))
    assert row.items == 0 and np.isnan(row.kappa.value) and np.isnan(row.shares[0].value)
    row = judge(crowd, 0, array_of("0.25 0.75; nan nan; 0 1"))
    assert row.items == 1 and row.counts.tolist() == [0.25, 0.75]


def test_one_class_alone_has_no_kappa() -> None:
    for size in range(2, 200):
        crowd = Annotations.from_dense(np.zeros((size, 1), int), num_classes=2)
        kappa = judge(crowd, 0, np.tile([1.0, 0.0], (size, 1))).kappa
        assert np.isnan([*kappa]).all(), size


def test_kappas_interval_is_within_its_bounds() -> None:
    reference = np.eye(2)[(np.arange(40) == 0).astype(int)]
    kappa = judge(Annotations.from_dense(np.zeros((40, 1), int), num_classes=2), 0, reference).kappa
    assert -1 <= kappa.low < kappa.value == 0 < kappa.high <= 1


def test_resamples_take_the_memory_of_different_rows() -> None:
    crowd = Annotations.from_dense(np.zeros((20_000, 1), int), num_classes=2)
    reference = np.eye(2)[np.arange(20_000) % 2]
    tracemalloc.start()
    judge(crowd, 0, reference)
    label_worth(np.eye(2)[np.zeros(20_000, int)] * 2, crowd.labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # one number for each item and resample takes 64 MB


def test_a_model_that_is_no_annotator_is_one_error() -> None:
    crowd = Annotations.from_dense(array_of("0 0; 1 1"), annotator_names=["a", "llm"])
    assert [row.annotator for row in judges(crowd, ["l*"], None)] == [1]
    raises(UsageError, "no annotator is named 'gpt'", judges, crowd, ["gpt"], None)


def test_inferred_labels_of_people_count_if_an_item_has_two() -> None:
    crowd = Annotations.from_dense(array_of("0 -1 0; 1 1 1"), annotator_names=["a", "b", "llm"])
    people = array_of("0.0 1.0; 1.0 0.0")
    (row,) = judges(crowd, ["llm"], people)
    assert row.agreement.value == 0
    (row,) = judges(crowd.select(crowd.annotators != 1), ["llm"], people)
    assert row.agreement.value == 1
