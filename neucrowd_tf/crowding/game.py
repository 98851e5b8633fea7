"""The minimax game of eq. 4 as a Keras model: a step is an epoch, and each network has its turn in
it; and what goes between DL-CL and the game.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.classifier import move_average
from neucrowd_tf.crowding.crowd import (
    Crowd,
    batch_positions,
    batches_of,
    entropy,
    fold,
    gradients,
    passes_over,
    select_annotations,
    shuffled,
    split_by_entropy,
)
from neucrowd_tf.crowding.discriminative import (
    NUM_SUMS,
    DiscriminativeModule,
    discriminative_report,
)
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.learning import Learning, Logged, Player, Settings
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import take_step

# What a draw is for; see `Crowd.draw`.
_SURVEY, _SELECT, _PAIRS, _SURE, _GENERATOR, _UNSURE, _CLASSIFIER, _AUTHENTIC = (*range(7), 10)
_BEFORE = 1 << 20  # epochs of pre-training draw from numbers that the game never reaches
_ORDER, _NOISE = 8, 9


class CrowdInGModel(keras.Model):
    """The generative and the discriminative module, and a turn for each network.

    An element of the pipeline is the number of an epoch; everything drawn in it is a function of
    (seed, epoch).

    Args:
        generative: classifier and generator.
        discriminative: discriminator and auxiliary network.
        averaged: a copy of the classifier, whose weights follow the classifier's as a running
            average over epochs.
        crowd: the data.
        settings: how the turns are taken.

    References:
        CrowdInG, eq. 4 and section 3.3.
    """

    def __init__(
        self,
        generative: GenerativeModule,
        discriminative: DiscriminativeModule,
        averaged: keras.Model,
        crowd: Crowd,
        settings: Settings,
    ) -> None:
        super().__init__()
        self.generative, self.discriminative = generative, discriminative
        self.crowd, self.settings = crowd, settings
        self.learning = Learning(generative, discriminative, settings)
        self.averaged = averaged
        self.built = True

    def compile_networks(self, generator: float, classifier: float, discriminator: float) -> None:
        """Gives each network an Adam with its own learning rate. Each turn is compiled by itself:
        TensorFlow would optimise what two turns share once for each.
        """
        self.generator_optimizer = FusedAdam(generator)
        self.classifier_optimizer = FusedAdam(classifier)
        optimizer = FusedAdam(discriminator)
        self.generator_optimizer.build(self.generative.generator.trainable_variables)
        self.classifier_optimizer.build(self.generative.classifier.trainable_variables)
        optimizer.build(self.discriminative.trainable_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, run_eagerly=True, auto_scale_loss=False
        )

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns class probabilities."""
        return self.averaged(features, training=False)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Plays an epoch, whose number is the data.

        References:
            CrowdInG, sections 3.3.2 and 3.3.3 (two-step update).
        """
        epoch = tf.cast(tf.reshape(data, []), tf.int32)
        latent = self.generative.classify_all()  # until the classifier's turn ends
        passes = tf.constant(self.settings.passes_of("discriminator"))
        logs = self.discriminative_turn(epoch, passes, latent)
        if self.settings.two_step:
            sure, unsure = split_by_entropy(entropy(latent), self.settings.threshold)
            logs |= self.generator_turn(epoch, sure, latent)
            logs |= self.classifier_turn(epoch, unsure, latent)
        else:
            logs |= self.joint_turn(epoch, latent)
        move_average(self.averaged, self.generative.classifier, self.settings.averaging)
        latent = self.generative.classify_all()
        logs["classifier_entropy"] = tf.reduce_mean(entropy(latent))
        logs["predicted_class_entropy"] = entropy(tf.reduce_mean(latent, axis=0))
        return {"loss": logs["generator_loss"] + logs["discriminator_loss"], **logs}

    # ------------------------------------------------------- discriminator and auxiliary network

    def selected_pairs(self, epoch: Any, latent: Any) -> tuple[tuple[Any, Any, Any, Any, Any], Any]:
        """Returns the annotations that the discriminator learns from, and the generator's mean
        entropy.

        Args:
            epoch: its number.
            latent: `[N, C]` z-hat.

        Returns:
            instances, annotators, labels, whether authentic, each `[P]`, and `[P, C]` what the
            generator was fed: all authentic annotations, then as many generated ones of each
            annotator, chosen by entropy, or those in the place of the authentic ones; and a scalar.
        """
        crowd = self.crowd
        entropies, drawn, classes = self.generative.survey(latent, crowd.draw(epoch, _SURVEY))
        if self.settings.selection == "observed":
            rows, codes = tf.identity(crowd.instances), tf.identity(crowd.codes)
        else:
            rows, codes = select_annotations(
                entropies,
                crowd.observed,
                crowd.counts,
                crowd.draw(epoch, _SELECT),
                by_entropy=self.settings.selection == "entropy",
            )
        cells = tf.stack([rows, codes], axis=1)
        labels = tf.gather_nd(drawn, cells)
        fed = tf.gather(latent, rows)
        if self.generative.by_class:
            fed = tf.one_hot(tf.gather_nd(classes, cells), tf.shape(latent)[1])
        authentic = tf.concat(
            [tf.ones_like(crowd.labels, tf.bool), tf.zeros_like(labels, tf.bool)], axis=0
        )
        pairs = [
            tf.concat(both, axis=0)
            for both in (
                *((crowd.instances, rows), (crowd.codes, codes), (crowd.labels, labels)),
                (tf.gather(latent, crowd.instances), fed),
            )
        ]
        return (*pairs[:3], authentic, pairs[3]), tf.reduce_mean(entropies)

    @tf.function(autograph=False)
    def discriminative_turn(self, epoch: Any, passes: Any, latent: Any) -> dict[str, Any]:
        """Trains the discriminator and the auxiliary network; returns the means over the last
        pass.

        References:
            CrowdInG, eq. 4 (maximised by D, minimised by Q) and section 3.3.1.
        """
        selected, generator_entropy = self.selected_pairs(epoch, latent)
        pairs = list(selected)
        variables = self.discriminative.trainable_variables
        size, batch = tf.size(pairs[0]), self.settings.pair_batch_size
        if self.discriminative.density_ratio:
            z = tf.gather(latent, pairs[0])
            pairs.append(self.generative.some_log_answers(pairs[0], pairs[1], z))

        def step(turn: Any, index: Any) -> Any:
            positions = batch_positions(index, batch, size)
            chosen = shuffled(positions, size, fold(self.crowd.draw(epoch, _PAIRS), turn))
            batch_of = [tf.gather(part, chosen) for part in pairs]
            with tf.GradientTape() as tape:
                loss, sums = self.discriminative.loss(*batch_of)
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return sums

        sums = passes_over(passes, batches_of(size, batch), NUM_SUMS, step)
        return {**discriminative_report(sums), "generator_entropy": generator_entropy}

    # ----------------------------------------------------------------- generator and classifier

    def generator_turn(self, epoch: Any, rows: Any, latent: Any) -> dict[str, Any]:
        """Updates the generator by eq. 5 on instances of which the classifier is sure; the
        classifier stays as it is.

        References:
            CrowdInG, eq. 5 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _SURE)
        seed = self.crowd.draw(epoch, _GENERATOR)
        if self.settings.risk == "exact":
            return self._by_exact_risk("generator", epoch, latent, rows, seed)
        logged = self.learning.logged(rows, latent, seed)
        return self._by_draws(("generator",), epoch, latent, logged)

    def classifier_turn(self, epoch: Any, rows: Any, latent: Any) -> dict[str, Any]:
        """Updates the classifier by eq. 6 on the other instances, through the updated generator,
        which stays as it is.

        References:
            CrowdInG, eq. 6 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _UNSURE)
        seed = self.crowd.draw(epoch, _CLASSIFIER)
        if self.settings.risk == "exact":
            return self._by_exact_risk("classifier", epoch, latent, rows, seed)
        # Deviation: the logging policy is drawn from again after the generator's turn, as the
        # ratios of eq. 6 would else mix the generator's move with the classifier's.
        logged = self.learning.logged(rows, latent, seed)
        return self._by_draws(("classifier",), epoch, latent, logged)

    def joint_turn(self, epoch: Any, latent: Any) -> dict[str, Any]:
        """Updates both together on all instances, by eq. 5 and eq. 6 on the same draws: the
        one-step variant.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        rows = self._shuffled(tf.range(self.crowd.num_instances), epoch, _SURE)
        logged = self.learning.logged(rows, latent, self.crowd.draw(epoch, _GENERATOR))
        return self._by_draws(("generator", "classifier"), epoch, latent, logged)

    @tf.function(autograph=False, reduce_retracing=True)
    def _by_draws(
        self, names: tuple[str, ...], epoch: Any, latent: Any, logged: Logged
    ) -> dict[str, Any]:
        """Makes the inner passes of these players by `logged` labels."""
        signals = {"generator": logged.deltas, "classifier": logged.signals}
        turns = [(self._player(name, epoch, latent), signals[name]) for name in names]
        return self.learning.by_draws(turns, logged)

    @tf.function(autograph=False, reduce_retracing=True)
    def _by_exact_risk(
        self, name: str, epoch: Any, latent: Any, rows: Any, seed: Any
    ) -> dict[str, Any]:
        """Makes the inner passes of a player by the exact risk."""
        return self.learning.exactly(self._player(name, epoch, latent), rows, latent, seed)

    def _player(self, name: str, epoch: Any, latent: Any) -> Player:
        """Returns the generator or the classifier in its turn of an epoch."""
        if name == "generator":
            return Player(
                "generator",
                lambda rows, _: tf.gather(latent, rows),
                self.generative.generator.trainable_variables,
                self.generator_optimizer,
                lambda index: self._unlikely(latent, epoch, index),
            )
        return Player(
            "classifier",
            lambda _, flat: self.generative.classify(self.crowd.shaped(flat)),
            self.generative.classifier.trainable_variables,
            self.classifier_optimizer,
            lambda _: self._penalty(),
        )

    def _penalty(self) -> Any:
        """Returns the classifier's weight penalty, or 0 where the game leaves it out."""
        losses = self.generative.classifier.losses if self.settings.penalised else []
        return tf.add_n(losses) if losses else 0.0

    def _unlikely(self, latent: Any, epoch: Any, index: Any) -> Any:
        """Returns the weighted mean of -log G over a batch of authentic annotations, or 0."""
        if not self.settings.likelihood:
            return 0.0
        size, batch = tf.size(self.crowd.labels), self.settings.pair_batch_size
        positions = batch_positions(index % batches_of(size, batch), batch, size)
        chosen = shuffled(positions, size, self.crowd.draw(epoch, _AUTHENTIC))
        seed = fold(self.crowd.draw(epoch, _AUTHENTIC), index)
        return self.settings.likelihood * self.generative.authentic_loss(chosen, latent, seed)

    def _shuffled(self, rows: Any, epoch: Any, purpose: int) -> Any:
        size = tf.size(rows)
        return tf.gather(rows, shuffled(tf.range(size), size, self.crowd.draw(epoch, purpose)))


