"""Selection of generated annotations: counts for each annotator, caps, and the probabilities of the
draw.
"""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.crowding.crowd import select_annotations, selection_counts

RNG = np.random.default_rng(0)
OBSERVED = RNG.random((40, 3)) < [0.1, 0.5, 0.95]


def test_counts_match_the_authentic_ones_and_are_capped() -> None:
    # Of 4 instances: one label leaves 3 free, so 1; three labels leave one free, so 1; all four
    # leave none; nobody's zero.
    observed = np.array([[1, 1, 1, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]], dtype=bool)
    np.testing.assert_array_equal(selection_counts(observed), [1, 1, 0, 0])


@pytest.mark.parametrize("by_entropy", [True, False])
def test_each_annotator_gets_the_wanted_number_of_empty_cells_once(by_entropy: bool) -> None:
    counts = selection_counts(OBSERVED)
    authentic = OBSERVED.sum(axis=0)
    assert counts[0] == authentic[0] and counts[2] == 40 - authentic[2] < authentic[2]
    entropies = RNG.random(OBSERVED.shape).astype(np.float32)
    rows, codes = (
        np.asarray(part)
        for part in select_annotations(entropies, OBSERVED, counts, [0, 1], by_entropy=by_entropy)
    )
    np.testing.assert_array_equal(np.bincount(codes, minlength=3), counts)
    assert not OBSERVED[rows, codes].any()
    assert len(set(zip(rows.tolist(), codes.tolist(), strict=True))) == len(rows)
    # Annotator 2 labelled nearly everything: all that is left is taken.
    np.testing.assert_array_equal(np.sort(rows[codes == 2]), np.flatnonzero(~OBSERVED[:, 2]))


@pytest.mark.parametrize("by_entropy", [True, False])
def test_one_draw_has_probability_proportional_to_one_over_entropy(by_entropy: bool) -> None:
    # 1/H is 1 : 2 : 4 over three free cells, so the first one drawn is each of them with 1/7, 2/7,
    # 4/7.
    size = 9000
    entropies = np.repeat(np.array([[1.0], [0.5], [0.25], [0.1]], np.float32), size, axis=1)
    observed = np.repeat(np.array([[False], [False], [False], [True]]), size, axis=1)
    rows, _ = select_annotations(
        entropies, observed, np.ones(size, np.int32), [0, 7], by_entropy=by_entropy
    )
    expected = [1 / 7, 2 / 7, 4 / 7, 0.0] if by_entropy else [1 / 3, 1 / 3, 1 / 3, 0.0]
    np.testing.assert_allclose(np.bincount(rows, minlength=4) / size, expected, atol=0.02)


def test_the_draw_is_a_function_of_the_seed_and_survives_an_entropy_of_zero() -> None:
    entropies = np.zeros(OBSERVED.shape, np.float32)
    counts = selection_counts(OBSERVED)
    first, again, other = (
        select_annotations(entropies, OBSERVED, counts, [0, seed])[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()
