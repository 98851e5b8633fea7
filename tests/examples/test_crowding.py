"""examples/crowding.py against the package: graph, selection, rewards and the turns' steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from examples import crowding
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowding import CrowdInG
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.networks import fold, pair_noise
from neucrowd_tf.methods.crowding.objectives import selection_counts, split_by_entropy
from neucrowd_tf.methods.crowding.records import Logged, Pairs

Compare = Callable[[Any, Any], None]
# Layers of the example, and what they are called in the package.
GENERATOR = """
embed_x instance_embedding
embed_e annotator_embedding
from_x from_instance
from_e from_annotator
from_z_hat from_classifier
from_noise from_noise
scores scores
"""
DISCRIMINATOR = """
encode_x instance_encoder
encode_e annotator_encoder
"""
AUXILIARY = """
embed_label label_embedding
from_label from_label
from_x from_instance
from_e from_annotator
scores scores
"""
N, R = 60, 5
RATE = 1e3  # so that rounding of the weights is small beside the step
SEED = np.array([3, 4], np.int32)


@pytest.fixture(scope="module")
def table():
    """Labels of 60 instances by five annotators, a third of the cells."""
    rng = default_rng(2)
    return np.where(rng.random((N, R)) < 0.3, rng.integers(8, size=(N, R)), -1).astype("int32")


class Played:
    """The package's game whose optimizers step by the gradient itself, and the example's networks.

    Both have the same weights; each turn is one batch and one pass.
    """

    def __init__(self, Y) -> None:
        rng = default_rng(1)
        self.x, self.e = rng.normal(size=(N, 6)).astype("float32"), np.eye(R, dtype="float32")
        self.classifier = crowding.make_classifier(6)
        settings = CrowdInG(passes=1, batch_size=N)
        averaged = keras.models.clone_model(self.classifier)
        self.game = Game(settings, self.classifier, averaged, (6,), R)
        crowd = Annotations.from_dense(Y, num_classes=8)
        self.game.restart(settings, self.classifier, self.x, crowd)
        for name in ("optimizer", "generator_optimizer", "classifier_optimizer"):
            setattr(self.game, name, keras.optimizers.SGD(RATE))
        self.z = self.classifier(self.x).numpy()
        self.y = rng.integers(8, size=(N, R)).astype("int32")
        self.G = crowding.Generator()
        self.D = crowding.Discriminator(crowding.label_correlation(Y))
        self.Q = crowding.Auxiliary()
        self.noise = pair_noise(fold(SEED, 0), [N, R, crowding.noise_size]).numpy()
        self.G(self.x[:, None], self.e, self.z[:, None], self.noise)
        self.judged()
        self.variables = [
            pair
            for one, other, layers in (
                (self.G, self.game.generator, GENERATOR),
                (self.D, self.game.discriminator, DISCRIMINATOR),
                (self.Q, self.game.auxiliary, AUXILIARY),
            )
            for ours, theirs in map(str.split, layers.strip().splitlines())
            for pair in zip(getattr(one, ours).weights, getattr(other, theirs).weights, strict=True)
        ]
        classifiers = (self.classifier.weights, self.game.classifier.weights)
        discriminator = self.game.discriminator
        self.variables += [*zip(*classifiers, strict=True)]
        self.variables += [(self.D.M, discriminator.matrices), (self.D.W, discriminator.mixing)]
        for ours, theirs in self.variables:
            theirs.assign(theirs + 0.01 * tf.ones_like(theirs))  # biases begin at 0
            ours.assign(theirs)
        self.z = self.classifier(self.x).numpy()

    def judged(self) -> tuple[Any, Any]:
        """The logits of D and log Q, of all instances by all annotators."""
        logits, encodings = self.D(self.x[:, None], self.e)
        return logits, self.Q(*encodings, self.y)

    def logged(self) -> tuple[Any, Any]:
        """Labels as if drawn, by the package and by the example."""
        rewards = crowding.rewards(self.D, self.Q, self.x[:, None], self.e, self.y, self.z[:, None])
        L_G, delta = (values.numpy() for values in rewards)
        G_0 = default_rng(5).uniform(1e-4, 0.5, size=(N, R)).astype("float32")
        theirs = Logged(np.arange(N, dtype=np.int32), self.z, self.y, G_0, L_G, delta)
        return theirs, (self.x, self.noise, self.z, self.y, G_0)

    def compare(self, alike: Compare, loss, networks, turn: Callable[[], Any]) -> None:
        """Compares gradients with how far the package's step moves its weights."""
        ids = {id(variable) for network in networks for variable in network.trainable_variables}
        pairs = [pair for pair in self.variables if id(pair[0]) in ids]
        with tf.GradientTape() as tape:
            value = loss()
        gradients = tape.gradient(value, [ours for ours, _ in pairs])
        for ours, theirs in self.variables:
            theirs.assign(ours)
        turn()
        moved = [(ours.numpy() - theirs.numpy()) / RATE for ours, theirs in pairs]
        alike([tf.convert_to_tensor(g) for g in gradients], moved)


@pytest.fixture(scope="module")
def played(table) -> Played:
    return Played(table)


