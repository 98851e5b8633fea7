"""ICED's formulas: by hand, against naive loops, and invariants. None of it needs TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.iced import synthesis
from neucrowd_tf.iced.estimator import certainty_groups, class_mix, warm_up_schedule
from neucrowd_tf.iced.inference import label_certainty
from neucrowd_tf.iced.synthesis import (
    balancing_counts,
    copy_annotations,
    interpolation_weights,
    nearest,
    synthesise,
)

# ----------------------------------------------------------------- certainty (2.4)


def test_certainty_by_hand() -> None:
    # Votes 3:1 -> p = (.75, .25), 1 - (.5625 + .0625) = .375; 2:2 -> .5; 4:0 -> 0; no vote -> as
    # evenly spread, .5.
    votes = np.array([[3, 1], [2, 2], [4, 0], [0, 0]])
    assert label_certainty(votes, 0.125) == pytest.approx(
        [1 / 0.5, 1 / 0.625, 1 / 0.125, 1 / 0.625]
    )
    # With two classes twice the scalar variance, so half of eps: .75 * .25 = .1875 and .0625.
    assert label_certainty(votes[:1], 0.125) == pytest.approx([0.5 / (0.1875 + 0.0625)])
    # Three classes, one vote each: 1 - 3 / 9 = 2/3.
    assert label_certainty(np.array([[1, 1, 1]]), 1.0) == pytest.approx([1 / (2 / 3 + 1)])


def naive_certainty(votes: np.ndarray, epsilon: float) -> list[float]:
    out = []
    for row in votes:
        labels = [np.eye(len(row))[c] for c, n in enumerate(row) for _ in range(n)]
        mean = sum(labels) / len(labels)
        out.append(1 / (float(np.mean([np.sum((y - mean) ** 2) for y in labels])) + epsilon))
    return out


@given(hnp.arrays(np.int64, (6, 4), elements=st.integers(0, 7)), st.floats(1e-3, 1.0))
def test_certainty_is_the_inverse_variance_of_one_hot_labels(
    votes: np.ndarray, epsilon: float
) -> None:
    votes[votes.sum(axis=1) == 0, 0] = 1
    got = label_certainty(votes, epsilon)
    assert got == pytest.approx(naive_certainty(votes, epsilon))
    # It does not depend on the classes' names or on how often the same vote is repeated.
    assert got == pytest.approx(label_certainty(votes[:, ::-1] * 3, epsilon))
    assert (got <= 1 / epsilon * (1 + 1e-9)).all()


def test_certainty_refuses_a_useless_epsilon() -> None:
    with pytest.raises(UsageError, match="epsilon"):
        label_certainty(np.array([[1, 1]]), 0.0)


# ----------------------------------------------------------------- interpolation (2.5)


def test_interpolation_by_hand() -> None:
    # S = 30, S' = 10: the point stays near the certain candidate, a quarter of the way; as printed
    # it goes three quarters.
    assert interpolation_weights(
        np.array([30.0]), np.array([10.0]), np.array([0.05])
    ) == pytest.approx([0.3])
    assert interpolation_weights(
        np.array([30.0]), np.array([10.0]), np.array([0.05]), printed=True
    ) == pytest.approx([0.8])
    # Clipped: 100 / 101 + .1 > 1.
    assert interpolation_weights(
        np.array([1.0]), np.array([100.0]), np.array([0.1])
    ) == pytest.approx([1.0])
    assert (
        interpolation_weights(np.array([100.0]), np.array([1.0]), np.array([0.1]), printed=True)[0]
        > 1
    )


@given(st.floats(0.1, 100), st.floats(0.1, 100))
def test_a_synthetic_point_is_as_near_to_the_more_certain_end_from_both_sides(
    mine: float, other: float
) -> None:
    forth = interpolation_weights(np.array([mine]), np.array([other]), np.zeros(1))
    back = interpolation_weights(np.array([other]), np.array([mine]), np.zeros(1))
    assert forth + back == pytest.approx(1.0)
    assert (forth[0] <= 0.5) == (mine >= other)


def test_balancing_counts() -> None:
    labels = np.array([0] * 5 + [1] * 2 + [2])
    assert balancing_counts(labels, 4).tolist() == [
        0,
        3,
        0,
        0,
    ]  # one candidate, or none, gets nothing
    assert balancing_counts(np.array([0, 0, 1, 1]), 2).tolist() == [0, 0]


# ----------------------------------------------------------------- SMOTE (2.3)


def draw(
    count: int = 23, interpolation: str = "certainty", seed: int = 0, k: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray, object]:
    rng = np.random.default_rng(5)
    z, certainty = rng.normal(size=(30, 3)).astype(np.float32), rng.uniform(1, 50, 30)
    rows = np.array([2, 5, 7, 11, 20])
    new = synthesise(
        z,
        rows,
        count,
        certainty,
        np.random.default_rng([seed, 1]),
        k=k,
        eta=0.1,
        interpolation=interpolation,
    )  # type: ignore[arg-type]
    return z, certainty, rows, new


def test_synthetic_points_lie_where_equation_2_3_puts_them() -> None:
    z, certainty, rows, new = draw()
    assert new.embeddings.shape == (23, 3)
    for i in range(23):
        mine, other, delta = new.candidates[i], new.neighbours[i], new.weights[i]
        assert new.embeddings[i] == pytest.approx(z[mine] + delta * (z[other] - z[mine]), abs=1e-5)
        distances = {int(j): float(np.linalg.norm(z[j] - z[mine])) for j in rows if j != mine}
        assert int(other) in sorted(distances, key=distances.__getitem__)[:2]
        share = certainty[other] / (certainty[mine] + certainty[other])
        assert max(0.0, share - 0.1) <= delta <= min(1.0, share + 0.1)
    # 23 of 5 candidates: each four or five times.
    assert sorted(np.bincount(new.candidates, minlength=21)[rows]) == [4, 4, 5, 5, 5]


def test_neighbours_are_drawn_alike_and_noise_goes_both_ways() -> None:
    z = np.random.default_rng(5).normal(size=(6, 3)).astype(np.float32)
    new = synthesise(z, np.arange(6), 3000, np.ones(6), np.random.default_rng(1), k=2, eta=0.1)
    for mine in range(6):
        shares = np.bincount(new.neighbours[new.candidates == mine], minlength=6) / 500
        # Five standard errors of 500 draws: .11.
        np.testing.assert_allclose(np.sort(shares), [0, 0, 0, 0, 0.5, 0.5], atol=0.11)
    # Equal certainty: half the way, and noise that is uniform in (-.1, .1).
    noise = new.weights - 0.5
    assert -0.1 < noise.min() < -0.099 and 0.099 < noise.max() < 0.1
    assert abs(noise.mean()) < 5 * 0.2 / np.sqrt(12 * 3000)


def test_smote_is_a_function_of_its_generator_and_classes_differ() -> None:
    assert np.array_equal(draw()[3].embeddings, draw()[3].embeddings)
    assert not np.array_equal(draw()[3].weights, draw(seed=1)[3].weights)


def test_smote_shrinks_k_and_needs_two_points() -> None:
    z = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]], dtype=np.float32)
    new = synthesise(z, np.array([0, 1]), 6, np.ones(3), np.random.default_rng(0), k=5)
    assert (new.embeddings <= 1).all() and (new.embeddings >= 0).all()
    with pytest.raises(DataError, match="at least two candidates, received 1"):
        synthesise(z, np.array([2]), 6, np.ones(3), np.random.default_rng(0))
    with pytest.raises(UsageError, match="interpolation"):
        synthesise(
            z, np.array([0, 1]), 6, np.ones(3), np.random.default_rng(0), interpolation="cubic"
        )  # type: ignore[arg-type]


def test_identical_points_give_that_point() -> None:
    z = np.full((6, 2), 3.0, dtype=np.float32)
    for interpolation in ("certainty", "printed", "uniform"):
        new = synthesise(
            z, np.arange(6), 9, np.ones(6), np.random.default_rng(0), interpolation=interpolation
        )  # type: ignore[arg-type]
        assert (new.embeddings == 3.0).all()
        assert (new.candidates != new.neighbours).all()


def test_plain_smote_agrees_with_imbalanced_learn_in_distribution() -> None:
    imblearn = pytest.importorskip("imblearn.over_sampling")
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(400, 2)), rng.normal(3, 1, size=(40, 2))]).astype(
        np.float32
    )
    y = np.repeat([0, 1], [400, 40])
    oracle = imblearn.SMOTE(k_neighbors=5, random_state=0).fit_resample(z, y)[0][440:]
    new = synthesise(
        z,
        np.flatnonzero(y),
        360,
        np.ones(440),
        np.random.default_rng(1),
        k=5,
        interpolation="uniform",
    ).embeddings
    assert len(new) == len(oracle) == 360
    # Both lie on segments between minority points and their neighbours: means and covariances agree
    # within sampling error.
    assert new.mean(axis=0) == pytest.approx(oracle.mean(axis=0), abs=0.15)
    assert np.cov(new.T) == pytest.approx(np.cov(oracle.T), abs=0.25)


# ----------------------------------------------------------------- synthetic annotations


def as_sparse(dense: np.ndarray) -> Any:
    """Label + 1 where there is one: the form of labels."""
    return sparse.csr_matrix(dense + 1)


def test_annotators_copy_one_of_the_neighbours() -> None:
    dense = np.array([[0, 1, -1], [1, 1, -1], [2, -1, -1], [0, 0, 2]])
    neighbours = np.array([[0, 1], [2, 2], [3, 1]])
    instances, annotators, labels = copy_annotations(
        as_sparse(dense), neighbours, np.random.default_rng(0)
    )
    for i, r, label in zip(instances, annotators, labels, strict=True):
        assert label in {dense[j, r] for j in neighbours[i]} - {-1}
    # The second synthetic instance has one neighbour alone: it is copied as it is.
    assert [
        (int(r), int(label))
        for i, r, label in zip(instances, annotators, labels, strict=True)
        if i == 1
    ] == [(0, 2)]


def test_annotators_keep_their_rates_and_stay_independent() -> None:
    rng = np.random.default_rng(0)
    dense = (rng.random((40, 3)) < [0.1, 0.5, 0.9]).astype(int)
    dense[rng.random((40, 3)) < 0.25] = -1
    dense[:, 0] = np.where((dense == -1).all(axis=1), 0, dense[:, 0])
    instances, annotators, labels = copy_annotations(
        as_sparse(dense), np.tile(np.arange(40), (4000, 1)), np.random.default_rng(1)
    )
    new = np.full((4000, 3), -1)
    new[instances, annotators] = labels
    for r in range(3):
        real, copied = dense[:, r], new[:, r]
        assert (copied >= 0).mean() == pytest.approx((real >= 0).mean(), abs=0.04)
        assert copied[copied >= 0].mean() == pytest.approx(real[real >= 0].mean(), abs=0.04)
    both = (new[:, 0] >= 0) & (new[:, 1] >= 0)
    assert abs(np.corrcoef(new[both, 0], new[both, 1])[0, 1]) < 0.06
    assert (new >= 0).any(axis=1).all()


def test_an_instance_that_would_stay_bare_gets_all_labels_of_its_nearest() -> None:
    # Annotator 0 labelled row 0 alone, annotator 1 row 1 alone. Each draws a row: both labels have
    # probability 1/4, one alone 1/4 each, and none 1/4, for which the label of row 0, the nearest,
    # is copied.
    dense = np.array([[0, -1], [-1, 1]])
    instances, annotators, _ = copy_annotations(
        as_sparse(dense), np.tile([0, 1], (4000, 1)), np.random.default_rng(0)
    )
    seen = np.zeros((4000, 2), bool)
    seen[instances, annotators] = True
    result = [
        (seen == pattern).all(axis=1).mean()
        for pattern in ([True, True], [True, False], [False, True])
    ]
    assert result == pytest.approx([0.25, 0.5, 0.25], abs=0.04)


def test_blocks_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "_CELLS_AT_ONCE", 6)  # two instances at a time
    dense = np.random.default_rng(3).integers(-1, 3, (8, 3))
    dense[:, 0] = 2
    near = np.array([[4], [7], [0], [3], [3]])
    instances, annotators, labels = copy_annotations(
        as_sparse(dense), near, np.random.default_rng(0)
    )
    new = np.full((5, 3), -1)
    new[instances, annotators] = labels
    assert new.tolist() == dense[near[:, 0]].tolist()


def test_nothing_to_copy() -> None:
    assert [
        len(block)
        for block in copy_annotations(
            as_sparse(np.zeros((3, 2), int)), np.zeros((0, 2), int), np.random.default_rng(0)
        )
    ] == [0, 0, 0]


def test_too_many_neighbours_are_all_there_are() -> None:
    z = np.array([[0], [1], [3], [7]], np.float32)
    assert nearest(z, np.array([[5.5]], np.float32), 9).tolist() == [[3, 2, 1, 0]]
    assert nearest(z, None, 9).tolist() == [[1, 2, 3], [0, 2, 3], [1, 0, 3], [2, 1, 0]]


# ----------------------------------------------------------------- warm-up


def test_groups_are_distinct_certainties() -> None:
    certainty = np.array([5.0, 9.0, 1.0, 9.0, 7.0, 0.5, 9.0 * (1 + 1e-14)])
    assert certainty_groups(certainty).tolist() == [3, 1, 4, 1, 2, 4, 1]
    assert certainty_groups(np.ones(3)).tolist() == [1, 1, 1]
    assert certainty_groups(np.zeros(0)).tolist() == []


def test_schedules() -> None:
    groups = np.array([1, 4, 3, 2, 1])
    assert [rows.tolist() for rows in warm_up_schedule("groups", groups, 6)] == [
        [2],
        [2],
        [3],
        [3],
        [0, 4],
        [0, 4],
    ]
    assert [rows.tolist() for rows in warm_up_schedule("groups", groups, 4)] == [
        [2],
        [2],
        [3],
        [0, 4],
    ]
    assert [rows.tolist() for rows in warm_up_schedule("top", groups, 1)] == [[0, 2, 3, 4]]
    assert [rows.tolist() for rows in warm_up_schedule("all", groups, 2)] == [[0, 1, 2, 3, 4]] * 2
    assert warm_up_schedule("none", groups, 2) == []
    # Unanimous annotators: one group takes all epochs.
    assert [rows.tolist() for rows in warm_up_schedule("groups", np.ones(2, int), 2)] == [
        [0, 1],
        [0, 1],
    ]
    with pytest.raises(UsageError, match="warm_up"):
        warm_up_schedule("cold", groups, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("small", [0, 1 << 40])
def test_neighbours_against_a_naive_loop_with_and_without_threads(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "_SMALL", small)
    rng = np.random.default_rng(0)
    points, queries = (
        rng.normal(size=(30, 4)).astype(np.float32),
        rng.normal(size=(7, 4)).astype(np.float32),
    )
    for i, row in enumerate(nearest(points, queries, 3)):
        assert (
            row.tolist()
            == sorted(range(30), key=lambda j: float(np.linalg.norm(points[j] - queries[i])))[:3]
        )
    for i, row in enumerate(nearest(points, None, 3)):
        assert (
            row.tolist()
            == sorted(
                (j for j in range(30) if j != i),
                key=lambda j: float(np.linalg.norm(points[j] - points[i])),
            )[:3]
        )
    # Other points at the same place are neighbours, the point itself is not.
    assert all(i not in row for i, row in enumerate(nearest(np.zeros((5, 2), np.float32), None, 4)))


def test_class_mix() -> None:
    groups, labels = np.array([1, 1, 1, 3, 3]), np.array([0, 0, 1, 1, 1])
    assert class_mix(groups, labels, 2).tolist() == [[2, 1], [0, 0], [0, 2]]
    assert class_mix(groups[:0], labels[:0], 2).shape == (0, 2)
