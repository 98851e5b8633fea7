"""CrowdInG's equations 3 to 6, its selection and its split: hand values, loops and invariants."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.methods.crowding.objectives import (
    authentic_loss,
    authenticity_loss,
    counterfactual_risk,
    discriminator_losses,
    entropy,
    generator_delta,
    importance_ratios,
    latent_log_likelihood,
    output_penalty,
    quantiles,
    ratio_sums,
    select_annotations,
    selection_counts,
    self_normalised_estimate,
    split_by_entropy,
)
from tests.crowds import array_of

RNG = default_rng(0)
OBSERVED = RNG.random((40, 3)) < [0.1, 0.5, 0.95]


# ----------------------------------------------------------------- discriminator (eq. 4)


def test_losses_by_hand() -> None:
    # At logits of zero D is 1/2 everywhere: an authentic annotation of 3 classes costs 3 log 2, a
    # generated one log 2.
    losses = discriminator_losses(
        np.zeros((2, 3), np.float32), np.array([1, 1]), np.array([True, False])
    )
    assert_allclose(losses, [3 * np.log(2), np.log(2)], rtol=1e-6)
    assert_allclose(output_penalty(np.zeros((4, 3), np.float32)), 0.25)
    assert_allclose(
        authenticity_loss(np.zeros((2, 2, 3), np.float32), np.zeros((2, 2), np.int32)),
        -np.log(2) * np.ones((2, 2)),
        rtol=1e-6,
    )


def test_losses_stay_finite_and_a_generated_annotation_moves_one_entry() -> None:
    logits = tf.Variable(np.full((2, 3), 80.0, np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(
            discriminator_losses(logits, np.array([0, 2]), np.array([False, False]))
        )
    assert np.isfinite(loss)
    assert_array_equal(
        np.asarray(tape.gradient(loss, logits)) != 0, [[True, False, False], [False, False, True]]
    )


# ----------------------------------------------------------------- information (eq. 3)


def test_the_latent_likelihood_by_hand() -> None:
    # z-hat is certain; Q gives the right class 3/4.
    latent = np.eye(2, dtype=np.float32)
    log_q = np.log(array_of("0.75 0.25; 0.25 0.75", np.float32))
    assert_allclose(latent_log_likelihood(latent, log_q), np.log([0.75, 0.75]), rtol=1e-6)


def test_delta_by_hand_falls_as_labels_tell_more_of_the_class() -> None:
    # L_G = -1; E[log Q] = -2 and -.5; lambda = .4: -1 + .8 and -1 + .2.
    delta = generator_delta(np.float32([-1.0, -1.0]), np.float32([-2.0, -0.5]), 0.4)
    assert_allclose(delta, [-0.2, -0.8], rtol=1e-6)


def test_the_likelihood_of_authentic_annotations_by_hand() -> None:
    log_g = np.log(np.float32([[0.25, 0.75], [0.5, 0.5]]))
    expected = -(np.log(0.75) + np.log(0.5)) / 2
    assert_allclose(authentic_loss(log_g, np.array([1, 0])), expected, rtol=1e-6)


# ----------------------------------------------------------------- eqs. 5 and 6


def test_ratios_by_hand() -> None:
    # .5 / .25 = 2; .9 / .01 = 90 is capped; .01 / max(1e-6, 1e-3) = 10 is the cap itself; 0 / .5 =
    # 0.
    assert_allclose(
        importance_ratios(
            np.float32([0.5, 0.9, 0.01, 0.0]),
            np.float32([0.25, 0.01, 1e-6, 0.5]),
            cap=10.0,
            floor=1e-3,
        ),
        [2, 10, 10, 0],
        rtol=1e-5,
    )


def test_risk_is_unbiased() -> None:
    # Over all labels weighted by the logging policy, E[(delta - mu) G / G0] is E_G[delta] - mu,
    # whatever G0.
    delta, logged, current = (
        RNG.normal(size=5),
        RNG.dirichlet(np.ones(5) * 5),
        RNG.dirichlet(np.ones(5) * 5),
    )
    ratios = np.asarray(importance_ratios(current, logged, cap=1e9, floor=1e-12))
    assert np.isclose((logged * (delta - 0.7) * ratios).sum(), (current * delta).sum() - 0.7)


def test_a_capped_ratio_has_no_gradient() -> None:
    current = tf.Variable([0.9, 0.2])
    with tf.GradientTape() as tape:
        ratios = importance_ratios(current, tf.constant([0.01, 0.4]), cap=10.0, floor=1e-3)
        risk = counterfactual_risk(tf.constant([1.0, 1.0]), ratios, 0.0)
    assert_allclose(tape.gradient(risk, current), [0.0, 0.5 / 0.4], rtol=1e-6)


def test_sums_by_hand() -> None:
    # Ratios 1 and 3, losses 2 and -1: the estimate is (2 - 3) / 4.
    sums = ratio_sums(tf.constant([2.0, -1.0]), tf.constant([1.0, 3.0]))
    assert_allclose(sums, [-1.0, 4.0])
    assert_allclose(self_normalised_estimate(sums), -0.25)


def test_quantiles_by_hand() -> None:
    # Of 0 to 10 the quantiles .1, .3, .5, .7 and .9 are 1, 3, 5, 7 and 9.
    assert_array_equal(quantiles(tf.range(11, dtype=tf.float32)), [1, 3, 5, 7, 9])


# ----------------------------------------------------------------- entropy (3.3.1, 3.3.3)


def test_counts_match_the_authentic_ones_and_are_capped() -> None:
    # Of 4 instances: one label leaves 3 free, so 1; three labels leave one free, so 1; all four
    # leave none; nobody's zero.
    observed = array_of("1 1 1 0; 0 1 1 0; 0 1 1 0; 0 0 1 0", bool)
    assert_array_equal(selection_counts(observed), [1, 1, 0, 0])


@pytest.mark.parametrize("by_entropy", [True, False])
def test_each_annotator_gets_the_wanted_number_of_empty_cells_once(by_entropy: bool) -> None:
    counts = selection_counts(OBSERVED)
    authentic = OBSERVED.sum(axis=0)
    assert counts[0] == authentic[0] and counts[2] == 40 - authentic[2] < authentic[2]
    entropies = RNG.random(OBSERVED.shape).astype(np.float32)
    rows, codes = (
        np.asarray(array)
        for array in select_annotations(entropies, OBSERVED, counts, [0, 1], by_entropy=by_entropy)
    )
    assert_array_equal(np.bincount(codes, minlength=3), counts)
    assert not OBSERVED[rows, codes].any()
    assert len(set(zip(rows.tolist(), codes.tolist(), strict=True))) == len(rows)
    # Annotator 2 labelled nearly everything: all that is left is taken.
    assert_array_equal(np.sort(rows[codes == 2]), np.flatnonzero(~OBSERVED[:, 2]))


@pytest.mark.parametrize("by_entropy", [True, False])
def test_one_draw_has_probability_proportional_to_one_over_entropy(by_entropy: bool) -> None:
    # 1/H is 1 : 2 : 4 over three free cells, so the first one drawn is each of them with 1/7, 2/7,
    # 4/7.
    size = 9000
    entropies = np.repeat(array_of("1.0; 0.5; 0.25; 0.1", np.float32), size, axis=1)
    observed = np.repeat(np.array([[False], [False], [False], [True]]), size, axis=1)
    rows, _ = select_annotations(
        entropies, observed, np.ones(size, np.int32), [0, 7], by_entropy=by_entropy
    )
    expected = [1 / 7, 2 / 7, 4 / 7, 0.0] if by_entropy else [1 / 3, 1 / 3, 1 / 3, 0.0]
    assert_allclose(np.bincount(rows, minlength=4) / size, expected, atol=0.02)


def test_the_draw_is_a_function_of_the_seed_and_survives_an_entropy_of_zero() -> None:
    entropies = np.zeros(OBSERVED.shape, np.float32)
    counts = selection_counts(OBSERVED)
    first, again, other = (
        select_annotations(entropies, OBSERVED, counts, [0, seed])[0] for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()


def test_entropy_by_hand() -> None:
    # One half, one quarter, one quarter: 1/2 log 2 + 2 x 1/4 log 4 = 3/2 log 2.
    values = entropy(array_of("0.5 0.25 0.25; 1.0 0.0 0.0; 1/3 1/3 1/3"))
    assert_allclose(values, [1.5 * np.log(2), 0.0, np.log(3)], atol=1e-12)


def test_split_by_entropy_gives_the_surest_to_the_generator() -> None:
    sure, unsure = split_by_entropy(array_of("0.3 0.1 0.9 0.2 0.5", np.float32), 0.4)
    assert_array_equal(sure, [1, 3])
    assert_array_equal(unsure, [0, 4, 2])


def test_of_a_few_instances_each_player_gets_one() -> None:
    # round(.05 x 5) = 0 and round(.95 x 5) = 5 would leave one of them nothing to learn from.
    entropies = array_of("0.3 0.1 0.9 0.2 0.5", np.float32)
    for threshold, sizes in ((0.05, (1, 4)), (0.95, (4, 1))):
        parts = split_by_entropy(entropies, threshold)
        assert tuple(len(array) for array in parts) == sizes
        assert_array_equal(np.concatenate(parts), [1, 3, 0, 4, 2])
