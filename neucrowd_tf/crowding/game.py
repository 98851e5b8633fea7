"""The minimax game of eq. 4 as a Keras model: a step is an epoch, and each network has its turn in
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from neucrowd_tf.crowding.counterfactual import (
    Multiplier,
    counterfactual_risk,
    exact_risk,
    ratio_report,
    ratio_sums,
    search_multiplier,
)
from neucrowd_tf.crowding.crowd import (
    Crowd,
    batch_positions,
    batches_of,
    fold,
    gathered,
    gradients,
    passes_over,
    shuffled,
)
from neucrowd_tf.crowding.discriminative import (
    NUM_SUMS,
    DiscriminativeModule,
    discriminative_report,
)
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.selection import entropy, select_annotations, split_by_entropy
from neucrowd_tf.nn.steps import take_step

# What a draw is for; see `Crowd.draw`.
_SURVEY, _SELECT, _PAIRS, _SURE, _GENERATOR, _UNSURE, _CLASSIFIER, _AUTHENTIC = (*range(7), 10)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the turns are taken; see `CrowdInG` for what the fields mean."""

    threshold: float = 0.5
    passes: int = 5
    discriminator_passes: int | None = None
    generator_passes: int | None = None
    classifier_passes: int | None = None
    pair_batch_size: int = 512
    multiplier: Multiplier = "mean"
    selection: str = "entropy"
    two_step: bool = True
    averaging: float = 0.0
    risk: str = "counterfactual"
    likelihood: float = 0.0
    penalised: bool = False

    def passes_of(self, *players: str) -> int:
        """Returns how many inner passes a player's turn has, or the most of several players'."""
        own = [getattr(self, f"{player}_passes") for player in players]
        return max(self.passes if count is None else count for count in own)


class _Logged(NamedTuple):
    """Labels that the logging policy drew: `rows` `[n]`, `labels`, its `chances` of them, the
    `classes` that it drew them for and the `losses` they earned `[n, R]`; `seed` decided the noise.
    """

    rows: Any
    labels: Any
    chances: Any
    classes: Any
    losses: Any
    seed: Any

    def ratios(
        self, generative: GenerativeModule, part: slice, index: Any, latent_of: Callable[[Any], Any]
    ) -> Any:
        """Returns the importance ratios of a batch; gradients go through z-hat."""
        rows = self.rows[part]
        drawn = self.labels[part], self.chances[part]
        return generative.ratios(
            rows, latent_of(rows), *drawn, fold(self.seed, index), self.classes[part]
        )


class _Player(NamedTuple):
    """Who has a turn: its name, what says z-hat of some instances, its weights and their optimizer,
    and what is added to its risk in a step, given the batch's number.
    """

    name: str
    latent_of: Callable[[Any], Any]
    variables: list[Any]
    optimizer: keras.optimizers.Optimizer
    further: Callable[[Any], Any]


