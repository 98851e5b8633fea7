"""What the players' turns are made of: losses and signals put together, who is trained on what, and
what each turn changes.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from neucrowd_tf.crowding import learning
from neucrowd_tf.crowding.crowd import (
    Crowd,
    draw_labels,
    entropy,
    fold,
    observed_cells,
    selection_counts,
    split_by_entropy,
)
from neucrowd_tf.crowding.discriminative import (
    Auxiliary,
    DiscriminativeModule,
    discriminative_report,
)
from neucrowd_tf.crowding.discriminator import Discriminator
from neucrowd_tf.crowding.game import (
    _CLASSIFIER,
    _GENERATOR,
    _SURE,
    _SURVEY,
    _UNSURE,
    CrowdInGModel,
    GeneratorPretraining,
)
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.generator import Generator
from neucrowd_tf.crowding.learning import Logged, Settings
from tests.crowding.conftest import C, D, N, R, make_crowd

LAMBDA, PENALTY, BATCH = 0.4, 0.3, 20  # three batches of instances, the last one smaller


def softmax(logits: Any) -> np.ndarray:
    powers = np.exp(np.asarray(logits, np.float64))
    return powers / powers.sum(axis=-1, keepdims=True)


def make_game(**settings: Any) -> CrowdInGModel:
    """The players over the small crowd, with weights far from zero and without any training."""
    features, annotations, _ = make_crowd()
    crowd = Crowd((D,), R)
    crowd.set(features, annotations, np.eye(R, dtype=np.float32), 3)
    classifier, averaged = (
        keras.Sequential(
            [
                keras.Input((D,)),
                keras.layers.Dense(
                    C, "softmax", kernel_initializer=keras.initializers.GlorotUniform(seed)
                ),
            ]
        )
        for seed in (1, 2)
    )
    generator = Generator(D, R, C, embedding_size=3, hidden_units=6, noise_size=2, seed=1)
    discriminator = Discriminator(D, R, C, embedding_size=4, seed=1)
    auxiliary = Auxiliary(C, hidden_units=6, label_size=3, embedding_size=4, seed=1)
    generative = GenerativeModule(
        classifier, generator, crowd, batch_rows=BATCH, ratio_cap=10.0, probability_floor=1e-3
    )
    discriminative = DiscriminativeModule(
        discriminator, auxiliary, crowd, information=LAMBDA, output_penalty=PENALTY, literal=False
    )
    game = CrowdInGModel(
        generative,
        discriminative,
        averaged,
        crowd,
        Settings(**{"passes": 1, "pair_batch_size": 32, **settings}),
    )
    game.compile_networks(0.01, 0.01, 0.01)
    return game


def hidden_of(game: CrowdInGModel, rows: Any, noise: Any) -> Any:
    """What all but z-hat adds to the generator's hidden layer for some instances."""
    return game.generative.hidden(tf.gather(game.crowd.flat, rows), noise)


def parts(game: CrowdInGModel) -> dict[str, list[np.ndarray]]:
    """The weights of each player."""
    found = {
        "classifier": game.generative.classifier,
        "generator": game.generative.generator,
        "discriminator": game.discriminative.discriminator,
        "auxiliary": game.discriminative.auxiliary,
        "averaged": game.averaged,
    }
    return {
        name: [np.array(variable) for variable in part.trainable_variables]
        for name, part in found.items()
    }


def changed(game: CrowdInGModel, before: dict[str, list[np.ndarray]]) -> set[str]:
    return {
        name
        for name, now in parts(game).items()
        if any((a != b).any() for a, b in zip(before[name], now, strict=True))
    }


# ------------------------------------------------------- the discriminative module (eq. 4, and above eq. 5)  # noqa: E501