def test_its_defaults_are_the_packages() -> None:
    package = CrowdInG()
    same = ("pretrain_epochs", "game_pretrain_epochs", "epochs", "passes", "noise_size")
    assert [getattr(crowding, name) for name in same] == [getattr(package, name) for name in same]
    assert (crowding.lam, crowding.t) == (package.information, package.threshold)
    assert (crowding.k, crowding.cap) == (package.embedding_size, Game.ratio_cap)
    assert crowding.floor == Game.ratio_floor and package.multiplier == "mean"


def test_graph_and_networks(played: Played, alike: Compare) -> None:
    game, x, e = played.game, played.x, played.e
    alike([played.D.correlation], [game.discriminator.correlation])
    encoded = game.discriminator.encode(x, e)
    logits, log_q = played.judged()
    alike([logits], [game.discriminator.all_pairs(*encoded)])
    alike([log_q], [game.auxiliary.all_pairs(*encoded, played.y)])
    hidden = game.generator.hidden(x, e, played.noise)
    theirs = tf.nn.log_softmax(game.generator.logits(hidden, played.z[:, None]))
    alike([played.G(x[:, None], e, played.z[:, None], played.noise)], [theirs])
    ours = crowding.rewards(played.D, played.Q, x[:, None], e, played.y, played.z[:, None])
    alike(ours, game.reward((x, e), played.z, played.y))


def test_selection(table) -> None:
    rng = default_rng(0)
    log_g = np.log(rng.dirichlet(np.full(8, 0.3), size=(N, R)) + 1e-9)
    counts, drawn = np.zeros((N, R)), 2_000
    for _ in range(drawn):
        rows, codes = crowding.select(rng, log_g, table)
        np.add.at(counts, (rows, codes), 1)
    assert np.bincount(codes).tolist() == selection_counts(table >= 0).tolist()
    assert counts.max() <= drawn and not counts[table >= 0].any()
    one = np.full((N, 1), -1)
    one[0] = 0  # one authentic label, so that one empty cell is drawn
    picked = [int(crowding.select(rng, log_g[:, :1], one)[0][0]) for _ in range(drawn)]
    entropy = -(np.exp(log_g) * log_g).sum(axis=-1)[1:, 0]
    share = np.bincount(picked, minlength=N)[1:] / drawn
    np.testing.assert_allclose(share, 1 / entropy / (1 / entropy).sum(), atol=0.03)


def test_the_step_of_the_discriminative_module(played: Played, table, alike: Compare) -> None:
    rows, codes = (column.astype(np.int32) for column in np.nonzero(np.ones((N, R))))
    authentic = (table >= 0).ravel()
    labels = np.where(authentic, table.ravel(), played.y.ravel())
    batch = played.x[rows], played.e[codes], labels, authentic, played.z[rows]
    pairs = Pairs(rows, codes, labels, authentic, played.z[rows])
    game = played.game
    inputs = (played.x, played.e)
    played.compare(
        alike,
        lambda: crowding.judges_loss(played.D, played.Q, *batch),
        [played.D, played.Q],
        lambda: game.discriminative_passes(inputs, pairs, tf.range(len(rows))[None]),
    )


@pytest.mark.parametrize("equation", [5, 6])
def test_the_steps_of_the_generative_module(played: Played, alike: Compare, equation: int) -> None:
    theirs, batch = played.logged()
    game, inputs = played.game, (played.x, played.e)
    if equation == 5:
        losses, networks = theirs.delta, [played.G]
        first, player = (crowding.generator_loss, played.G), "generator"
    else:
        losses, networks = theirs.authenticity, [played.classifier]
        first = crowding.classifier_loss, played.G, played.classifier
        player = "classifier"
    mu, passes = losses.mean(), game.passes[player,]
    played.compare(
        alike,
        lambda: first[0](*first[1:], played.e, *batch, losses, mu),
        networks,
        lambda: passes(inputs, theirs, SEED, {player: tf.constant(mu)}),
    )


def test_the_split_by_entropy() -> None:
    z = default_rng(0).dirichlet(np.ones(8), size=N)
    order = np.argsort(-np.sum(z * np.log(z), axis=1), kind="stable")
    entropies = tf.constant(-np.sum(z * np.log(z), axis=1))
    sure, unsure = split_by_entropy(entropies, crowding.t)
    assert order[: round(crowding.t * N)].tolist() == sure.numpy().tolist()
    assert order[round(crowding.t * N) :].tolist() == unsure.numpy().tolist()


def test_it_runs_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("game_pretrain_epochs", "epochs", "passes"):
        monkeypatch.setattr(crowding, name, 1)
    x, Y, *others = crowding.simulate(seed=0)
    # All batches of a step are of one shape, which is traced once: 384 images and 512 labels.
    x, Y = x[:384], Y[:384]
    Y[tuple(column[512:] for column in np.nonzero(Y >= 0))] = -1
    accuracy, predicted, y = crowding.run((x, Y, *others), seed=0)
    assert accuracy > 0.8 and y.shape == (384, 15) and len(predicted) == 384
