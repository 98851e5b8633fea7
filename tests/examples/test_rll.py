"""examples/rll.py against the package: formulas, groups and a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from examples import rll
from neucrowd_tf.methods.rll import RLL

Compare = Callable[[Any, Any], None]


def test_its_defaults_are_the_packages() -> None:
    package = RLL()
    names = ("k", "eta", "epochs", "learning_rate", "prior_mass")
    assert [getattr(rll, name) for name in names] == [getattr(package, name) for name in names]
    assert (rll.batch, rll.steps) == (package.batch_size, package.steps_per_epoch)


@pytest.mark.parametrize("rule", ["bayesian", "mle"])
def test_confidence(voted, alike: Compare, rule: str) -> None:
    data, positive = voted
    theirs = RLL(rule)._confidence(data.annotations.vote_counts(), data.labels)
    formula = {"bayesian": rll.confidence, "mle": rll.confidence_mle}[rule]
    alike([formula(data.labels, positive)], [theirs])


def test_a_step_has_the_packages_loss_and_gradients(voted, alike: Compare) -> None:
    data, positive = voted
    estimator = RLL(seed=3)
    estimator.classes_ = np.arange(2)
    package, _ = estimator._model_and_batches(data)
    encoder = rll.make_encoder(8, 3)
    alike(encoder.get_weights()[::2], package.encoder.get_weights()[::2])  # biases begin at 0
    groups = tf.constant(rll.draw_groups(default_rng(0), data.labels, rll.batch))
    delta = tf.constant(rll.confidence(data.labels, positive))
    loss, gradients = rll.loss_and_gradients(encoder, data.features, delta, groups)
    with tf.GradientTape() as tape:
        losses = package.tuplet_losses(groups, tf.zeros(len(groups), tf.int32))
        theirs = tf.reduce_mean(losses) + package.penalty(package.encoder)
    variables = package.encoder.trainable_variables
    alike([loss, *gradients], [theirs, *tape.gradient(theirs, variables)])


def test_groups_are_drawn_evenly_and_without_repetition(voted) -> None:
    labels = voted[0].labels
    groups = rll.draw_groups(default_rng(1), labels, 20_000)
    assert (labels[groups] == [1, 1, 0, 0, 0]).all()
    assert (np.diff(np.sort(groups, axis=1), axis=1) > 0).all()
    for column, label in enumerate((1, 1, 0, 0, 0)):
        share = np.bincount(groups[:, column], minlength=60)[labels == label] / 20_000
        np.testing.assert_allclose(share, 1 / (labels == label).sum(), atol=0.008)


def test_it_runs_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rll, "epochs", 8)
    splits = rll.simulate(seed=0)
    accuracy, z = rll.run(splits, seed=0)
    assert accuracy > 0.9 and z.shape == (349, 32)