def move_average(averaged: keras.Model, present: keras.Model, share: float) -> None:
    """Moves an averaged model's weights towards the present ones.

    Args:
        averaged: keeps this `share` of itself; with none it becomes the present one.
        present: of the same layers.
    """
    for mean, now in zip(averaged.trainable_variables, present.trainable_variables, strict=True):
        mean.assign(share * mean + (1.0 - share) * now)


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
        self.averaged = averaged
        self.built = True

    def compile_networks(self, generator: float, classifier: float, discriminator: float) -> None:
        """Gives each network an Adam with its own learning rate, and compiles the step."""
        self.generator_optimizer = keras.optimizers.Adam(generator)
        self.classifier_optimizer = keras.optimizers.Adam(classifier)
        optimizer = keras.optimizers.Adam(discriminator)
        self.generator_optimizer.build(self.generative.generator.trainable_variables)
        self.classifier_optimizer.build(self.generative.classifier.trainable_variables)
        optimizer.build(self.discriminative.trainable_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, jit_compile=False, auto_scale_loss=False
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
        passes = self.settings.passes_of("discriminator")
        logs = self.discriminative_turn(epoch, tf.constant(passes))
        if self.settings.two_step:
            sure, unsure = split_by_entropy(
                entropy(self.generative.classify_all()), self.settings.threshold
            )
            logs |= self.generator_turn(epoch, sure)
            logs |= self.classifier_turn(epoch, unsure)
        else:
            logs |= self.joint_turn(epoch)
        self.average()
        latent = self.generative.classify_all()
        logs["classifier_entropy"] = tf.reduce_mean(entropy(latent))
        logs["predicted_class_entropy"] = entropy(tf.reduce_mean(latent, axis=0))
        return {"loss": logs["generator_loss"] + logs["discriminator_loss"], **logs}

    def average(self) -> None:
        """Moves the averaged classifier towards the present one."""
        move_average(self.averaged, self.generative.classifier, self.settings.averaging)

    # ------------------------------------------------------- discriminator and auxiliary network

    def selected_pairs(self, epoch: Any) -> tuple[tuple[Any, Any, Any, Any, Any], Any]:
        """Returns the annotations that the discriminator learns from, and the generator's mean
        entropy.

        Returns:
            instances, annotators, labels, whether authentic, each `[P]`, and `[P, C]` what the
            generator was fed: all authentic annotations, then as many generated ones of each
            annotator, chosen by entropy, or those in the place of the authentic ones; and a scalar.
        """
        crowd = self.crowd
        entropies, drawn, classes = self.generative.survey(crowd.draw(epoch, _SURVEY))
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
        latent = self.generative.classify_all()
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
    def discriminative_turn(self, epoch: Any, passes: Any) -> dict[str, Any]:
        """Trains the discriminator and the auxiliary network; returns the means over the last
        pass.

        References:
            CrowdInG, eq. 4 (maximised by D, minimised by Q) and section 3.3.1.
        """
        selected, generator_entropy = self.selected_pairs(epoch)
        pairs = list(selected)
        variables = self.discriminative.trainable_variables
        size, batch = tf.size(pairs[0]), self.settings.pair_batch_size
        if self.discriminative.density_ratio:
            latent = tf.gather(self.generative.classify_all(), pairs[0])
            pairs.append(self.generative.some_log_answers(pairs[0], pairs[1], latent))

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

    def logged(self, rows: Any, seed: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Lets the present generative module, the logging policy, label all pairs of some
        instances.

        Args:
            rows: `[n]` instance codes; batches of them meet the noise of (seed, the batch's
                number).
            seed: `[2]`.

        Returns:
            drawn labels, the logging policy's probabilities of them, L_G and delta, each `[n, R]`,
            and the classes that labels were drawn for (`[n, 0]` where z-hat is fed).

        References:
            CrowdInG, section 3.3.2 (G_0).
        """
        latent, batch = self.generative.classify_all(), self.generative.batch_rows

        def compute(index: Any) -> tuple[Any, ...]:
            chosen = rows[index * batch : (index + 1) * batch]
            z = tf.gather(latent, chosen)
            drawn = self.generative.draw(chosen, z, fold(seed, index))
            signal, delta = self.discriminative.signals(
                chosen, drawn.fed, drawn.labels, self._log_answers(chosen, z)
            )
            return drawn.labels, drawn.chances, signal, delta, drawn.classes

        kinds = (tf.int32, tf.float32, tf.float32, tf.float32, tf.int32)
        labels, chances, signals, deltas, classes = gathered(
            batches_of(tf.size(rows), batch), kinds, compute
        )
        return labels, chances, signals, deltas, classes

    def _log_answers(self, rows: Any, latent: Any) -> Any:
        """Returns log G of every label, which D judges by where it is a density ratio."""
        if not self.discriminative.density_ratio:
            return None
        return self.generative.log_answers(rows, latent)

    def generator_turn(self, epoch: Any, rows: Any) -> dict[str, Any]:
        """Updates the generator by eq. 5 on instances of which the classifier is sure; the
        classifier stays as it is.

        References:
            CrowdInG, eq. 5 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _SURE)
        seed = self.crowd.draw(epoch, _GENERATOR)
        latent = self.generative.classify_all()
        player = _Player(
            "generator",
            lambda chosen: tf.gather(latent, chosen),
            self.generative.generator.trainable_variables,
            self.generator_optimizer,
            lambda index: self._unlikely(latent, epoch, index),
        )
        if self.settings.risk == "exact":
            return self._update_exactly(player, rows, seed)
        labels, chances, _, deltas, classes = self.logged(rows, seed)
        return self._update(player, _Logged(rows, labels, chances, classes, deltas, seed))

    def classifier_turn(self, epoch: Any, rows: Any) -> dict[str, Any]:
        """Updates the classifier by eq. 6 on the other instances, through the updated generator,
        which stays as it is.

        References:
            CrowdInG, eq. 6 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _UNSURE)
        seed = self.crowd.draw(epoch, _CLASSIFIER)
        features = self.crowd.features
        player = _Player(
            "classifier",
            lambda chosen: self.generative.classify(tf.gather(features, chosen)),
            self.generative.classifier.trainable_variables,
            self.classifier_optimizer,
            lambda _: self._penalty(),
        )
        if self.settings.risk == "exact":
            return self._update_exactly(player, rows, seed)
        # Deviation: the logging policy is drawn from again after the generator's turn, as the
        # ratios of eq. 6 would else mix the generator's move with the classifier's.
        labels, chances, signals, _, classes = self.logged(rows, seed)
        return self._update(player, _Logged(rows, labels, chances, classes, signals, seed))

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

    def _update(self, player: _Player, logged: _Logged) -> dict[str, Any]:
        """Makes the inner passes of one network's turn over logged labels and returns what is
        logged of them.
        """
        variables, optimizer = player.variables, player.optimizer

        def step(index: Any, multiplier: Any) -> Any:
            part = self._batch(index)
            with tf.GradientTape() as tape:
                ratios = logged.ratios(self.generative, part, index, player.latent_of)
                risk = counterfactual_risk(logged.losses[part], ratios, multiplier)
                risk += player.further(index)
            take_step(optimizer, gradients(tape, risk, variables), variables)
            return ratio_sums(logged.losses[part], ratios)

        passes = self.settings.passes_of(player.name)
        changed = [*variables, *optimizer.variables]
        mu, sums = self._passes(passes, step, logged.losses, changed)
        report = ratio_report(player.name, mu, sums)
        return {f"{player.name}_loss": tf.reduce_mean(logged.losses), **report}

    def _update_exactly(self, player: _Player, rows: Any, seed: Any) -> dict[str, Any]:
        """Makes the inner passes of one network's turn by the exact risk."""
        size, variables = tf.size(rows), player.variables
        before = self.generative.classify_all()  # z-hat of delta, which no gradient passes through

        def step(_: Any, index: Any) -> Any:
            chosen = rows[self._batch(index)]
            z = tf.gather(before, chosen)
            signals, log_q = self.discriminative.all_signals(chosen, self._log_answers(chosen, z))
            if not (player.name == "generator" and self.discriminative.information):
                log_q = tf.zeros_like(log_q)
            with tf.GradientTape() as tape:
                answers, losses = self.expected(
                    chosen, player.latent_of(chosen), z, signals, log_q, fold(seed, index)
                )
                risk = exact_risk(answers, losses)
                loss = risk + player.further(index)
            take_step(player.optimizer, gradients(tape, loss, variables), variables)
            share = tf.cast(tf.size(chosen), tf.float32) / tf.cast(size, tf.float32)
            return tf.reshape(risk * share, [1])

        passes = self.settings.passes_of(player.name)
        total = passes_over(passes, batches_of(size, self.generative.batch_rows), 1, step)
        return {f"{player.name}_loss": total[0]}

    def expected(
        self, rows: Any, latent: Any, before: Any, signals: Any, log_q: Any, seed: Any
    ) -> tuple[Any, Any]:
        """Returns what the generative module says of all labels of some instances, and delta of
        each, for `exact_risk`.

        Args:
            rows, seed: see `GenerativeModule.logits`.
            latent: `[B, C]` z-hat, through which gradients go.
            before: `[B, C]` z-hat as it was before the turn.
            signals, log_q: from `DiscriminativeModule.all_signals`.

        Returns:
            both `[B, R, C]`; where classes are fed, `[B, R, C (z), C (y)]`.

        References:
            CrowdInG, eq. 3 and section 3.3.2: sum_z z-hat_z sum_y G(y | z) (L_G(y) - lambda
            log Q(z | y)).
        """
        weight = self.discriminative.information
        if self.generative.by_class:
            answers = tf.nn.softmax(self.generative.logits_by_class(rows, seed))
            losses = signals[:, :, None, :] - weight * tf.transpose(log_q, [0, 1, 3, 2])
            return latent[:, None, :, None] * answers, losses
        answers = tf.nn.softmax(self.generative.logits(rows, latent, seed))
        return answers, signals - weight * tf.reduce_sum(before[:, None, None] * log_q, axis=-1)

    def joint_turn(self, epoch: Any) -> dict[str, Any]:
        """Updates both together on all instances, by eq. 5 and eq. 6 on the same draws: the
        one-step variant.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        rows = self._shuffled(tf.range(self.crowd.num_instances), epoch, _SURE)
        seed = self.crowd.draw(epoch, _GENERATOR)
        labels, chances, signals, deltas, classes = self.logged(rows, seed)
        logged = _Logged(rows, labels, chances, classes, deltas, seed)
        features, generative = self.crowd.features, self.generative
        ours = generative.generator.trainable_variables
        theirs = generative.classifier.trainable_variables
        latent = generative.classify_all()

        def step(index: Any, multipliers: Any) -> Any:
            part = self._batch(index)
            with tf.GradientTape(persistent=True) as tape:
                ratios = logged.ratios(
                    generative,
                    part,
                    index,
                    lambda chosen: generative.classify(tf.gather(features, chosen)),
                )
                risk = counterfactual_risk(deltas[part], ratios, multipliers[0])
                risk += self._unlikely(latent, epoch, index)
                other = counterfactual_risk(signals[part], ratios, multipliers[1])
                other += self._penalty()
            both = gradients(tape, risk, ours), gradients(tape, other, theirs)
            take_step(self.generator_optimizer, both[0], ours)
            take_step(self.classifier_optimizer, both[1], theirs)
            return ratio_sums(deltas[part], ratios)

        optimizers = self.generator_optimizer, self.classifier_optimizer
        changed = [*ours, *theirs, *(v for optimizer in optimizers for v in optimizer.variables)]
        passes = self.settings.passes_of("generator", "classifier")
        mu, sums = self._passes(passes, step, [deltas, signals], changed)
        return {
            "generator_loss": tf.reduce_mean(deltas),
            "classifier_loss": tf.reduce_mean(signals),
            **ratio_report("generator", mu[0], sums),
        }

    def _batch(self, index: Any) -> slice:
        size = self.generative.batch_rows
        return slice(index * size, (index + 1) * size)

    def _passes(self, passes: int, step: Any, losses: Any, changed: list[Any]) -> tuple[Any, Any]:
        """Makes the inner passes over the logged batches.

        Args:
            passes: how many.
            step: `step(index, mu)` makes a step on a batch and returns `ratio_sums`.
            losses: `[n, R]` delta or L_G, or a list of both.
            changed: the variables that steps change.

        Returns:
            mu, and the sums over the last pass.
        """
        first = losses[0] if isinstance(losses, list) else losses
        count = batches_of(tf.shape(first)[0], self.generative.batch_rows)

        def run(mu: Any) -> Any:
            return passes_over(passes, count, 4, lambda _, index: step(index, mu))

        return search_multiplier(self.settings.multiplier, run, losses, changed)

    def _shuffled(self, rows: Any, epoch: Any, purpose: int) -> Any:
        size = tf.size(rows)
        return tf.gather(rows, shuffled(tf.range(size), size, self.crowd.draw(epoch, purpose)))
