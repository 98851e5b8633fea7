"""Eqs. 3 and 4: how many of each class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.dasc.quotas import (
    allocate,
    fill_lost_classes,
    fractions,
    generated_counts,
    rounded,
)
from tests.crowds import array_of


def test_rounding_by_hand():
    # .5, .25, .25 of 7 is 3.5, 1.75, 1.75: down to 3, 1, 1, and the two left go to the largest
    # remainders.
    assert rounded(array_of("0.5 0.25 0.25"), 7).tolist() == [3, 2, 2]
    # .995 of each of 200 classes: one of them gets none.
    assert sorted(rounded(np.full(200, 1 / 200), 199)) == [0] + [1] * 199


def test_allocate_by_hand():
    # 8 of each half are wanted but the first class has 3: the other five go to the second.
    assert allocate([0.5, 0.5], [3, 100], 16).tolist() == [3, 13]
    # Nothing left of the classes that have a share: the rest comes from the others.
    assert allocate([1.0, 0.0, 0.0], [2, 30, 10], 10).tolist() == [2, 6, 2]
    assert allocate([0.5, 0.5], [3, 4], 100).tolist() == [3, 4], "a quota larger than what is left"
    assert allocate([0.0, 0.0], [0, 0], 5).tolist() == [0, 0]
    # The first class is exhausted and asks for nothing of the second.
    assert allocate([0.5, 0.5], [3, 100], 16, hand_on=False).tolist() == [3, 8]


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=10).filter(lambda n: sum(n) > 0))
def test_rarer_classes_have_larger_fractions(counts):
    tau = fractions(counts)
    assert tau.sum() == pytest.approx(1.0)
    used = [i for i, n in enumerate(counts) if n]
    assert all(tau[i] >= tau[j] for i in used for j in used if counts[i] <= counts[j])


def test_several_labels_in_one_cell_are_no_generated_ones():
    crowd = Annotations([0, 0, 1], [0, 0, 1], [1, 0, 1], duplicates="all")
    labels = array_of("0 0; 0 1", np.int8)
    # Empty cells: (0, 1) and (1, 0), both predicted as class 0.
    assert_array_equal(generated_counts(labels, crowd.cells(), 2), [2, 0])


def test_a_lost_class_is_filled_where_the_crowd_agrees_on_it():
    # Class 2 has two of two votes on instance 1, one of two on instance 2; class 3 has no vote.
    dense = array_of("0 0 -1; 2 2 -1; 2 0 -1; 1 -1 -1")
    crowd = Annotations.from_dense(dense, num_classes=4)
    labels = array_of("0 0 0; 1 1 1; 0 0 0; 1 1 1", np.int8)
    entropies = np.full((4, 3), 0.1, np.float32)
    arguments = (labels, entropies, crowd.cells(), crowd.vote_counts())
    assert fill_lost_classes(*arguments) == [2]
    assert_array_equal(labels, array_of("0 0 0; 2 2 2; 0 0 0; 1 1 1"))
    assert_allclose(entropies[1], np.log(4), rtol=1e-6)
    assert fill_lost_classes(*arguments) == []


def test_lost_classes_that_share_an_instance_get_one_each() -> None:
    # Classes 1 and 2 have a vote on instance 0 alone or on 1, which has no empty cell.
    labels = array_of("0 0 0 0; 0 0 0 0; 0 0 0 0", np.int8)
    observed = array_of("1 1 1 0; 1 1 1 1; 1 0 0 0", bool)
    votes = array_of("1 1 1; 0 2 2; 0 0 1")
    fill_lost_classes(labels, np.zeros((3, 4), np.float32), observed, votes)
    assert labels[~observed].tolist() == [1, 2, 2, 2]
