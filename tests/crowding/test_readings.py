"""The other readings of CrowdInG: classes fed to the generator, the exact risk, a discriminator
that is a density ratio, and what they are compared with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding import CrowdInG
from neucrowd_tf.crowding.counterfactual import exact_risk, of_each, quantiles, search_multiplier
from neucrowd_tf.crowding.crowd import fold, mixed
from neucrowd_tf.crowding.discriminative import information, mutual_information
from neucrowd_tf.crowding.discriminator import discriminator_losses
from neucrowd_tf.crowding.game import CrowdInGModel
from neucrowd_tf.crowding.learning import Settings
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from tests.crowding.conftest import ARGUMENTS, C, N, R, make_crowd
from tests.crowding.test_model import LAMBDA, changed, make_game, parts, softmax

RNG = np.random.default_rng(0)
ROWS, SEED = np.array([3, 11, 40]), [5, 6]


def by_class(**settings: Any) -> CrowdInGModel:
    game = make_game(**settings)
    game.generative.by_class = True
    return game


def density_ratio(**settings: Any) -> CrowdInGModel:
    game = by_class(**settings)
    game.discriminative.density_ratio = True
    return game


# ------------------------------------------------------- classes in place of z-hat (C1)


def test_answers_for_each_class_are_those_to_its_one_hot_vector() -> None:
    module = make_game().generative
    noise = module.noise(ROWS, tf.constant(SEED))
    answers = np.asarray(module.logits_by_class(ROWS, noise))
    for z in range(C):
        fed = np.tile(np.eye(C, dtype=np.float32)[z], (3, 1))
        expected = module.logits(ROWS, fed, noise)
        np.testing.assert_allclose(answers[:, :, z], expected, rtol=1e-4, atol=1e-5)


def test_a_mixture_by_hand_and_by_a_loop() -> None:
    # z-hat (1/4, 3/4), answers (1/2, 1/2) and (1, 0): 1/8 + 3/4 and 1/8.
    log_p = np.log(np.maximum([[0.5, 0.5], [1.0, 0.0]], 1e-30)).astype(np.float32)
    found = mixed(tf.constant([0.25, 0.75]), log_p)
    np.testing.assert_allclose(np.exp(found), [0.875, 0.125], rtol=1e-5)
    game = by_class()
    latent = RNG.dirichlet(np.ones(C), 3).astype(np.float32)
    answers = softmax(game.generative.logits_by_class(ROWS, tf.zeros([3, R, 2])))
    expected = np.log([[latent[n] @ answers[n, r] for r in range(R)] for n in range(3)])
    np.testing.assert_allclose(game.generative.log_answers(ROWS, latent), expected, rtol=1e-4)
    codes = np.array([1, 0, 2])
    some = game.generative.some_log_answers(ROWS, codes, latent)
    np.testing.assert_allclose(some, expected[np.arange(3), codes], rtol=1e-4)


def test_drawn_classes_follow_z_hat_and_ratios_of_both_start_at_one() -> None:
    game = by_class()
    module, latent = game.generative, np.array([[0.2, 0.8, 0.0]] * 3, np.float32)
    drawn = [module.draw(ROWS, latent, fold(tf.constant(SEED), i)) for i in range(60)]
    shares = np.bincount(np.concatenate([d.classes.numpy().ravel() for d in drawn]), minlength=C)
    np.testing.assert_allclose(shares / shares.sum(), [0.2, 0.8, 0.0], atol=0.05)
    one, noise = drawn[0], module.noise(ROWS, fold(tf.constant(SEED), 0))
    hidden = module.hidden(tf.gather(game.crowd.flat, ROWS), noise)
    ratios = module.ratios(hidden, latent, one.labels, one.chances, one.classes)
    np.testing.assert_allclose(ratios, 1.0, rtol=1e-4)
    # With z-hat at (.4, .6, 0) a pair that was fed class 0 is twice as probable, class 1 3/4 so.
    moved = np.array([[0.4, 0.6, 0.0]] * 3, np.float32)
    ratios = module.ratios(hidden, moved, one.labels, one.chances, one.classes)
    np.testing.assert_allclose(ratios, np.where(one.classes == 0, 2.0, 0.75), rtol=1e-4)


def test_delta_of_a_class_depends_on_the_label_and_so_on_what_it_tells() -> None:
    game = by_class()
    fed = tf.one_hot(RNG.integers(0, C, (3, R)), C)
    by_label = []
    for y in range(C):
        labels = np.full((3, R), y, np.int32)
        signal, delta = game.discriminative.signals(ROWS, fed, labels)
        log_q = game.discriminative.all_signals(ROWS)[1].numpy()[:, :, y]
        expected = signal - LAMBDA * (fed.numpy() * log_q).sum(axis=-1)
        np.testing.assert_allclose(delta, expected, rtol=1e-4, atol=1e-5)
        by_label.append(delta - signal)
    assert np.var(by_label, axis=0).max() > 1e-4


def test_mutual_information_by_hand_and_of_the_module() -> None:
    # y = z, two even classes: log 2; independent: 0.
    assert mutual_information(np.eye(2) / 2) == pytest.approx(np.log(2))
    assert mutual_information(np.full((2, 2), 0.25)) == pytest.approx(0.0)
    soft, classes = make_game(), by_class()
    found = information(soft.generative, soft.discriminative)
    # Labels that are drawn given z-hat say nothing of z beyond it.
    assert found["conditional_information"] == pytest.approx(0.0, abs=1e-6)
    told = information(classes.generative, classes.discriminative)
    assert told["conditional_information"] > 1e-3
    assert told["bound"] <= told["conditional_information"] + 1e-6  # eq. 3
    assert told["score_variance"] > 0


@pytest.mark.slow
def test_the_information_loss_raises_what_labels_tell_of_classes() -> None:
    ends = {}
    for weight in (0.0, 3.0):
        game = by_class(risk="exact", passes=4)
        game.discriminative.information = weight
        before = information(game.generative, game.discriminative)
        latent, turn = (
            game.generative.classify_all(),
            tf.function(game.generator_turn, autograph=False),
        )
        for epoch in map(tf.constant, range(8)):
            game.discriminative_turn(epoch, tf.constant(4), latent)
            turn(epoch, tf.range(N), latent)
        ends[weight] = information(game.generative, game.discriminative)
    told, start = ends[3.0]["conditional_information"], before["conditional_information"]
    assert told > 2 * start and told > 2 * ends[0.0]["conditional_information"]
    assert ends[3.0]["bound"] <= told + 1e-6  # eq. 3


# ------------------------------------------------------- the exact risk


def test_exact_risk_by_hand() -> None:
    # One pair: 1/4 x 2 + 3/4 x -1 = -1/4; the other: 1 x 3. Their mean is 11/8.
    answers = np.array([[[0.25, 0.75], [1.0, 0.0]]], np.float32)
    losses = np.array([[[2.0, -1.0], [3.0, 9.0]]], np.float32)
    assert float(exact_risk(answers, losses)) == pytest.approx(11 / 8)


@pytest.mark.parametrize("classes", [False, True])
def test_the_exact_risk_is_what_draws_estimate(classes: bool) -> None:
    game = make_game()
    game.generative.by_class = classes
    rows, seed = np.tile(ROWS, 300), tf.constant(SEED)  # 4,500 pairs, each with its own noise
    z = tf.gather(game.generative.classify_all(), rows)
    noise = game.generative.noise(rows, seed)
    answers, losses = game.learning.expected(
        rows, z, z, *game.discriminative.all_signals(rows), noise
    )
    assert float(tf.reduce_sum(answers)) == pytest.approx(len(rows) * R, rel=1e-4)
    drawn = game.generative.draw(rows, z, seed)
    deltas = game.discriminative.signals(rows, drawn.fed, drawn.labels)[1]
    error = float(tf.math.reduce_std(deltas)) / np.sqrt(len(rows) * R)
    exact = float(exact_risk(answers, losses))
    assert float(tf.reduce_mean(deltas)) == pytest.approx(exact, abs=4 * error)


@pytest.mark.parametrize("player", ["generator", pytest.param("classifier", marks=pytest.mark.ci)])
def test_an_exact_turn_changes_its_player_alone_and_lowers_its_risk(player: str) -> None:
    game = by_class(risk="exact", passes=3)
    before, rows = parts(game), tf.range(N)
    turn = game.generator_turn if player == "generator" else game.classifier_turn
    first, second = (turn(tf.constant(1), rows, game.generative.classify_all()) for _ in range(2))
    assert changed(game, before) == {player}
    assert float(second[f"{player}_loss"]) < float(first[f"{player}_loss"])


def test_the_exact_risk_has_no_joint_turn() -> None:
    features, annotations, _ = make_crowd()
    with pytest.raises(UsageError, match="two_step"):
        CrowdInG(**ARGUMENTS, risk="exact", two_step=False).fit(features, annotations)


# ------------------------------------------------------- a test of authenticity (C2, C3)


def test_the_logit_of_a_density_ratio_is_that_of_two_distributions() -> None:
    game = density_ratio()
    z = tf.gather(game.generative.classify_all(), ROWS)
    log_g = game.generative.log_answers(ROWS, z)
    discriminator = game.discriminative.discriminator
    scores = discriminator.all_pairs(
        discriminator.encode(tf.gather(game.crowd.flat, ROWS), game.crowd.annotators)
    )
    p, g = softmax(scores), np.exp(np.asarray(log_g))
    labels = RNG.integers(0, C, (3, R)).astype(np.int32)
    signal, _ = game.discriminative.signals(ROWS, z, labels, log_g)
    for n in range(3):
        for r in range(R):
            y = labels[n, r]  # 1 - D = g / (p + g)
            expected = np.log(g[n, r, y] / (p[n, r, y] + g[n, r, y]))
            assert float(signal[n, r]) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_its_optimum_is_what_annotators_say() -> None:
    # Authentic labels (.7, .2, .1) and generated ones (.2, .5, .3) of one cell: of all
    # distributions that D's scores can be, p = (.7, .2, .1) has the least loss.
    p, g = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.5, 0.3])
    module = density_ratio().discriminative
    labels, weights = np.tile(np.arange(3), 2), np.concatenate([p, g])
    authentic = np.arange(6) < 3

    def loss(q: np.ndarray) -> float:
        scores, answers = np.log(np.tile([q, g], (6, 1, 1))).astype(np.float32).swapaxes(0, 1)
        logits = module.judged(scores, answers)
        losses = discriminator_losses(logits, labels, authentic, literal=True)
        return float((weights * losses.numpy()).sum())

    assert loss(p) < min(map(loss, RNG.dirichlet(np.ones(3), 300)))


@pytest.mark.ci
def test_observed_selection_judges_generated_labels_in_the_place_of_authentic_ones() -> None:
    game = density_ratio(selection="observed")
    latent = game.generative.classify_all()
    (rows, codes, labels, authentic, fed), _ = game.selected_pairs(tf.constant(2), latent)
    size = len(labels) // 2
    np.testing.assert_array_equal(rows[:size], rows[size:])
    np.testing.assert_array_equal(codes[:size], codes[size:])
    assert authentic[:size].numpy().all() and not authentic[size:].numpy().any()
    assert set(np.unique(fed[size:])) == {0.0, 1.0}  # the class that each was drawn for
    before = parts(game)
    game.discriminative_turn(tf.constant(0), tf.constant(1), latent)
    assert changed(game, before) == {"discriminator", "auxiliary"}


def test_without_the_generated_term_only_authentic_annotations_count() -> None:
    game = make_game()
    given = (np.array([0, 5]), np.array([4, 0]), np.array([0, 2]), np.array([True, False]))
    latent = np.full((2, C), 1 / C, np.float32)
    game.discriminative.information = game.discriminative.output_penalty = 0.0
    alone = game.discriminative.loss(*(part[:1] for part in given), latent[:1])[0]
    game.discriminative.generated_term = 0.0
    assert float(game.discriminative.loss(*given, latent)[0]) == pytest.approx(float(alone) / 2)


# As docs/settled_crowding.md and the suite `crowding_controls` have it.
DENSITY_RATIO: dict[str, Any] = {
    "discriminator_loss": "density_ratio",
    "selection": "observed",
    "output_penalty": 0.0,
    "latent": "class",
    "risk": "exact",
}


def played_on_held_out(reading: dict[str, Any]) -> tuple[float, float, dict[str, Any]]:
    """The mean of -log G over held-out annotations of a simulated crowd before a game of twelve
    epochs and after it, and what labels tell of classes then.
    """
    rng, size, annotators = np.random.default_rng(0), 240, 8
    truth = np.arange(size) % C
    features = (1.5 * np.eye(C, 4)[truth] + rng.normal(size=(size, 4))).astype(np.float32)
    right = rng.random((size, annotators)) < np.linspace(0.5, 0.9, annotators)
    labels = np.where(right, truth[:, None], (truth[:, None] + 1) % C)
    given = rng.random(labels.shape) < 0.5
    held = given & (rng.random(labels.shape) < 0.2) & (given.sum(axis=1, keepdims=True) > 2)
    crowd = Annotations.from_dense(np.where(given & ~held, labels, -1), num_classes=C)
    arguments = {
        **ARGUMENTS,
        **reading,
        "generator_pretrain_epochs": 10,
        "generator_pretrain_learning_rate": 1e-2,
        "passes": 5,
        "batch_size": 60,
        "averaging": 0.0,
        "collapse_drop": 1.0,
        "measured": True,
    }
    model = CrowdInG(**arguments)

    def unlikely() -> float:
        rows, columns = np.nonzero(held)
        chances = model.predict_annotators(features)[rows, columns, labels[held]]
        return float(-np.log(chances).mean())

    still = {"epochs": 1, "generator_learning_rate": 1e-9, "classifier_learning_rate": 1e-9}
    model.set_params(**still).fit(features, crowd, (features, truth))
    before = unlikely()
    model.set_params(epochs=12, generator_learning_rate=1e-3, classifier_learning_rate=1e-4)
    # Without validation data the last epoch is what is kept.
    data = TrainingData(features, crowd, None, np.arange(size))
    game = model._train(data, Run(), 12)
    return before, unlikely(), game.information


@pytest.mark.slow
@pytest.mark.parametrize(("reading", "near"), [(DENSITY_RATIO, True), ({}, False)])
def test_whether_generated_distributions_stay_near_held_out_annotations(
    reading: dict[str, Any], near: bool
) -> None:
    before, after, _ = played_on_held_out(reading)
    assert after - before < 0.05 if near else after - before > 0.15


# ------------------------------------------------------- passes, scales, penalties, mu


def test_each_player_has_its_own_count_of_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(passes=5, generator_passes=2, classifier_passes=7)
    assert settings.passes_of("discriminator") == 5
    assert settings.passes_of("generator") == 2
    assert settings.passes_of("generator", "classifier") == 7
    game = make_game(generator_passes=2, classifier_passes=3)
    rows = tf.range(BATCHES_OF_TWO)
    latent = game.generative.classify_all()
    game.generator_turn(tf.constant(0), rows, latent)
    game.classifier_turn(tf.constant(0), rows, latent)
    assert int(game.generator_optimizer.iterations) == 2 * 2
    assert int(game.classifier_optimizer.iterations) == 3 * 2


BATCHES_OF_TWO = 40  # instances, in batches of twenty


def test_inputs_add_as_much_to_the_first_layer() -> None:
    game = make_game()
    generator, crowd = game.generative.generator, game.crowd
    latent = game.generative.classify_all()
    generator.equalise(crowd.flat, crowd.annotators, latent)
    noise = RNG.normal(size=(20_000, generator.noise_size)).astype(np.float32)
    for part in (
        generator.instance_part(crowd.flat),
        generator.annotator_part(crowd.annotators),
        generator.from_classifier(latent),
        generator.from_noise(noise),
    ):
        assert np.asarray(part).var(axis=0).mean() == pytest.approx(0.25, rel=0.03)


def test_a_joint_search_gives_each_network_its_own_mu() -> None:
    deltas, signals = tf.range(11, dtype=tf.float32), -10.0 * tf.range(11, dtype=tf.float32)
    np.testing.assert_allclose(
        of_each([deltas, signals], quantiles)[1], [3.0, -70.0]
    )  # each at its own second quantile

    def run(mu: Any) -> Any:
        return tf.stack([tf.square(mu[0] - 5.0), 1.0, 1.0, 1.0])

    mu, _ = search_multiplier("search", run, [deltas, signals], [])
    np.testing.assert_allclose(mu, [5.0, -50.0])
    mu, _ = search_multiplier("mean", run, [deltas, signals], [])
    np.testing.assert_allclose(mu, [5.0, -50.0])


# ------------------------------------------------------- fits


@pytest.mark.ci
def test_the_control_has_the_games_steps_and_no_generator() -> None:
    features, annotations, truth = make_crowd()
    model = CrowdInG(**{**ARGUMENTS, "epochs": 2}, taught_by="crowd_layer", averaging=0.0)
    model.fit(features, annotations, (features[:30], truth[:30]))
    control = model._caches.networks.get(next(iter(model._caches.networks._kept)), lambda: None)
    # Two passes over half of 48 instances in batches of 20, as the classifier's turn has them.
    assert int(control.optimizer.iterations) == model.n_iter_ * 2 * 2
    assert model.start_ is not None and not model.generator_weights_
    # The crowd layer's matrices are those of the epoch that is kept, not of DL-CL before.
    before = model._classifier.estimator.confusion_matrices_
    moved = not np.array_equal(model.confusion_matrices_, before)
    assert moved == (model.best_epoch_ is not None)
    assert model.predict_proba(features).shape == (N, C)
    with pytest.raises(UsageError, match="no generator"):
        model.predict_annotators(features)