class GeneratorPretraining(keras.Model):
    """Trains the generator to give the authentic annotations their likelihood; the classifier stays
    as it is. A step is an epoch.

    References:
        CrowdInG, section 3.3.3.
    """

    def __init__(self, generative: GenerativeModule, batch_size: int, learning_rate: float) -> None:
        super().__init__()
        self.generative, self.batch_size = generative, batch_size
        self.built = True
        optimizer = FusedAdam(learning_rate)
        optimizer.build(generative.generator.trainable_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, jit_compile=False, auto_scale_loss=False
        )

    def train_step(self, data: Any) -> dict[str, Any]:
        return {"loss": self.epoch(tf.cast(tf.reshape(data, []), tf.int32) + _BEFORE)}

    def epoch(self, number: Any) -> Any:
        """Makes a pass over the authentic annotations, and returns the mean loss."""
        crowd, latent = self.generative.crowd, self.generative.classify_all()
        variables, size, batch = (
            self.generative.generator.trainable_variables,
            tf.size(crowd.labels),
            self.batch_size,
        )

        def step(_: Any, index: Any) -> Any:
            positions = batch_positions(index, batch, size)
            chosen = shuffled(positions, size, crowd.draw(number, _ORDER))
            with tf.GradientTape() as tape:
                loss = self.generative.authentic_loss(
                    chosen, latent, fold(crowd.draw(number, _NOISE), index)
                )
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            share = tf.cast(tf.size(chosen), tf.float32) / tf.cast(size, tf.float32)
            return tf.reshape(loss * share, [1])

        return passes_over(1, batches_of(size, batch), 1, step)[0]


class DiscriminativePretraining(keras.Model):
    """Trains discriminator and auxiliary network against the generator as it is, with a fresh
    selection each pass. A step is a pass.

    References:
        CrowdInG, section 3.3.3.
    """

    def __init__(self, game: CrowdInGModel) -> None:
        super().__init__()
        self.game = game
        self.built = True
        self.compile(
            optimizer=game.optimizer, steps_per_execution=1, run_eagerly=True, auto_scale_loss=False
        )

    def train_step(self, data: Any) -> dict[str, Any]:
        epoch = tf.cast(tf.reshape(data, []), tf.int32) + _BEFORE
        latent = self.game.generative.classify_all()
        logs = self.game.discriminative_turn(epoch, tf.constant(1), latent)
        return {"loss": logs["discriminator_loss"], **logs}
