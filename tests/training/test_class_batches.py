"""Batches by class: equal parts, no repeats, functions of (seed, step) alone, every instance as
often.
"""

from __future__ import annotations

import itertools

import numpy as np

from baselines.metric_models import class_batches

LABELS = np.array([0] * 40 + [3] * 12 + [1] * 3)


def test_shape_classes_and_no_repeats() -> None:
    for rows in itertools.islice(class_batches(0, LABELS, 26)(0), 5):
        taken = rows.numpy()
        assert taken.shape == (8, 3)
        assert (LABELS[taken] == [0, 1, 3]).all()
        assert len(set(taken[:, 0])) == len(set(taken[:, 2])) == 8
        # Three instances go round: 8 = 3 + 3 + 2.
        assert sorted(np.bincount(taken[:, 1] - 52, minlength=3)) == [2, 3, 3]


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    make = class_batches(7, LABELS, 24)
    walked = [rows.numpy() for rows in itertools.islice(make(0), 6)]
    jumped = next(iter(class_batches(7, LABELS, 24)(5))).numpy()
    np.testing.assert_array_equal(walked[5], jumped)
    assert not np.array_equal(walked[0], walked[1])
    assert not np.array_equal(walked[0], next(iter(class_batches(8, LABELS, 24)(0))).numpy())


def test_every_instance_is_drawn_as_often() -> None:
    counts = np.zeros(len(LABELS))
    for rows in itertools.islice(class_batches(1, LABELS, 24)(0), 600):
        np.add.at(counts, rows.numpy(), 1)
    # 600 batches x 8 of 40: 120 each with standard deviation below 10; of 12: 400, below 12.
    assert np.abs(counts[:40] - 120).max() < 50 and np.abs(counts[40:52] - 400).max() < 60


def test_classes_are_drawn_apart_and_two_of_each_at_least() -> None:
    labels = np.repeat([0, 1], 30)
    for rows in itertools.islice(class_batches(0, labels, 20)(0), 3):
        assert (rows.numpy()[:, 0] != rows.numpy()[:, 1] - 30).any(), (
            "classes of one size do not share their permutations"
        )
    assert next(iter(class_batches(0, labels, 2)(0))).shape == (2, 2)
