"""CrowdInG as printed and as released: its losses, rewards, draws, batches and networks."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.records import Pairs
from neucrowd_tf.methods.crowding.turns import PURPOSES, authenticity_auc
from neucrowd_tf.training.run import Run
from reproduction.controls import crowding_controls, crowding_released
from reproduction.controls.crowding import FACTORS, PRINTED, RELEASED, ControlledCrowdInG
from tests.cases import cases
from tests.crowds import array_of
from tests.methods.crowding.conftest import ARGUMENTS, C, D, R, make_crowd
from tests.methods.crowding.test_game import LAMBDA, SmallGame, make_game

LABELS = array_of("0 2 1 1")
AUTHENTIC = np.array([True, False, True, False])
LOGITS = array_of("0.0 1.0 -1.0; 2.0 0.0 0.5; -0.3 0.2 0.1; 0.4 -2.0 0.0")


def game_with(*factors: str, **arguments):
    bases = ControlledCrowdInG(factors=factors)._game_class().__bases__[:-1]
    return make_game(kind=type("Game", (*bases, SmallGame), {}), **arguments)


def test_the_auc_of_authenticity_by_hand() -> None:
    # Of four pairs of an authentic and a generated annotation three are in order.
    scores = array_of("2.0 0.5 1.0 -1.0", np.float32)
    assert authenticity_auc(np.array([True, True, False, False]), scores) == 0.75
    assert authenticity_auc(np.ones(4, bool), scores) == 0.5


def test_every_factor_is_a_game_or_a_step_of_the_fit() -> None:
    bases = ControlledCrowdInG(factors=tuple(FACTORS))._game_class().__bases__
    assert len(set(bases)) == len(FACTORS) and all(issubclass(base, Game) for base in bases)
    for preset in (PRINTED, RELEASED):
        assert set(preset["factors"]) <= set(FACTORS)
    for name, preset in (("crowding_printed", PRINTED), ("crowding_released", RELEASED)):
        created = registry.method(name).make(dataset="labelme").get_params(deep=False)
        assert {key: created[key] for key in preset} == preset


def test_the_released_loss_penalty_and_decay_equal_a_naive_loop() -> None:
    factors = ("released_loss", "l1_outputs", "weight_decay", "informed_by_both")
    game = game_with(*factors)
    d, shares = 1 / (1 + np.exp(-LOGITS)), np.where(AUTHENTIC, 1.0, 0.9)
    chosen = d[np.arange(4), LABELS]
    entries = -np.where(AUTHENTIC, np.log(chosen), np.log(1 - chosen)) * shares
    logits = tf.constant(LOGITS, tf.float32)
    assert_allclose(game.annotation_losses(logits, LABELS, AUTHENTIC), entries, rtol=1e-5)
    # As the mean over both sides, the generated one times .9, halved.
    sides = (d[AUTHENTIC].mean() + 0.9 * d[~AUTHENTIC].mean()) / 2
    assert float(game.penalty(logits, AUTHENTIC)) == pytest.approx(sides, rel=1e-5)
    unlikely = tf.constant([1.0, 2.0, 3.0, 5.0])
    informed = (2.0 + 0.9 * 3.5) / 2
    assert float(game.auxiliary_loss(unlikely, AUTHENTIC)) == pytest.approx(informed, rel=1e-6)
    squares = sum(float((np.asarray(w) ** 2).sum()) for w in game.discriminative_variables)
    assert float(game.weight_penalty()) == pytest.approx(0.005 * squares, rel=1e-5)
    game.begin("discriminator")
    assert float(game.weight_penalty()) == 0.0
    assert float(game.optimizer.learning_rate) == pytest.approx(1e-4)


@pytest.mark.parametrize("multiplier", ["mean", 0.7])
def test_the_released_reward_has_a_multiplier_for_each_sum(multiplier) -> None:
    game, rng = game_with("released_reward", multiplier=multiplier), default_rng(2)
    rows, labels = array_of("3 11 40"), rng.integers(0, C, (3, R)).astype(np.int32)
    latent = rng.dirichlet(np.ones(C), size=3).astype(np.float32)
    inputs = tf.gather(game.crowd.features, rows), game.crowd.identities
    encoded = game.discriminator.encode(*inputs)
    d = 1 / (1 + np.exp(-np.asarray(game.discriminator.all_pairs(*encoded), np.float64)))
    log_q = np.asarray(game.auxiliary.all_pairs(*encoded, labels), np.float64)
    loss, delta = game.reward(inputs, latent, labels)
    mu = 0.0 if multiplier == "mean" else multiplier
    chosen = np.take_along_axis(d, labels[..., None], axis=2)[..., 0]
    custom = -np.log((chosen + 0.001) / 1.001)
    assert_allclose(loss, custom, rtol=1e-4)
    information = -(latent[:, None] * log_q).sum(axis=2) - mu
    assert_allclose(delta, custom + LAMBDA * information, rtol=1e-4)


def test_a_threshold_in_nats_and_ratios_without_bounds() -> None:
    latent = tf.constant([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0], [0.34, 0.33, 0.33]])
    game = game_with("nats")
    for nats, surest in cases("""
