"""The turns of CrowdInG's game against naive loops: losses, rewards, and what each turn changes."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.methods.crowding import CrowdInG
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.networks import Drawn, draw_labels, fold, pair_noise
from neucrowd_tf.methods.crowding.objectives import (
    CANDIDATES,
    entropy,
    selection_counts,
    split_by_entropy,
)
from neucrowd_tf.methods.crowding.records import Logged, Purpose
from neucrowd_tf.methods.crowding.turns import PURPOSES
from neucrowd_tf.training.state import note_starts
from tests.conftest import Operations
from tests.methods.crowding.conftest import C, D, N, R, make_crowd

LAMBDA, PENALTY, BATCH = 0.4, 0.3, 20  # three batches of instances, the last one smaller


class SmallGame(Game):
    hidden_units, pair_batch, pretrain_batch = (6, 6), 32, 16
    output_penalty = PENALTY


def softmax(logits: Any) -> np.ndarray:
    powers = np.exp(np.asarray(logits, np.float64))
    return powers / powers.sum(axis=-1, keepdims=True)


@functools.cache
def small_game(precompute: bool, *settings: tuple[str, Any]) -> SmallGame:
    """A game for all tests of these settings: its turns are compiled once."""
    game = new_game(SmallGame, CrowdInG(**dict(settings)), precompute)
    note_starts(game)
    return game


def new_game(kind: type[SmallGame], estimator: CrowdInG, precompute: bool) -> SmallGame:
    return kind(estimator, make_base(), make_base(), (D,), R, precompute=precompute)


def make_base() -> keras.Model:
    dense = keras.layers.Dense(C, "softmax", kernel_initializer=keras.initializers.GlorotUniform(1))
    return keras.Sequential([keras.Input((D,)), dense])


def make_game(
    precompute: bool = True, kind: type[SmallGame] = SmallGame, **arguments: Any
) -> SmallGame:
    """The networks over the small crowd, without any training."""
    rates = [f"{name}_learning_rate" for name in ("generator", "classifier", "discriminator")]
    settings = dict.fromkeys(rates, 0.01) | {"batch_size": BATCH, "seed": 3, "passes": 2}
    settings |= {"embedding_size": 4, "noise_size": 2, "information": LAMBDA}
    estimator = CrowdInG(**{**settings, **arguments})
    if kind is SmallGame:  # whose graphs read none of the tests' arguments
        game = small_game(precompute, *settings.items())
    else:
        game = new_game(kind, estimator, precompute)
    features, annotations, _ = make_crowd()
    game.restart(estimator, make_base(), features, annotations)
    game.begin("game")
    return game


def weights(game: Game) -> dict[str, list[np.ndarray]]:
    names = ("classifier", "generator", "discriminator", "auxiliary", "averaged")
    return {
        name: [np.array(variable) for variable in getattr(game, name).trainable_variables]
        for name in names
    }


def changed(game: Game, before: dict[str, list[np.ndarray]]) -> set[str]:
    return {
        name
        for name, now in weights(game).items()
        if any((a != b).any() for a, b in zip(before[name], now, strict=True))
    }


# ----------------------------------------------------------------- discriminative module (eq. 4)


def test_the_discriminator_gets_all_authentic_and_as_many_generated_annotations() -> None:
    game = make_game()
    _, annotations, _ = make_crowd()
    latent = game.classify_all()
    pairs, mean_entropy = game.select_pairs(tf.constant(2), latent)
    size = len(annotations.labels)
    assert_array_equal(pairs.authentic, np.arange(len(pairs.instances)) < size)
    for column, expected in zip(
        pairs[:3], (annotations.instances, annotations.annotators, annotations.labels), strict=True
    ):
        assert_array_equal(column[:size], expected)
    assert_array_equal(pairs.latent, tf.gather(latent, pairs.instances))
    rows, codes, labels = (np.asarray(column)[size:] for column in pairs[:3])
    observed = annotations.to_dense() >= 0
    assert not observed[rows, codes].any() and len(set(zip(rows, codes, strict=True))) == len(rows)
    assert_array_equal(np.bincount(codes, minlength=R), selection_counts(observed))
    drawn = draw_all(game, latent, game.crowd.draw(2, Purpose.SURVEY))
    assert_array_equal(labels, np.asarray(drawn.labels)[rows, codes])
    assert float(mean_entropy) == pytest.approx(float(tf.reduce_mean(drawn.entropies)))


def draw_all(game: Game, latent: Any, seed: Any) -> Drawn:
    return game.draw(game.crowd.inputs, tf.range(N), latent, seed)


def test_a_survey_covers_every_pair_batch_by_batch() -> None:
    game = make_game()
    seed, latent = game.crowd.draw(4, Purpose.SURVEY), game.classify_all()
    assert_allclose(latent, game.classifier(game.crowd.features), rtol=1e-5)
    drawn = draw_all(game, latent, seed)
    for index, first in enumerate(range(0, N, BATCH)):
        rows = np.arange(first, min(first + BATCH, N))
        noise = pair_noise(fold(seed, index), [len(rows), R, 2])
        features = tf.gather(game.crowd.features, rows)
        hidden = game.generator.hidden(features, game.crowd.identities, noise)
        logits = game.generator.logits(hidden, tf.gather(latent, rows)[:, None])
        p = softmax(logits)
        assert_allclose(
            np.asarray(drawn.entropies)[rows], -(p * np.log(p)).sum(axis=2), rtol=1e-4, atol=1e-6
        )
        expected = draw_labels(logits, fold(fold(seed, index), 1))
        assert_array_equal(np.asarray(drawn.labels)[rows], expected)


# ----------------------------------------------------------------- generator and classifier


def ratios_of(game: Game, logged: Logged, seed: Any) -> np.ndarray:
    """Importance ratios of logged labels under the present module, instance by instance."""
    latent, ratios = game.classify_all(), []
    for index, first in enumerate(range(0, len(logged.instances), BATCH)):
        batch = tf.nest.map_structure(lambda x: x[first : first + BATCH], logged)  # noqa: B023
        noise = pair_noise(fold(seed, index), [len(batch.instances), R, 2])
        features = tf.gather(game.crowd.features, batch.instances)
        hidden = game.generator.hidden(features, game.crowd.identities, noise)
        ratios.append(game.ratios(batch, hidden, tf.gather(latent, batch.instances)))
    return np.concatenate(ratios)


def test_logged_annotations_are_the_present_modules_draw() -> None:
    game = make_game()
    purposes = PURPOSES["generator",]
    latent = game.classify_all()
    logged, seed = game.log_annotations(tf.constant(7), tf.range(N), latent, purposes)
    assert sorted(logged.instances.numpy()) == list(range(N))
    # A batch meets the noise of (seed, its number) again: ratios start at one.
    assert_allclose(ratios_of(game, logged, seed), 1.0, rtol=1e-4)
    features = tf.gather(game.crowd.features, logged.instances)
    z = tf.gather(latent, logged.instances)
    expected = game.reward((features, game.crowd.identities), z, logged.labels)
    for values, wanted in zip((logged.authenticity, logged.delta), expected, strict=True):
        assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)
    assert not np.allclose(logged.authenticity, logged.delta)


@pytest.mark.parametrize("player", ["generator", "classifier"])
def test_a_turn_changes_one_network_and_lowers_its_risk(player: str) -> None:
    game, epoch = make_game(), tf.constant(1)
    chosen = tf.constant(default_rng(0).permutation(N)[:30].astype(np.int32))
    is_generator = player == "generator"
    latent = game.classify_all()
    logged, seed = game.log_annotations(epoch, chosen, latent, PURPOSES[player,])
    losses = np.asarray(logged.delta if is_generator else logged.authenticity)  # eq. 5, eq. 6

    def risk() -> float:
        return float(((losses - losses.mean()) * ratios_of(game, logged, seed)).mean())

    before = weights(game)
    assert risk() == pytest.approx(0.0, abs=1e-5)
    logs = game.generative_turn((player,), epoch, chosen, latent)
    assert changed(game, before) == {player}
    assert (
        float(logs[f"{player}_loss"])
        == float(logs[f"{player}_multiplier"])
        == pytest.approx(losses.mean(), rel=1e-5)
    )
    assert risk() < -1e-5


@pytest.mark.parametrize("players", [("classifier",), ("generator", "classifier")], ids=len)
def test_stored_inputs_change_nothing(players: tuple[str, ...]) -> None:
    """A turn of one player, or a joint turn, which changes both."""
    ends = []
    for precompute in (True, False):
        game = make_game(precompute)
        before = weights(game)
        logs = game.generative_turn(players, tf.constant(1), tf.range(N), game.classify_all())
        assert changed(game, before) == set(players)
        ends.append([weight for player in players for weight in weights(game)[player]])
    for one, other in zip(*ends, strict=True):
        assert_array_equal(one, other)
    losses = [float(logs[f"{player}_loss"]) for player in players]
    assert len(players) == 1 or losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_a_discriminative_turn_changes_both_its_networks_and_they_learn() -> None:
    game = make_game()
    before, latent = weights(game), game.classify_all()
    first = game.discriminator_turn(tf.constant(0), latent, 1)
    assert changed(game, before) == {"discriminator", "auxiliary"}
    later = game.discriminator_turn(tf.constant(0), latent, 8)
    assert float(later["discriminator_loss"]) < float(first["discriminator_loss"])


@pytest.mark.parametrize("multiplier", [0.25, "mean", "search"])
def test_the_multiplier_is_a_number_the_mean_or_the_best_of_a_search(multiplier: Any) -> None:
    game = make_game(multiplier=multiplier)
    losses, tried = tf.range(11, dtype=tf.float32), []
    weight = game.classifier.trainable_variables[-1]  # the bias of the first class begins at 0

    def passes(mu: Any) -> Any:
        weight.assign(weight + mu["generator"])
        tried.append(float(weight[0]))  # each trial begins where the first one did
        return tf.square(mu["generator"] - 7.0)

    mu = game.multipliers({"generator": losses}, passes)
    assert float(mu["generator"]) == {"mean": 5.0, "search": 7.0}.get(multiplier, 0.25)
    values = losses.numpy()[(np.array(CANDIDATES) * 10).astype(int)]
    assert tried == (values.tolist() if multiplier == "search" else []) and float(weight[0]) == 0.0


def test_an_epoch_gives_each_network_its_turn_and_averages_the_classifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = make_game(threshold=0.25, averaging=0.8)
    taken: dict[str, Any] = {}

    def turn(_: Any, players: Any, epoch: Any, instances: Any, *others: Any) -> dict[str, Any]:
        (name,) = players
        taken[name] = (int(epoch), instances.numpy().tolist())
        return {f"{name}_loss": tf.constant(0.0)}

    monkeypatch.setattr(Game, "generative_turn", turn)
    judged = {"discriminator_loss": tf.constant(0.0)}
    monkeypatch.setattr(Game, "discriminator_turn", lambda *_: dict(judged))
    latent = game.classify_all()
    for variable in game.averaged.trainable_variables:
        variable.assign(variable + 1.0)
    logs = game.play(6)
    sure, unsure = (rows.numpy().tolist() for rows in split_by_entropy(entropy(latent), 0.25))
    assert taken == {"generator": (6, sure), "classifier": (6, unsure)} and len(sure) == 12
    p = np.asarray(latent, np.float64)
    mean = p.mean(axis=0)
    assert float(logs["classifier_entropy"]) == pytest.approx(
        -(p * np.log(p)).sum(axis=1).mean(), rel=1e-4
    )
    assert float(logs["predicted_class_entropy"]) == pytest.approx(
        -(mean * np.log(mean)).sum(), rel=1e-4
    )
    # .8 of itself, .2 of the classifier's weights, which are lower by 1.
    for average, now in zip(
        game.averaged.trainable_variables, game.classifier.trainable_variables, strict=True
    ):
        assert_allclose(average, np.asarray(now) + 0.8, rtol=1e-5)


# ----------------------------------------------------------------- before the game


def test_the_generator_is_pretrained_on_the_likelihood_of_authentic_annotations() -> None:
    game = make_game()
    _, annotations, _ = make_crowd()
    noise = game.generator.from_noise.kernel
    noise.assign(tf.zeros_like(noise))
    p = game.generator.answers(game.crowd.features, game.classify_all(), game.crowd.identities)
    cells = (annotations.instances, annotations.annotators, annotations.labels)
    expected = np.mean([-np.log(p[i, r, y]) for i, r, y in zip(*cells, strict=True)])
    # At a rate of zero the passes see one generator; the last batch is smaller than the others, and
    # counts for less.
    game.pretrain_rate = 0.0
    game.begin("generator")
    assert len(annotations.labels) % 16
    assert float(game.play(0)["loss"]) == pytest.approx(expected, rel=1e-4)
    before = weights(game)
    game.pretrain_rate = 0.02
    game.begin("generator")
    losses = [float(game.play(epoch)["loss"]) for epoch in range(4)]
    assert changed(game, before) == {"generator"} and losses[-1] < losses[0]


def test_few_operations_run_one_by_one_and_no_step_shuffles(operations: Operations) -> None:
    class Traced(SmallGame):
        """Compiled here."""

    game = make_game(kind=Traced)
    for stage in ("generator", "game"):
        game.begin(stage)
        game.play(0)
    graphs = [names for kind, names in operations if kind == "RandomIndexShuffle" and names]
    assert any("discriminative_passes" in names for _, names in operations)
    assert all("shuffles" in names for names in graphs)
    operations.clear()
    game.play(1)
    assert sum(not names for _, names in operations) <= 136
