"""examples/iced.py against the package: formulas, inference, synthesis and the three losses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from examples import iced
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.iced import ICED, label_certainty
from neucrowd_tf.methods.iced.inference import infer_labels
from neucrowd_tf.methods.iced.networks import ICEDModel, epoch_order
from neucrowd_tf.methods.iced.synthesis import (
    balancing_counts,
    copy_annotations,
    interpolation_weights,
    nearest,
    synthesise,
)
from tests.crowds import array_of, noisy_labels

Compare = Callable[[Any, Any], None]


@pytest.fixture(scope="module")
def answers():
    """Nine annotators' labels of 60 samples, a third of them in class 1."""
    rng = default_rng(3)
    return noisy_labels(rng, (np.arange(60) % 3 == 0).astype(int), 9, 0.8)


def crowd_of(answers) -> Annotations:
    instances, annotators = np.indices(answers.shape).reshape(2, -1)
    return Annotations(instances, annotators, answers.ravel(), num_classes=2)


def test_its_defaults_are_the_packages() -> None:
    names = ("autoencoder_epochs", "warm_up_epochs", "rounds", "k", "annotation_neighbours")
    more = ("epsilon", "smoothing", "learning_rate")
    package = ICED()
    for name in (*names, *more):
        assert getattr(iced, name) == getattr(package, name), name
    assert (iced.noise, iced.batch) == (package.eta, package.batch_size)
    choices = package.candidates, package.prior, package.em, package.warm_up
    assert choices == ("classifier", "uniform", "soft", "all")


def test_certainty_and_delta(answers, alike: Compare) -> None:
    crowd, rng = crowd_of(answers), default_rng(0)
    S = iced.certainty(answers)
    alike([S], [label_certainty(crowd.vote_counts(), iced.epsilon)])
    S_r, eta = rng.permutation(S), rng.uniform(-0.1, 0.1, size=60)
    delta = iced.interpolation(S, S_r, eta)
    assert delta.min() == 0 and delta.max() == 1
    alike([delta], [interpolation_weights(S, S_r, eta, printed=False)])


def test_inference(answers) -> None:
    one_hot = crowd_of(answers).one_hot()
    for limit in (1, 3, 100):
        package = infer_labels(one_hot, 2, smoothing=iced.smoothing, max_iter=limit, tol=0)
        np.testing.assert_allclose(iced.infer(answers, limit), package.probas, atol=1e-5)
    mean = answers.mean(axis=1)
    assert np.abs(iced.infer(answers)[:, 1] - mean).max() > 0.2  # it is not majority vote


def test_synthesis(answers, alike: Compare) -> None:
    rng = default_rng(4)
    z = rng.normal(size=(60, 4)).astype(np.float32)
    candidates, S = np.flatnonzero(np.arange(60) % 3 == 0), iced.certainty(answers)
    ours = iced.synthesize(default_rng(6), z, candidates, 50, S)
    theirs = synthesise(z, candidates, 50, S, default_rng(6), k=iced.k, eta=iced.noise)
    alike(ours, [theirs.embeddings, theirs.candidates, theirs.neighbours])
    copied = iced.copy_answers(default_rng(7), z, ours[0], answers)
    near = nearest(z, ours[0], iced.annotation_neighbours)
    labels = crowd_of(answers).to_sparse()
    rows, annotators, codes = copy_annotations(labels, near, default_rng(7))
    assert (copied[rows, annotators] == codes).all() and len(codes) == copied.size
    assert balancing_counts(array_of("0 0 0 1 1"), 2).tolist() == [0, 1]


def test_batches_are_whole() -> None:
    rows = np.concatenate(list(iced.batches(default_rng(0), 70)))
    assert len(rows) == 96 == len(epoch_order(np.arange(70), 32, default_rng(0)))
    assert set(rows[:70]) == set(range(70))


def test_the_losses_and_gradients_are_the_packages(answers, alike: Compare) -> None:
    x = default_rng(1).random((60, 16)).astype(np.float32)
    G, head, Q = iced.make_networks(16, 3)
    copies = [keras.models.clone_model(network) for network in (G, head, Q)]
    for copy, network in zip(copies, (G, head, Q), strict=True):
        copy.set_weights(network.get_weights())
    package = ICEDModel(
        *copies, x, 2, batch_size=32, make_optimizer=lambda: keras.optimizers.Adam(1e-3)
    )
    labels, rows = iced.majority_vote(answers), tf.range(32)
    package.set_rows(np.eye(2)[labels])
    pairs = [
        (lambda: iced.autoencoder_loss(G, Q, x[:32]), package._autoencoder_loss, (0, 2)),
        (
            lambda: iced.classifier_loss(G, head, x[:32], labels[:32]),
            package._classifier_loss,
            (0, 1),
        ),
        (lambda: iced.decoder_loss(G, Q, x[:32]), package._decoder_loss, (2,)),
    ]
    for ours, theirs, trained in pairs:
        found = []
        for loss, networks in ((ours, (G, head, Q)), (functools.partial(theirs, rows), copies)):
            variables = [v for place in trained for v in networks[place].trainable_variables]
            with tf.GradientTape() as tape:
                value = loss()
            found.append([value, *tape.gradient(value, variables)])
        alike(*found)


def test_it_runs_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iced, "rounds", 5)
    monkeypatch.setattr(iced, "autoencoder_epochs", 10)
    accuracy, triples = iced.run(iced.simulate(seed=0), seed=0)
    assert accuracy > 0.85 and all(images.shape[1] == 64 for images in triples)