[0.5, [2, 1]],
[0.0, [2]],
[0.0001, [2]],
[1.0, [2, 1, 0]]
"""):
        game.hparams.set_params(threshold=nats)
        sure, unsure = game.split(latent)
        assert sure.numpy().tolist() == surest
        assert sorted([*surest, *unsure.numpy().tolist()]) == list(range(4))
    game = game_with("uncapped")
    assert game.ratio_cap == math.inf and 0 < game.ratio_floor < 1e-30


def test_batches_divide_the_instances_and_their_annotations() -> None:
    game, seen = game_with("batches"), []

    def judged(epoch, latent, passes: int):
        crowd, cells = game.crowd, np.zeros_like(game.crowd.observed)
        cells[crowd.instances, crowd.annotators] = True
        assert_array_equal(cells, crowd.observed)
        assert len(latent) == 16
        seen.append(np.hstack([crowd.features, crowd.observed]))
        return {"discriminator_loss": 0.0}

    game.discriminator_turn = judged
    game.generative_turn = lambda *_: {"generator_loss": 0.0}
    whole = game.crowd
    game.play(0)
    assert game.crowd is whole and len(seen) == 3
    expected = np.hstack([whole.features, whole.observed])
    rows = np.concatenate(seen)
    assert_array_equal(rows[rows[:, 0].argsort()], expected[expected[:, 0].argsort()])


def test_the_released_networks_equal_naive_loops() -> None:
    game, rng = game_with("released_networks", embedding_size=6), default_rng(3)
    generator, discriminator, auxiliary = game.generator, game.discriminator, game.auxiliary
    generator.drop.rate = discriminator.drop.rate = 0.0
    x, annotators = rng.normal(size=(7, D)).astype(np.float32), np.eye(R, dtype=np.float32)
    latent = rng.dirichlet(np.ones(C), size=7).astype(np.float32)
    noise = rng.normal(size=(7, R, C)).astype(np.float32)

    def dense(layer, values):
        bias = 0 if layer.bias is None else np.asarray(layer.bias, np.float64)
        return values @ np.asarray(layer.kernel, np.float64) + bias

    def norm(values):
        return (values - values.mean(axis=0)) / np.sqrt(values.var(axis=0) + 1e-5)

    item = dense(generator.instance_embedding, norm(np.maximum(dense(generator.first, x), 0)))
    user = dense(generator.annotator_embedding, annotators)
    # All pairs are normalised together, as the released code has them.
    pairs = norm(np.concatenate([np.tile(user, (7, 1)), np.repeat(item, R, axis=0)], axis=1))
    first = dense(generator.from_annotator, pairs[:, :20]) + dense(
        generator.from_instance, pairs[:, 20:]
    )
    first += dense(generator.from_noise, noise.reshape(-1, C))
    first += dense(generator.from_classifier, np.repeat(latent, R, axis=0))
    expected = dense(generator.scores, np.maximum(first, 0)).reshape(7, R, C)
    logits = generator.logits(generator.hidden(x, annotators, noise), latent[:, None])
    assert_allclose(logits, expected, rtol=2e-3, atol=2e-4)

    v, u, matrices = discriminator.encode(x, annotators)
    graph, start = np.asarray(discriminator.correlation), np.asarray(discriminator.matrices)
    assert_allclose(graph.sum(axis=1), 1.0, rtol=1e-6)
    assert start.min() >= 0 and start.max() <= 1
    m = np.einsum("cd,dkl->ckl", graph, start) + start
    assert_allclose(matrices, m, rtol=1e-5)
    scores = np.einsum("rk,ckl,nl->nrc", np.asarray(u), m, np.asarray(v))
    assert_allclose(discriminator.all_pairs(v, u, matrices), scores, rtol=1e-3, atol=1e-4)
    codes = array_of("0 4 2 2 1 3 0")
    some = discriminator.some_pairs(v, u, matrices, codes)
    assert_allclose(some, scores[np.arange(7), codes], rtol=1e-3, atol=1e-4)

    labels = rng.integers(0, C, (7, R))
    embedded = dense(auxiliary.label_embedding, np.maximum(m, 0).reshape(C, -1))
    pairs = norm(
        np.concatenate(
            [np.tile(u, (7, 1)), np.repeat(v, R, axis=0), embedded[labels.reshape(-1)]], axis=1
        )
    )
    parts = (auxiliary.from_annotator, auxiliary.from_instance, auxiliary.from_label)
    hidden = sum(dense(piece, pairs[:, 6 * i : 6 * i + 6]) for i, piece in enumerate(parts))
    scores = dense(auxiliary.scores, np.maximum(hidden, 0)).reshape(7, R, C)
    log_q = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    assert_allclose(auxiliary.all_pairs(v, u, matrices, labels), log_q, rtol=2e-3, atol=1e-3)


def test_the_released_entropy_and_norm_equal_naive_loops() -> None:
    game = game_with("entropy_floor")
    game.generator.scores.bias.assign([60.0, 0.0, 0.0])  # certain of the first class
    latent = game.classify_all()[:4]
    drawn = game.draw(game.crowd.inputs, tf.range(4), latent, tf.constant([1, 2]))
    p = np.array([1 - 1e-4, 1e-4, 1e-4])
    assert_allclose(drawn.entropies, -(p * np.log(p)).sum(), rtol=1e-3)
    game = game_with("released_networks", "separate_norm", embedding_size=6)
    encoded = game.discriminator.encode(game.crowd.features[:4], game.crowd.identities)
    codes, labels = array_of("0 3 2 1", np.int32), LABELS.astype(np.int32)
    pairs = Pairs(codes, codes, labels, tf.constant(AUTHENTIC), latent)
    answers = game.latent_answers(encoded, pairs)
    for side in (AUTHENTIC, ~AUTHENTIC):
        alone = game.auxiliary.some_pairs(
            tf.boolean_mask(encoded[0], side), *encoded[1:], codes[side], labels[side]
        )
        assert_allclose(answers.numpy()[side], alone, rtol=1e-4)


def test_controls_change_rewards_or_negatives_alone() -> None:
    latent = (plain := game_with()).classify_all()
    epoch = tf.constant(1)
    drawn = plain.log_annotations(epoch, tf.range(48), latent, PURPOSES["generator",])[0]
    mixed = game_with("shuffled_rewards").log_annotations(
        epoch, tf.range(48), latent, PURPOSES["generator",]
    )[0]
    assert_array_equal(mixed.labels, drawn.labels)
    for one, other in ((mixed.delta, drawn.delta), (mixed.authenticity, drawn.authenticity)):
        assert np.mean(np.asarray(one) == np.asarray(other)) < 0.2
        assert_array_equal(np.sort(one, axis=None), np.sort(other, axis=None))
    pairs = plain.select_pairs(epoch, latent)[0]
    random = game_with("random_negatives").select_pairs(epoch, latent)[0]
    same, authentic = np.asarray(random.labels == pairs.labels), np.asarray(pairs.authentic)
    assert_array_equal(random.instances, pairs.instances)
    assert same[authentic].all() and 0.1 < same[~authentic].mean() < 0.6
    losses = game_with("no_negatives").annotation_losses(
        tf.constant(LOGITS, tf.float32), LABELS, AUTHENTIC
    )
    assert (np.asarray(losses) > 0).tolist() == AUTHENTIC.tolist()


def test_withheld_annotations_leave_each_instance_one() -> None:
    _, annotations, _ = make_crowd()
    rest, withheld = crowding_controls.split_annotations(annotations, 0.2, 0)
    assert len(withheld.labels) == round(0.2 * len(annotations.labels))
    assert rest.annotated.all() and len(set(withheld.instances)) == len(withheld.instances)
    dense = np.maximum(rest.to_dense(), withheld.to_dense())
    assert_array_equal(dense, annotations.to_dense())


def test_measures_of_cells_that_no_turn_trains_on() -> None:
    x, annotations, truth = make_crowd()
    options = {**ARGUMENTS, "factors": ("authentic_classifier",), "held_out": 0.05}
    model = ControlledCrowdInG(**options).fit(x, annotations, validation=(x[:18], truth[:18]))
    game = model._caches["game"]._network[0]
    cells = (game.withheld.instances, game.withheld.annotators)
    assert game.crowd.observed[cells].all()
    dataset: Any = types.SimpleNamespace(features=x, truth=truth)
    figures = model.evaluation(dataset)
    assert figures.pop("information_loss") > 0
    assert set(figures) >= {"held_out_auc", "cell_auc", "repeated_negatives", "generated_accuracy"}
    assert all(0 <= value <= 1 for value in figures.values())


@pytest.mark.parametrize("preset", [PRINTED, RELEASED], ids=["printed", "released"])
def test_both_presets_play_and_are_functions_of_their_seed(preset: dict[str, Any]) -> None:
    x, annotations, truth = make_crowd()
    short = {"epochs": 2, "game_pretrain_epochs": 1, "passes": 1}
    model = ControlledCrowdInG(**{**ARGUMENTS, **preset, **short})
    answers = []
    for _ in range(2):
        model.fit(x, annotations, validation=(x[:18], truth[:18]))
        assert all(np.isfinite(values).all() for values in model.history_.values())
        assert all(0 <= value <= 1 for value in model.history_["discriminator_training_auc"])
        answers.append((model.predict_proba(x), model.generate(x[:3]).labels))
    for one, other in zip(*answers, strict=True):
        assert_array_equal(one, other)


def test_the_released_start_restarts_adam_and_keeps_the_best_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, annotations, truth = make_crowd()
    model = ControlledCrowdInG(**{**ARGUMENTS, "factors": ("released_start",), "epochs": 0})
    classifier = crowding_released.released_start(model, (x[:18], truth[:18]))
    classifier.set_params(epochs=12)
    resets: list[int] = []
    monkeypatch.setattr(
        crowding_released, "reset_optimizer", lambda adam: resets.append(int(adam.iterations))
    )
    classifier.fit(x, annotations, run=Run())
    assert resets == [0, 10]  # an epoch of the authors' is ten passes
    accuracies = classifier.history_["val_accuracy"]
    assert len(accuracies) == 12 and classifier.best_epoch_ == int(np.argmax(accuracies))


def test_frequencies_of_cooccurrence_by_hand() -> None:
    # Of eight ordered pairs of labels of one instance two are (0, 1), two (1, 0), one each (1, 2)
    # and (2, 1), and two are of one class: A = [[0 2 0], [2 0 1], [0 1 0]] / 8.
    crowd = Annotations.from_dense(array_of("0 0 1; 1 2 -1; 2 -1 -1"), num_classes=3)
    matrix = array_of("0 2 0; 2 0 1; 0 1 0") / 8 + np.eye(3)
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    graph = crowding_controls.Frequency.label_graph(None, crowd)
    assert_allclose(graph, scale[:, None] * matrix * scale, rtol=1e-6)
