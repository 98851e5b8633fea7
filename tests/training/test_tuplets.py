"""Tuplets drawn by index: right classes, no repetition, frequencies by weight, the same for the
same (seed, step).
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.errors import DataError
from neucrowd_tf.training.batches import step_numbers, uniform_batches
from neucrowd_tf.training.tuplet_index import TupletIndex
from reproduction.controls.rll import all_pairs
from tests.cases import cases, raises
from tests.crowds import array_of, graphs


def draw(
    index: TupletIndex, uniforms: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    tuplets, classes = index.draw(tf.constant(uniforms), tf.constant(index.cumulative(weights)))
    return tuplets.numpy(), classes.numpy()


def naive_draw(index: TupletIndex, uniforms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same draw, one tuplet at a time: what is drawn is taken off the list and the rest is
    stretched.
    """
    order = index.order.tolist()
    rows = []
    for t, u in enumerate(uniforms):
        positive_class = index.classes[t % len(index.classes)]

        def pick(candidates: list[int], number: float) -> int:
            running = np.cumsum([weights[i] for i in candidates])
            return candidates[int(np.searchsorted(running, number * running[-1], side="right"))]

        custom = [i for i in order if index.labels[i] == positive_class]
        others = [i for i in order if index.labels[i] != positive_class]
        row = [pick(custom, u[0])]
        row.append(pick([i for i in custom if i != row[0]], u[1]))
        for number in u[2:]:
            row.append(pick([i for i in others if i not in row], number))
        rows.append(row)
    return np.array(rows)


def test_by_hand() -> None:
    # Classes 0, 0, 1, 1, 0 -> order by class: 0, 1, 4 | 2, 3. Positive class 1: anchor .0 ->
    # instance 2; positive: only 3 is left. Negatives among (0, 1, 4): .5 * 3 = 1.5 -> instance 1;
    # then among (0, 4): .9 * 2 = 1.8 -> instance 4.
    index = TupletIndex(array_of("0 0 1 1 0"), negatives=2)
    tuplets, classes = draw(index, array_of("0.0 0.3 0.5 0.9;"))
    assert tuplets.tolist() == [[2, 3, 1, 4]]
    assert index.classes[classes].tolist() == [1]


def test_numbers_at_the_ends_of_the_line() -> None:
    # Order by class: 0, 1, 2 | 3, 4 | 5, 6, 7; one tuplet for each positive class. Zeros take the
    # first instance that is left, never one that was taken; numbers that the product rounds up to
    # the end take the last one, never the next class's.
    index = TupletIndex(array_of("0 0 0 1 1 2 2 2"), negatives=2)
    tuplets, _ = draw(index, np.zeros((3, 4)))
    assert tuplets.tolist() == [[0, 1, 3, 4], [3, 4, 0, 1], [5, 6, 0, 1]]
    tuplets, _ = draw(index, np.full((3, 4), np.nextafter(1.0, 0.0)))
    assert tuplets.tolist() == [[2, 1, 7, 6], [4, 3, 7, 6], [7, 6, 4, 3]]


@pytest.mark.parametrize("num_classes", [2, 4])
def test_against_naive_loop(num_classes: int) -> None:
    rng = default_rng(3)
    labels = rng.integers(0, num_classes, 30)
    weights = rng.uniform(0.1, 1.0, 30)
    index = TupletIndex(labels, negatives=3)
    uniforms = rng.uniform(size=(200, 5))
    tuplets, _ = draw(index, uniforms, weights)
    assert_array_equal(tuplets, naive_draw(index, uniforms, weights))


def test_no_instance_twice_and_weights_are_frequencies() -> None:
    rng = default_rng(0)
    labels = rng.integers(0, 3, 40)
    weights = rng.uniform(0.1, 1.0, 40)
    weights[3] = 0.0
    index = TupletIndex(labels, negatives=3)
    uniforms = next(iter(uniform_batches(1, 90_000, 5)(0))).numpy()
    tuplets, classes = draw(index, uniforms, weights)
    assert (np.diff(np.sort(tuplets, axis=1), axis=1) > 0).all()
    assert (labels[tuplets[:, :2]] == index.classes[classes][:, None]).all()
    assert (labels[tuplets[:, 2:]] != index.classes[classes][:, None]).all()
    assert not (tuplets == 3).any()
    custom = labels == index.classes[0]
    seen = np.bincount(tuplets[classes == 0, 0], minlength=40) / (classes == 0).sum()
    assert_allclose(seen, np.where(custom, weights, 0) / weights[custom].sum(), atol=0.01)


def test_batches_are_functions_of_seed_and_step() -> None:
    first = [batch.numpy() for batch in uniform_batches(5, 4, 3)(0).take(4)]
    later = [batch.numpy() for batch in uniform_batches(5, 4, 3)(2).take(2)]
    assert_array_equal(first[2:], later)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], next(iter(uniform_batches(6, 4, 3)(0))).numpy())


def test_classes_beyond_the_batch_have_their_turn() -> None:
    index = TupletIndex(np.repeat(range(7), 2), 3)
    turns = [draw(index, batch.numpy()) for batch in uniform_batches(0, 3, 5)(0).take(40)]
    assert {code for _, classes in turns for code in classes} == set(range(7))
    for tuplets, classes in turns:
        assert_array_equal(index.labels[tuplets[:, 1]], classes)


def test_weights_that_leave_too_few_are_evened_out() -> None:
    index = TupletIndex(array_of("0 0 0 1 1"), negatives=2)
    weights = array_of("1.0 0.0 0.0 0.0 1.0")
    assert (np.diff(index.cumulative(weights)) > 0).sum() == 5
    tuplets, _ = draw(index, default_rng(0).uniform(size=(50, 4)), weights)
    assert (np.diff(np.sort(tuplets, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize(
    ("labels", "negatives", "message"),
    cases("""
[[0, 0, 0, 1], 2, "class 1.*two instances"],
[[1, 1, 1, 0], 2, "at least 2 instances"]
"""),
)
def test_too_few_instances(labels: list[int], negatives: int, message: str) -> None:
    raises(DataError, message, TupletIndex, np.array(labels), negatives)
    with pytest.raises(DataError, match=r"^class 'yes': "):
        TupletIndex(np.array(labels), negatives, names=["no", "yes"])


def test_a_pipeline_leaves_no_graph() -> None:
    assert [int(n) for n in step_numbers(3, 2).take(3)] == [3, 5, 7]
    before = graphs()
    for first in range(3):
        next(iter(uniform_batches(0, 4, 3)(first)))
    assert graphs() <= before


def test_a_pass_has_all_pairs_once_and_the_next_one_the_same_groups() -> None:
    # Five positives make 20 pairs, five batches of four; negatives are rows of class 0.
    labels = array_of("1 0 1 1 0 0 1 0 1")
    index = TupletIndex(labels, negatives=2)
    cumulative = tf.constant(index.cumulative(None))
    batches = list(all_pairs(3, 5, 4, 4)(0).take(10))
    groups = np.concatenate([index.draw(batch, cumulative)[0].numpy() for batch in batches])
    pairs = {tuple(pair) for pair in groups[:20, :2]}
    rows = np.flatnonzero(labels)
    assert pairs == {(a, b) for a in rows for b in rows if a != b}
    assert (labels[groups[:, 2:]] == 0).all() and (groups[:, 2] != groups[:, 3]).all()
    assert_array_equal(groups[:20], groups[20:])
    assert_array_equal(next(iter(all_pairs(3, 5, 4, 4)(7))), batches[7])
