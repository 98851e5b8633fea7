"""Eqs. 5 and 6: importance ratios, the risk and its gradient, and the search for mu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from neucrowd_tf.crowding.counterfactual import (
    CANDIDATES,
    counterfactual_risk,
    effective_share,
    importance_ratios,
    ratio_report,
    ratio_sums,
    search_multiplier,
    self_normalised_estimate,
)
from neucrowd_tf.crowding.generator import Generator

RNG = np.random.default_rng(0)


def test_ratios_by_hand() -> None:
    # .5 / .25 = 2; .9 / .01 = 90 is capped; .01 / max(1e-6, 1e-3) = 10 is the cap itself; 0 / .5 =
    # 0.
    np.testing.assert_allclose(
        importance_ratios(np.float32([0.5, 0.9, 0.01, 0.0]), np.float32([0.25, 0.01, 1e-6, 0.5])),
        [2, 10, 10, 0],
        rtol=1e-5,
    )


def test_risk_equals_a_naive_loop_and_passes_no_gradient_to_the_losses() -> None:
    losses, ratios = (
        RNG.normal(size=(4, 3)).astype(np.float32),
        RNG.random((4, 3)).astype(np.float32),
    )
    expected = np.mean([(losses[n, r] - 0.3) * ratios[n, r] for n in range(4) for r in range(3)])
    delta = tf.Variable(losses)
    with tf.GradientTape() as tape:
        risk = counterfactual_risk(delta, ratios, 0.3)
    np.testing.assert_allclose(risk, expected, rtol=1e-5)
    assert tape.gradient(risk, delta) is None


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


def test_gradient_equals_finite_differences() -> None:
    generator = Generator(3, 2, 3, embedding_size=2, hidden_units=4, noise_size=2, seed=0)
    x, z = (
        RNG.normal(size=(3, 3)).astype(np.float32),
        RNG.dirichlet(np.ones(3), size=3).astype(np.float32),
    )
    e, noise = np.eye(2, dtype=np.float32), RNG.normal(size=(3, 2, 2)).astype(np.float32)
    labels, losses = RNG.integers(0, 3, (3, 2)), RNG.normal(size=(3, 2)).astype(np.float32)
    logged = np.full((3, 2), 1 / 3, np.float32)

    def risk(latent: Any) -> Any:
        current = tf.gather(
            tf.nn.softmax(generator.all_pairs(x, latent, e, noise)), labels, axis=2, batch_dims=2
        )
        return counterfactual_risk(losses, importance_ratios(current, logged), losses.mean())

    latent = tf.Variable(z)
    variables = [*generator.trainable_variables, latent]
    with tf.GradientTape() as tape:
        value = risk(latent)
    for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
        start = np.array(variable)
        for position in np.ndindex(*start.shape):
            ends = []
            for step in (1e-2, -1e-2):
                moved = start.copy()
                moved[position] += step
                variable.assign(moved)
                ends.append(float(risk(latent)))
            variable.assign(start)
            assert np.isclose(
                (ends[0] - ends[1]) / 2e-2, np.asarray(gradient)[position], rtol=0.05, atol=2e-4
            )


def test_a_capped_ratio_has_no_gradient() -> None:
    current = tf.Variable([0.9, 0.2])
    with tf.GradientTape() as tape:
        risk = counterfactual_risk(
            tf.constant([1.0, 1.0]), importance_ratios(current, tf.constant([0.01, 0.4])), 0.0
        )
    np.testing.assert_allclose(tape.gradient(risk, current), [0.0, 0.5 / 0.4], rtol=1e-6)


def test_sums_by_hand() -> None:
    # Ratios 1 and 3, losses 2 and -1: the estimate is (2 - 3) / 4, the effective share 16 / (2 x
    # 10).
    sums = ratio_sums(tf.constant([2.0, -1.0]), tf.constant([1.0, 3.0]))
    np.testing.assert_allclose(sums, [-1.0, 4.0, 10.0, 2.0])
    np.testing.assert_allclose(
        [self_normalised_estimate(sums), effective_share(sums)], [-0.25, 0.8]
    )
    np.testing.assert_allclose(effective_share(ratio_sums(tf.zeros(4), tf.fill([4], 2.5))), 1.0)
    assert set(ratio_report("generator", 0.0, sums)) == {
        "generator_estimate",
        "generator_effective_share",
        "generator_multiplier",
    }


@pytest.mark.parametrize("multiplier", [0.25, "mean"])
def test_a_given_multiplier_and_the_mean_take_one_turn(multiplier: Any) -> None:
    taken = []

    def run(mu: Any) -> Any:
        taken.append(float(mu))
        return tf.ones([4])

    mu, _ = search_multiplier(multiplier, run, tf.constant([1.0, 2.0, 6.0]), [])
    assert taken == [float(mu)] == [0.25 if multiplier == 0.25 else 3.0]


def test_the_search_keeps_the_turn_with_the_lowest_estimate() -> None:
    losses = tf.range(11, dtype=tf.float32)
    values = losses.numpy()[(np.array(CANDIDATES) * 10).astype(int)]
    weight, count = tf.Variable(0.0), tf.Variable(0)

    def run(mu: Any) -> Any:
        weight.assign_add(mu)  # each turn starts where the first one did
        count.assign_add(1)
        return tf.stack([tf.square(mu - 7.0), 1.0, 1.0, 1.0])

    mu, sums = tf.function(
        lambda: search_multiplier("search", run, losses, [weight]), autograph=False
    )()
    assert float(mu) == float(weight) == values[3] and int(count) == len(CANDIDATES)
    assert float(sums[0]) == (values[3] - 7.0) ** 2