def test_the_discriminative_loss_equals_a_naive_loop() -> None:
    game = make_game()
    module = game.discriminative
    rows, codes, labels = (
        np.array([0, 5, 7, 7, 20]),
        np.array([4, 0, 1, 2, 3]),
        np.array([0, 2, 1, 1, 0]),
    )
    authentic = np.array([True, False, False, True, False])
    latent = np.random.default_rng(1).dirichlet(np.ones(C), size=5).astype(np.float32)
    features, annotators = np.asarray(game.crowd.flat)[rows], game.crowd.annotators
    encoded = module.discriminator.encode(features, annotators)
    d = 1 / (1 + np.exp(-np.asarray(module.discriminator.some_pairs(encoded, codes), np.float64)))
    log_q = np.asarray(module.auxiliary.some_pairs(encoded, codes, labels), np.float64)
    losses, unlikely, hits = [], [], []
    for p in range(5):
        own = d[p, labels[p]]
        others = [1 - d[p, c] for c in range(C) if c != labels[p]]
        losses.append(-np.log([own, *others]).sum() if authentic[p] else -np.log(1 - own))
        unlikely.append(-(latent[p] * log_q[p]).sum())
        hits.append((own > 0.5) == authentic[p])
    generated = ~authentic
    # The information is that of generated annotations alone; the penalty is over every entry of D.
    auxiliary = np.array(unlikely)[generated].mean()
    expected = np.mean(losses) + PENALTY * np.mean(d**2) + LAMBDA * auxiliary
    loss, sums = module.loss(rows, codes, labels, authentic, latent)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    report = {name: float(value) for name, value in discriminative_report(sums).items()}
    wanted = {
        "discriminator_loss": np.mean(losses),
        "output_penalty": np.mean(d**2),
        "auxiliary_loss": auxiliary,
        "hit_rate_authentic": np.array(hits)[authentic].mean(),
        "hit_rate_generated": np.array(hits)[generated].mean(),
    }
    assert report == pytest.approx(wanted, rel=1e-4)


def test_signals_equal_a_naive_loop_and_fall_as_labels_tell_more_of_the_class() -> None:
    game = make_game()
    module, rng = game.discriminative, np.random.default_rng(2)
    rows, latent, labels = (
        np.array([3, 11, 40]),
        rng.dirichlet(np.ones(C), size=3).astype(np.float32),
        rng.integers(0, C, (3, R)).astype(np.int32),
    )
    features, annotators = np.asarray(game.crowd.flat)[rows], game.crowd.annotators
    encoded = module.discriminator.encode(features, annotators)
    d = 1 / (1 + np.exp(-np.asarray(module.discriminator.all_pairs(encoded), np.float64)))
    log_q = np.asarray(module.auxiliary.all_pairs(encoded, labels), np.float64)
    signal, delta = module.signals(rows, latent, labels)
    for n in range(3):
        for r in range(R):
            own = np.log(1 - d[n, r, labels[n, r]])
            assert float(signal[n, r]) == pytest.approx(own, rel=1e-4)
            # delta = L_G - lambda log Q: what Q finds likely has a lower one.
            assert float(delta[n, r]) == pytest.approx(
                own - LAMBDA * (latent[n] * log_q[n, r]).sum(), rel=1e-4
            )
    module.information = 0.0
    alone = module.signals(rows, latent, labels)
    np.testing.assert_array_equal(alone[0], signal)
    np.testing.assert_array_equal(alone[1], signal)


# ----------------------------------------------------------------- the generative module


def test_ratios_are_one_under_the_logging_policy_and_pick_the_drawn_labels() -> None:
    game = make_game()
    module, rows, seed = game.generative, np.array([9, 2, 30, 31]), tf.constant([5, 6])
    latent = tf.gather(module.classify_all(), rows)
    noise = module.noise(rows, seed)
    hidden = hidden_of(game, rows, noise)
    p = softmax(module.logits(rows, latent, noise))
    labels = np.random.default_rng(0).integers(0, C, (4, R)).astype(np.int32)
    own = np.take_along_axis(p, labels[..., None], axis=2)[..., 0].astype(np.float32)
    np.testing.assert_allclose(
        module.ratios(hidden, latent, labels, own), np.ones((4, R)), rtol=1e-4
    )
    logged = np.full((4, R), 0.5, np.float32)
    np.testing.assert_allclose(module.ratios(hidden, latent, labels, logged), own / 0.5, rtol=1e-4)
    hidden = hidden_of(game, rows, module.noise(rows, tf.constant([5, 7])))
    other = module.ratios(hidden, latent, labels, own)
    assert not np.allclose(other, 1.0, atol=1e-3), "other noise, other answers"


