"""ICED's formulas: by hand, against naive loops, and invariants. None of it needs TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import sparse

from neucrowd_tf.methods.iced import synthesis
from neucrowd_tf.methods.iced.estimator import certainty_groups, class_mix, warm_up_schedule
from neucrowd_tf.methods.iced.inference import label_certainty
from neucrowd_tf.methods.iced.synthesis import (
    Synthetic,
    balancing_counts,
    copy_annotations,
    interpolation_weights,
    nearest,
    synthesise,
)
from tests.cases import cases
from tests.crowds import array_of

# ----------------------------------------------------------------- certainty (2.4)


def test_certainty_by_hand() -> None:
    # Votes 3:1 -> p = (.75, .25), 1 - (.5625 + .0625) = .375; 2:2 -> .5; 4:0 -> 0; no vote -> as
    # evenly spread, .5.
    votes = array_of("3 1; 2 2; 4 0; 0 0")
    expected = [1 / 0.5, 1 / 0.625, 1 / 0.125, 1 / 0.625]
    assert label_certainty(votes, 0.125) == pytest.approx(expected)
    # With two classes twice the scalar variance, so half of eps: .75 * .25 = .1875 and .0625.
    assert label_certainty(votes[:1], 0.125) == pytest.approx([0.5 / (0.1875 + 0.0625)])
    # Three classes, one vote each: 1 - 3 / 9 = 2/3.
    assert label_certainty(array_of("1 1 1;"), 1.0) == pytest.approx([1 / (2 / 3 + 1)])


# ----------------------------------------------------------------- interpolation (2.5)


@pytest.mark.parametrize(
    ("certainty", "neighbour", "noise", "printed", "expected"),
    [
        (30.0, 10.0, 0.05, False, 0.3),  # near the certain candidate: a quarter of the way
        (30.0, 10.0, 0.05, True, 0.8),  # as published three quarters
        (1.0, 100.0, 0.1, False, 1.0),  # clipped: 100 / 101 + .1
        (100.0, 1.0, 0.1, True, 1.0),  # clipped too: equation 2.3 has delta within [0, 1]
    ],
)
def test_interpolation_by_hand(
    certainty: float, neighbour: float, noise: float, printed: bool, expected: float
) -> None:
    values = (np.array([value]) for value in (certainty, neighbour, noise))
    assert interpolation_weights(*values, printed=printed) == pytest.approx([expected])


def test_balancing_counts() -> None:
    # One candidate, or none, gets nothing.
    assert balancing_counts(np.array([0] * 5 + [1] * 2 + [2]), 4).tolist() == [0, 3, 0, 0]
    assert balancing_counts(array_of("0 0 1 1"), 2).tolist() == [0, 0]


# ----------------------------------------------------------------- SMOTE (2.3)

Z = default_rng(5).normal(size=(30, 3)).astype(np.float32)
SURE = default_rng(6).uniform(1, 50, 30)
ROWS = array_of("2 5 7 11 20")


def drawn(
    z: np.ndarray = Z, rows: np.ndarray = ROWS, count: int = 23, seed: int = 0, **options: Any
) -> Synthetic:
    return synthesise(z, rows, count, SURE, default_rng([seed, 1]), **options)


def test_synthetic_points_lie_where_equation_2_3_puts_them() -> None:
    new = drawn(k=2, eta=0.1)
    assert new.embeddings.shape == (23, 3)
    columns = (new.embeddings, new.candidates, new.neighbours, new.weights)
    for point, base, other, delta in zip(*columns, strict=True):
        assert point == pytest.approx(Z[base] + delta * (Z[other] - Z[base]), abs=1e-5)
        distances = {int(j): float(np.linalg.norm(Z[j] - Z[base])) for j in ROWS if j != base}
        assert int(other) in sorted(distances, key=distances.__getitem__)[:2]
        share = SURE[other] / (SURE[base] + SURE[other])
        assert max(0.0, share - 0.1) <= delta <= min(1.0, share + 0.1)
    # 23 of 5 candidates: each four or five times.
    assert sorted(np.bincount(new.candidates, minlength=21)[ROWS]) == [4, 4, 5, 5, 5]


def test_neighbours_are_drawn_alike_and_noise_goes_both_ways() -> None:
    new = synthesise(Z[:6], np.arange(6), 3000, np.ones(6), default_rng(1), k=2, eta=0.1)
    for base in range(6):
        shares = np.bincount(new.neighbours[new.candidates == base], minlength=6) / 500
        # Five standard errors of 500 draws: .11.
        np.testing.assert_allclose(np.sort(shares), [0, 0, 0, 0, 0.5, 0.5], atol=0.11)
    # Equal certainty: half the way, and noise that is uniform in (-.1, .1).
    noise = new.weights - 0.5
    assert -0.1 < noise.min() < -0.099 and 0.099 < noise.max() < 0.1
    assert abs(noise.mean()) < 5 * 0.2 / np.sqrt(12 * 3000)


def test_smote_shrinks_k() -> None:
    z = array_of("0.0 0.0; 1.0 1.0; 9.0 9.0", np.float32)
    new = drawn(z, np.array([0, 1]), 6, k=5)
    assert (new.embeddings <= 1).all() and (new.embeddings >= 0).all()


@pytest.mark.parametrize("interpolation", ["certainty", "printed", "uniform"])
def test_identical_points_give_that_point(interpolation: str) -> None:
    new = drawn(np.full((6, 2), 3.0, np.float32), np.arange(6), 9, interpolation=interpolation)
    assert (new.embeddings == 3.0).all() and (new.candidates != new.neighbours).all()


# ----------------------------------------------------------------- synthetic annotations


def copies(dense: np.ndarray, neighbours: np.ndarray, seed: int = 0) -> np.ndarray:
    """The labels `[S, R]` that annotators copy, -1 where there is none."""
    labels = sparse.csr_matrix(dense + 1)
    triples = copy_annotations(labels, neighbours, default_rng(seed))
    new = np.full((len(neighbours), dense.shape[1]), -1)
    new[triples[0], triples[1]] = triples[2]
    return new


def test_annotators_keep_their_rates_and_stay_independent() -> None:
    rng = default_rng(0)
    dense = (rng.random((40, 3)) < [0.1, 0.5, 0.9]).astype(int)
    dense[rng.random((40, 3)) < 0.25] = -1
    dense[:, 0] = np.where((dense == -1).all(axis=1), 0, dense[:, 0])
    new = copies(dense, np.tile(np.arange(40), (4000, 1)), 1)
    for real, copied in zip(dense.T, new.T, strict=True):
        assert (copied >= 0).mean() == pytest.approx((real >= 0).mean(), abs=0.04)
        assert copied[copied >= 0].mean() == pytest.approx(real[real >= 0].mean(), abs=0.04)
    both = (new[:, 0] >= 0) & (new[:, 1] >= 0)
    assert abs(np.corrcoef(new[both, 0], new[both, 1])[0, 1]) < 0.06
    assert (new >= 0).any(axis=1).all()


def test_an_instance_that_would_stay_bare_gets_all_labels_of_its_nearest() -> None:
    # Annotator 0 labelled row 0 alone, annotator 1 row 1 alone. Each draws a row: both labels have
    # probability 1/4, one alone 1/4 each, and none 1/4, for which the label of row 0, the nearest,
    # is copied.
    new = copies(array_of("0 -1; -1 1"), np.tile([0, 1], (4000, 1)))
    patterns = ([True, True], [True, False], [False, True])
    shares = [((new >= 0) == pattern).all(axis=1).mean() for pattern in patterns]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.04)


def test_blocks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "_CELLS_AT_ONCE", 6)  # two instances at a time
    dense = default_rng(3).integers(-1, 3, (8, 3))
    dense[:, 0] = 2
    near = array_of("4; 7; 0; 3; 3")
    assert copies(dense, near).tolist() == dense[near[:, 0]].tolist()


@pytest.mark.parametrize("small", [0, 1 << 40])
def test_neighbours_against_a_naive_loop_with_and_without_threads(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "_SMALL", small)
    rng = default_rng(0)
    points, queries = (rng.normal(size=(n, 4)).astype(np.float32) for n in (30, 7))
    for i, row in enumerate(nearest(points, queries, 3)):
        order = np.linalg.norm(points - queries[i], axis=1).argsort()
        assert row.tolist() == order[:3].tolist()
    for i, row in enumerate(nearest(points, None, 3)):
        order = np.linalg.norm(points - points[i], axis=1).argsort()
        assert row.tolist() == order[order != i][:3].tolist()
    # Other points at the same place are neighbours, the point itself is not.
    same = nearest(np.zeros((5, 2), np.float32), None, 4)
    assert all(i not in row for i, row in enumerate(same))


def test_too_many_neighbours_are_all_there_are() -> None:
    z = array_of("0; 1; 3; 7", np.float32)
    assert nearest(z, np.array([[5.5]], np.float32), 9).tolist() == [[3, 2, 1, 0]]
    assert nearest(z, None, 9).tolist() == [[1, 2, 3], [0, 2, 3], [1, 0, 3], [2, 1, 0]]


# ----------------------------------------------------------------- warm-up


def test_groups_are_distinct_certainties() -> None:
    certainty = np.array([5.0, 9.0, 1.0, 9.0, 7.0, 0.5, 9.0 * (1 + 1e-14)])
    assert certainty_groups(certainty).tolist() == [3, 1, 4, 1, 2, 4, 1]
    assert certainty_groups(np.ones(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("strategy", "groups", "epochs", "expected"),
    # Unanimous annotators are one group.
    cases("""
["groups", [1, 4, 3, 2, 1], 6, [[2], [2], [3], [3], [0, 4], [0, 4]]],
["groups", [1, 4, 3, 2, 1], 4, [[2], [2], [3], [0, 4]]],
["top", [1, 4, 3, 2, 1], 1, [[0, 2, 3, 4]]],
["all", [1, 4, 3, 2, 1], 2, [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]],
["none", [1, 4, 3, 2, 1], 2, []],
["groups", [1, 1], 2, [[0, 1], [0, 1]]]
"""),
)
def test_schedules(
    strategy: str, groups: list[int], epochs: int, expected: list[list[int]]
) -> None:
    schedule = warm_up_schedule(strategy, np.array(groups), epochs)
    assert [rows.tolist() for rows in schedule] == expected


def test_class_mix() -> None:
    groups, labels = array_of("1 1 1 3 3"), array_of("0 0 1 1 1")
    assert class_mix(groups, labels, 2).tolist() == [[2, 1], [0, 0], [0, 2]]
    assert class_mix(groups[:0], labels[:0], 2).shape == (0, 2)
