"""Entropy confidence and the four ways to select."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.dasc import selection
from neucrowd_tf.methods.dasc.selection import (
    SELECTORS,
    Candidates,
    entropy,
    pseudo_annotations,
    select_dasc,
)
from tests.crowds import array_of


def make(labels, entropies, classes=3):
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=classes)
    return Candidates(np.arange(len(labels)), labels, np.asarray(entropies, np.float32), counts)


def test_entropy_by_hand():
    # A certain answer has none; a fair coin ln 2; (1/2, 1/4, 1/4) has 3/2 ln 2.
    result = entropy(array_of("1.0 0.0 0.0; 0.5 0.5 0.0; 0.5 0.25 0.25"))
    assert_allclose(result, [0.0, math.log(2), 1.5 * math.log(2)], atol=1e-6)


def test_pseudo_annotations_in_blocks(monkeypatch):
    table = default_rng(1).dirichlet(np.ones(3), size=(10, 4)).astype(np.float32)
    calls = []

    class Table:
        def predict_annotators(self, features):
            rows = features[:, 0].astype(int)
            calls.append(len(rows))
            return table[rows]

    monkeypatch.setattr(selection, "_CELLS_AT_ONCE", 4 * 3 * 3)
    labels, entropies = pseudo_annotations(Table(), np.arange(10.0)[:, None], 4, 3)
    assert calls == [3, 3, 3, 1]
    assert_array_equal(labels, table.argmax(axis=2))
    assert_allclose(entropies, entropy(table), atol=1e-6)
    assert labels.dtype == np.int8 and entropies.dtype == np.float32
    with pytest.raises(DataError, match=r"expected shape \(2, 5, 3\), received \(2, 4, 3\)"):
        pseudo_annotations(Table(), np.arange(3.0)[:, None], 5, 3)
    table[4, 1] = np.nan
    with pytest.raises(DataError, match="instance 4, annotator 1"):
        pseudo_annotations(Table(), np.arange(10.0)[:, None], 4, 3)


def test_confidence_and_equal_by_hand():
    candidates = make([0, 0, 0, 0, 1, 1], [0.4, 0.1, 0.3, 0.2, 0.9, 0.8])
    assert SELECTORS["confidence"](candidates, 3, default_rng(0)).tolist() == [1, 2, 3]
    assert SELECTORS["equal"](candidates, 4, default_rng(0)).tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_each_takes_exactly_what_is_asked_for(name):
    rng = default_rng(2)
    candidates = make(rng.choice(3, size=60, p=[0.8, 0.15, 0.05]), rng.random(60))
    for total in (0, 1, 7, 59, 60):
        chosen = SELECTORS[name](candidates, total, default_rng(3))
        assert len(chosen) == len(set(chosen.tolist())) == total
    again = SELECTORS[name](candidates, 20, default_rng(4))
    assert_array_equal(again, SELECTORS[name](candidates, 20, default_rng(4)))


def test_ties_are_decided_by_lot():
    candidates = make(np.zeros(1000, int), np.zeros(1000))
    chosen = SELECTORS["confidence"](candidates, 100, default_rng(0))
    assert 350 < chosen.mean() < 650, "equal entropies do not favour the first instances"


def test_all_generated_ones_set_the_fractions():
    # Four candidates of each class; of class 1 four were taken earlier: 4 and 8 generated give
    # tau = 2/3 and 1/3, so 4 and 2 of six. Candidates alone would give three of each.
    labels, entropies = np.repeat([0, 1], 4), np.linspace(0.1, 0.8, 8).astype(np.float32)
    left = Candidates(np.arange(8), labels, entropies, np.array([4, 4]))
    rng = default_rng(0)
    every = dataclasses.replace(left, generated=np.array([4, 8]))
    assert np.bincount(labels[select_dasc(left, 6, rng)]).tolist() == [3, 3]
    assert np.bincount(labels[select_dasc(every, 6, rng)]).tolist() == [4, 2]