def test_a_survey_covers_every_pair_batch_by_batch() -> None:
    game = make_game()
    module, seed = game.generative, game.crowd.draw(4, _SURVEY)
    latent = module.classify_all()
    entropies, drawn, _ = module.survey(latent, seed)
    np.testing.assert_allclose(latent, module.classifier(game.crowd.features), rtol=1e-5)
    for index, first in enumerate(range(0, N, BATCH)):
        rows = np.arange(first, min(first + BATCH, N))
        logits = module.logits(rows, tf.gather(latent, rows), module.noise(rows, fold(seed, index)))
        p = softmax(logits)
        np.testing.assert_allclose(
            np.asarray(entropies)[rows], -(p * np.log(p)).sum(axis=2), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_array_equal(
            np.asarray(drawn)[rows], draw_labels(logits, fold(fold(seed, index), 1))
        )
    assert entropies.shape == drawn.shape == (N, R)


# ----------------------------------------------------------------- the game


def test_the_discriminator_learns_from_all_authentic_and_as_many_generated_annotations() -> None:
    game = make_game()
    _, annotations, _ = make_crowd()
    latent = game.generative.classify_all()
    (rows, codes, labels, authentic, _), mean_entropy = game.selected_pairs(tf.constant(2), latent)
    size = len(annotations.labels)
    np.testing.assert_array_equal(authentic, np.arange(len(rows)) < size)
    for part, known in (
        (rows, annotations.instances),
        (codes, annotations.annotators),
        (labels, annotations.labels),
    ):
        np.testing.assert_array_equal(part[:size], known)
    rows, codes, labels = (np.asarray(part)[size:] for part in (rows, codes, labels))
    observed = observed_cells(annotations)
    assert not observed[rows, codes].any() and len(set(zip(rows, codes, strict=True))) == len(rows)
    np.testing.assert_array_equal(np.bincount(codes, minlength=R), selection_counts(observed))
    entropies, drawn, _ = game.generative.survey(latent, game.crowd.draw(2, _SURVEY))
    np.testing.assert_array_equal(labels, np.asarray(drawn)[rows, codes])
    assert float(mean_entropy) == pytest.approx(float(tf.reduce_mean(entropies)))


def test_what_is_logged_is_the_present_modules_own_draw() -> None:
    game = make_game()
    rows, seed = tf.range(N)[::-1], tf.constant([7, 8])
    latent = game.generative.classify_all()
    _, labels, chances, signals, deltas, _, _ = game.learning.logged(rows, latent, seed)
    for index, first in enumerate(range(0, N, BATCH)):
        part = slice(first, min(first + BATCH, N))
        z = tf.gather(latent, rows[part])
        # The noise of (seed, the batch's number) meets the same pairs again: the ratios start at
        # one.
        hidden = hidden_of(game, rows[part], game.generative.noise(rows[part], fold(seed, index)))
        ratios = game.generative.ratios(hidden, z, labels[part], chances[part])
        np.testing.assert_allclose(ratios, np.ones(ratios.shape), rtol=1e-4)
        signal, delta = game.discriminative.signals(rows[part], z, labels[part])
        np.testing.assert_allclose(signals[part], signal, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(deltas[part], delta, rtol=1e-4, atol=1e-5)
    assert labels.shape == deltas.shape == (N, R) and not np.allclose(signals, deltas)


def risk_after(game: CrowdInGModel, rows: Any, seed: Any, logged: Logged, losses: Any) -> float:
    """Mean of (loss - its mean) x ratio over logged labels: zero before a turn, below zero after
    one that learnt from them.
    """
    latent, total = game.generative.classify_all(), 0.0
    for index, first in enumerate(range(0, len(rows), BATCH)):
        part = slice(first, first + BATCH)
        hidden = hidden_of(game, rows[part], game.generative.noise(rows[part], fold(seed, index)))
        ratios = game.generative.ratios(
            hidden, tf.gather(latent, rows[part]), logged.labels[part], logged.chances[part]
        )
        total += float(tf.reduce_sum((losses[part] - tf.reduce_mean(losses)) * ratios))
    return total / float(tf.size(losses))


@pytest.mark.parametrize("player", ["generator", "classifier"])
def test_a_turn_changes_its_player_alone_and_lowers_its_own_risk(player: str) -> None:
    game = make_game(passes=2)
    epoch, chosen = (
        tf.constant(1),
        tf.constant(np.random.default_rng(0).permutation(N)[:30].astype(np.int32)),
    )
    generators = player == "generator"
    rows = game._shuffled(chosen, epoch, _SURE if generators else _UNSURE)
    seed = game.crowd.draw(epoch, _GENERATOR if generators else _CLASSIFIER)
    latent = game.generative.classify_all()
    logged = game.learning.logged(rows, latent, seed)
    losses = (
        logged.deltas if generators else logged.signals
    )  # eq. 5 learns from delta, eq. 6 from L_G
    before = parts(game)
    assert risk_after(game, rows, seed, logged, losses) == pytest.approx(0.0, abs=1e-5)
    logs = (game.generator_turn if generators else game.classifier_turn)(epoch, chosen, latent)
    assert changed(game, before) == {player}
    assert (
        float(logs[f"{player}_loss"])
        == float(logs[f"{player}_multiplier"])
        == pytest.approx(float(tf.reduce_mean(losses)), rel=1e-5)
    )
    assert risk_after(game, rows, seed, logged, losses) < -1e-5
    assert sorted(rows.numpy()) == sorted(chosen.numpy())


@pytest.mark.ci
@pytest.mark.parametrize("player", ["generator", "classifier"])
def test_a_turn_is_the_same_where_its_inputs_are_kept_and_where_they_are_made_again(
    player: str,
) -> None:
    ends = []
    all_kept = learning.what_is_kept(N, {"features": D, "noise": 2 * R, "hidden": 6 * R})
    assert all_kept == {"features", "noise", "hidden"}
    assert learning.what_is_kept(1 << 20, {"features": 15, "noise": 16, "hidden": 17}) == {
        "features",
        "noise",
    }
    for kept in (all_kept, frozenset()):
        game = make_game(passes=2, kept=kept)
        turn = game.generator_turn if player == "generator" else game.classifier_turn
        turn(tf.constant(1), tf.range(N), game.generative.classify_all())
        ends.append(parts(game)[player])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_joint_turn_changes_both_and_no_judge() -> None:
    game = make_game(two_step=False)
    before = parts(game)
    logs = game.joint_turn(tf.constant(0), game.generative.classify_all())
    assert changed(game, before) == {"generator", "classifier"}
    assert float(logs["generator_loss"]) != pytest.approx(float(logs["classifier_loss"]), rel=1e-3)


def test_a_discriminative_turn_changes_the_judges_alone_and_they_learn() -> None:
    game = make_game()
    before, latent = parts(game), game.generative.classify_all()
    first = game.discriminative_turn(tf.constant(0), tf.constant(1), latent)
    assert changed(game, before) == {"discriminator", "auxiliary"}
    later = game.discriminative_turn(tf.constant(0), tf.constant(8), latent)
    for name in ("discriminator_loss", "auxiliary_loss"):
        assert float(later[name]) < float(first[name])


def test_the_surest_instances_teach_the_generator_and_the_others_the_classifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = make_game(threshold=0.25)
    taken: dict[str, Any] = {}

    def turn(name: str) -> Any:
        def take(_: Any, epoch: Any, rows: Any, latent: Any) -> dict[str, Any]:
            taken[name] = (int(epoch), rows.numpy().tolist())
            return {f"{name}_loss": tf.constant(0.0)}

        return take

    for name in ("generator", "classifier"):
        monkeypatch.setattr(CrowdInGModel, f"{name}_turn", turn(name))
    monkeypatch.setattr(
        CrowdInGModel, "discriminative_turn", lambda *_: {"discriminator_loss": tf.constant(0.0)}
    )
    latent = game.generative.classify_all()
    logs = game.train_step(tf.constant([6]))
    sure, unsure = split_by_entropy(entropy(latent), 0.25)
    assert (
        taken
        == {"generator": (6, sure.numpy().tolist()), "classifier": (6, unsure.numpy().tolist())}
        and len(sure) == 12
    )
    p = np.asarray(latent, np.float64)
    assert float(logs["classifier_entropy"]) == pytest.approx(
        -(p * np.log(p)).sum(axis=1).mean(), rel=1e-4
    )
    assert float(logs["predicted_class_entropy"]) == pytest.approx(
        -(p.mean(axis=0) * np.log(p.mean(axis=0))).sum(), rel=1e-4
    )


# ----------------------------------------------------------------- before the game


@pytest.mark.slow
def test_the_generator_is_pretrained_on_the_likelihood_of_authentic_annotations() -> None:
    game = make_game()
    _, annotations, _ = make_crowd()
    module = game.generative
    module.generator.from_noise.kernel.assign(
        tf.zeros_like(module.generator.from_noise.kernel)
    )  # the noise says nothing
    p = softmax(module.logits(np.arange(N), module.classify_all(), tf.zeros([N, R, 2])))
    expected = np.mean(
        [
            -np.log(p[i, r, y])
            for i, r, y in zip(
                annotations.instances, annotations.annotators, annotations.labels, strict=True
            )
        ]
    )
    # At a rate of zero the passes see one generator; the last batch is smaller than the others, and
    # counts for less.
    still = GeneratorPretraining(module, 16, 0.0)
    assert len(annotations.labels) % 16
    assert float(still.epoch(tf.constant(0))) == pytest.approx(expected, rel=1e-4)
    before = parts(game)
    learning = GeneratorPretraining(module, 16, 0.02)
    losses = [float(learning.epoch(tf.constant(number))) for number in range(4)]
    assert changed(game, before) == {"generator"} and losses[-1] < losses[0]
