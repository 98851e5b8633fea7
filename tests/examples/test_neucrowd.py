"""examples/neucrowd.py against the package: formulas, tuplets and the steps of section 3.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from examples import neucrowd
from neucrowd_tf.methods.neucrowd import NeuCrowd

Compare = Callable[[Any, Any], None]


def test_its_defaults_are_the_packages() -> None:
    package = NeuCrowd()
    names = ("n", "eta", "unsafe_weight", "epochs", "learning_rate")
    assert [getattr(neucrowd, name) for name in names] == [getattr(package, name) for name in names]
    assert (neucrowd.C, neucrowd.margin) == (package.offset, package.safety_margin)
    assert (neucrowd.b, neucrowd.steps) == (package.batch_size, package.steps_per_epoch)
    assert neucrowd.pool == neucrowd.b * package.pool_factor and package.sampler_warmup == 1


def test_assurance_and_safe_examples(voted, alike: Compare) -> None:
    data, positive = voted
    package = NeuCrowd()
    package.assurance_ = package._assurance(data.annotations.vote_counts())
    assurance = neucrowd.label_assurance(positive)
    alike([assurance], [package.assurance_])
    z = default_rng(2).normal(size=(60, 4))
    safe = neucrowd.safe_examples(z, data.labels, assurance)
    assert 0.2 < safe.mean() < 0.8
    assert (safe == package._safe_examples(z, data.labels, package.assurance_)).all()


@pytest.mark.parametrize("choose", [False, True])
def test_a_step_has_the_packages_losses_and_gradients(voted, alike: Compare, choose: bool) -> None:
    data, positive = voted
    estimator = NeuCrowd(seed=3)
    estimator.classes_ = np.arange(2)
    package, _ = estimator._model_and_batches(data)
    package.compile(optimizer="adam")
    encoder, sampler = neucrowd.make_encoder(8, 3), neucrowd.Sampler(8, 3 + 7919)
    alike(encoder.get_weights()[::2], package.encoder.get_weights()[::2])  # biases begin at 0
    alike(sampler.encoder.get_weights()[::2], package.sampler.encoder.get_weights()[::2])
    sampler.score.kernel.assign(tf.reshape(tf.transpose(package.sampler.slots), [-1, 1]))
    sampler.score.bias.assign([0.3])
    package.sampler.bias.assign(0.3)

    rng, assurance = default_rng(0), neucrowd.label_assurance(positive)
    tuplets = tf.constant(neucrowd.draw_tuplets(rng, np.ones(60), data.labels, neucrowd.pool))
    loss, sampler_loss, first, second = neucrowd.losses_and_gradients(
        encoder, sampler, data.features, assurance, tuplets, choose
    )
    classes = tf.zeros(len(tuplets), tf.int32)
    step = package.warmup_steps if choose else 0
    tuplets, classes = package.select(package.sampler, tuplets, classes, step)
    losses, _, gradients = package.representation_step(tuplets, classes)
    variables, of_sampler = package.sampler_step(package.sampler, tuplets, losses)

    penalty = package.penalty(package.encoder)
    alike([loss, *first], [tf.reduce_mean(losses) + penalty, *gradients])
    error = package.sampler_loss.result() + package.penalty(package.sampler.encoder)
    theirs = dict(zip([variable.path for variable in variables], of_sampler, strict=True))
    slots = theirs.pop(package.sampler.slots.path)
    bias = theirs.pop(package.sampler.bias.path)
    alike(
        [sampler_loss, *second],
        [error, *theirs.values(), np.reshape(np.transpose(slots), [-1, 1]), [bias]],
    )


def test_tuplets_are_drawn_by_weight_and_without_repetition(voted) -> None:
    labels = voted[0].labels
    weights = np.where(np.arange(60) % 2, 1.0, 0.3)
    tuplets = neucrowd.draw_tuplets(default_rng(1), weights, labels, 20_000)
    assert (labels[tuplets] == [1, 1, 0, 0, 0]).all()
    assert (np.diff(np.sort(tuplets, axis=1), axis=1) > 0).all()
    for column, label in ((0, 1), (2, 0)):
        share = np.bincount(tuplets[:, column], minlength=60) / 20_000
        expected = np.where(labels == label, weights, 0)
        np.testing.assert_allclose(share, expected / expected.sum(), atol=0.008)


def test_it_runs_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neucrowd, "epochs", 4)
    splits = neucrowd.simulate(seed=0)
    accuracy, z, safe = neucrowd.run(splits, seed=0)
    assert accuracy > 0.9 and z.shape == (120, 32) and 0.5 < safe.mean() < 1
