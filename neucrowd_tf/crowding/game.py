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
from neucrowd_tf.crowding.generative import GenerativeModule, draw_labels
from neucrowd_tf.crowding.selection import entropy, select_annotations, split_by_entropy
from neucrowd_tf.nn.steps import take_step

# What a draw is for; see `Crowd.draw`.
_SURVEY, _SELECT, _PAIRS, _SURE, _GENERATOR, _UNSURE, _CLASSIFIER = range(7)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the turns are taken; see `CrowdInG` for what the fields mean."""

    threshold: float = 0.5
    passes: int = 5
    pair_batch_size: int = 512
    multiplier: Multiplier = "mean"
    selection: str = "entropy"
    two_step: bool = True
    averaging: float = 0.0


class _Logged(NamedTuple):
    """Labels that the logging policy drew: `rows` `[n]`, `labels`, its `chances` of them and the
    `losses` they earned `[n, R]`; `seed` decided the noise.
    """

    rows: Any
    labels: Any
    chances: Any
    losses: Any
    seed: Any

    def ratios(
        self, generative: GenerativeModule, part: slice, index: Any, latent_of: Callable[[Any], Any]
    ) -> Any:
        """Returns the importance ratios of a batch; gradients go through z-hat."""
        rows = self.rows[part]
        return generative.ratios(
            rows, latent_of(rows), self.labels[part], self.chances[part], fold(self.seed, index)
        )


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
        logs = self.discriminative_turn(epoch, tf.constant(self.settings.passes))
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
        """Moves the averaged classifier towards the present one; without averaging it becomes the
        same.
        """
        share = self.settings.averaging
        for mean, now in zip(
            self.averaged.trainable_variables,
            self.generative.classifier.trainable_variables,
            strict=True,
        ):
            mean.assign(share * mean + (1.0 - share) * now)

    # ------------------------------------------------------- discriminator and auxiliary network

    def selected_pairs(self, epoch: Any) -> tuple[tuple[Any, Any, Any, Any], Any]:
        """Returns the annotations that the discriminator learns from, and the generator's mean
        entropy.

        Returns:
            instances, annotators, labels and whether authentic, each `[P]`: all authentic
            annotations, then as many generated ones of each annotator, chosen by entropy; and a
            scalar.
        """
        crowd = self.crowd
        entropies, drawn = self.generative.survey(crowd.draw(epoch, _SURVEY))
        rows, codes = select_annotations(
            entropies,
            crowd.observed,
            crowd.counts,
            crowd.draw(epoch, _SELECT),
            by_entropy=self.settings.selection == "entropy",
        )
        labels = tf.gather_nd(drawn, tf.stack([rows, codes], axis=1))
        authentic = tf.concat(
            [tf.ones_like(crowd.labels, tf.bool), tf.zeros_like(labels, tf.bool)], axis=0
        )
        pairs = [
            tf.concat(both, axis=0)
            for both in ((crowd.instances, rows), (crowd.codes, codes), (crowd.labels, labels))
        ]
        return (pairs[0], pairs[1], pairs[2], authentic), tf.reduce_mean(entropies)

    @tf.function(autograph=False)
    def discriminative_turn(self, epoch: Any, passes: Any) -> dict[str, Any]:
        """Trains the discriminator and the auxiliary network; returns the means over the last
        pass.

        References:
            CrowdInG, eq. 4 (maximised by D, minimised by Q) and section 3.3.1.
        """
        pairs, generator_entropy = self.selected_pairs(epoch)
        latent, variables = self.generative.classify_all(), self.discriminative.trainable_variables
        size, batch = tf.size(pairs[0]), self.settings.pair_batch_size

        def step(turn: Any, index: Any) -> Any:
            positions = batch_positions(index, batch, size)
            chosen = shuffled(positions, size, fold(self.crowd.draw(epoch, _PAIRS), turn))
            rows, codes, labels, authentic = (tf.gather(part, chosen) for part in pairs)
            with tf.GradientTape() as tape:
                loss, sums = self.discriminative.loss(
                    rows, codes, labels, authentic, tf.gather(latent, rows)
                )
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return sums

        sums = passes_over(passes, batches_of(size, batch), NUM_SUMS, step)
        return {**discriminative_report(sums), "generator_entropy": generator_entropy}

    # ----------------------------------------------------------------- generator and classifier

    def logged(self, rows: Any, seed: Any) -> tuple[Any, Any, Any, Any]:
        """Lets the present generative module, the logging policy, label all pairs of some
        instances.

        Args:
            rows: `[n]` instance codes; batches of them meet the noise of (seed, the batch's
                number).
            seed: `[2]`.

        Returns:
            drawn labels, the logging policy's probabilities of them, L_G and delta, each `[n, R]`.

        References:
            CrowdInG, section 3.3.2 (G_0).
        """
        latent, batch = self.generative.classify_all(), self.generative.batch_rows

        def compute(index: Any) -> tuple[Any, ...]:
            chosen = rows[index * batch : (index + 1) * batch]
            z = tf.gather(latent, chosen)
            logits = self.generative.logits(chosen, z, fold(seed, index))
            drawn = draw_labels(logits, fold(fold(seed, index), 1))
            signal, delta = self.discriminative.signals(chosen, z, drawn)
            return (
                drawn,
                tf.gather(tf.nn.softmax(logits), drawn, axis=2, batch_dims=2),
                signal,
                delta,
            )

        kinds = (tf.int32, tf.float32, tf.float32, tf.float32)
        labels, chances, signals, deltas = gathered(
            batches_of(tf.size(rows), batch), kinds, compute
        )
        return labels, chances, signals, deltas

    def generator_turn(self, epoch: Any, rows: Any) -> dict[str, Any]:
        """Updates the generator by eq. 5 on instances of which the classifier is sure; the
        classifier stays as it is.

        References:
            CrowdInG, eq. 5 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _SURE)
        seed = self.crowd.draw(epoch, _GENERATOR)
        labels, chances, _, deltas = self.logged(rows, seed)
        latent = self.generative.classify_all()
        return self._update(
            "generator",
            _Logged(rows, labels, chances, deltas, seed),
            lambda chosen: tf.gather(latent, chosen),
            self.generative.generator.trainable_variables,
            self.generator_optimizer,
        )

    def classifier_turn(self, epoch: Any, rows: Any) -> dict[str, Any]:
        """Updates the classifier by eq. 6 on the other instances, through the updated generator,
        which stays as it is.

        References:
            CrowdInG, eq. 6 and section 3.3.3.
        """
        rows = self._shuffled(rows, epoch, _UNSURE)
        seed = self.crowd.draw(epoch, _CLASSIFIER)
        # Deviation: the logging policy is drawn from again after the generator's turn, as the
        # ratios of eq. 6 would else mix the generator's move with the classifier's.
        labels, chances, signals, _ = self.logged(rows, seed)
        features = self.crowd.features
        return self._update(
            "classifier",
            _Logged(rows, labels, chances, signals, seed),
            lambda chosen: self.generative.classify(tf.gather(features, chosen)),
            self.generative.classifier.trainable_variables,
            self.classifier_optimizer,
        )

    def _update(
        self,
        name: str,
        logged: _Logged,
        latent_of: Callable[[Any], Any],
        variables: list[Any],
        optimizer: keras.optimizers.Optimizer,
    ) -> dict[str, Any]:
        """Makes the inner passes of one network's turn and returns what is logged of them.

        Args:
            name: of the network.
            logged: the labels that it learns from.
            latent_of: z-hat of some instances.
            variables, optimizer: the network's.
        """

        def step(index: Any, multiplier: Any) -> Any:
            part = self._batch(index)
            with tf.GradientTape() as tape:
                ratios = logged.ratios(self.generative, part, index, latent_of)
                risk = counterfactual_risk(logged.losses[part], ratios, multiplier)
            take_step(optimizer, gradients(tape, risk, variables), variables)
            return ratio_sums(logged.losses[part], ratios)

        mu, sums = self._passes(step, logged.losses, [*variables, *optimizer.variables])
        return {f"{name}_loss": tf.reduce_mean(logged.losses), **ratio_report(name, mu, sums)}

    def joint_turn(self, epoch: Any) -> dict[str, Any]:
        """Updates both together on all instances, by eq. 5 and eq. 6 on the same draws: the
        one-step variant.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        rows = self._shuffled(tf.range(self.crowd.num_instances), epoch, _SURE)
        seed = self.crowd.draw(epoch, _GENERATOR)
        labels, chances, signals, deltas = self.logged(rows, seed)
        logged = _Logged(rows, labels, chances, deltas, seed)
        features, generative = self.crowd.features, self.generative
        ours = generative.generator.trainable_variables
        theirs = generative.classifier.trainable_variables
        mean_signal = tf.reduce_mean(signals)
        by_itself = isinstance(self.settings.multiplier, str)

        def step(index: Any, multiplier: Any) -> Any:
            part = self._batch(index)
            with tf.GradientTape(persistent=True) as tape:
                ratios = logged.ratios(
                    generative,
                    part,
                    index,
                    lambda chosen: generative.classify(tf.gather(features, chosen)),
                )
                risk = counterfactual_risk(deltas[part], ratios, multiplier)
                other = counterfactual_risk(
                    signals[part], ratios, mean_signal if by_itself else multiplier
                )
            both = gradients(tape, risk, ours), gradients(tape, other, theirs)
            take_step(self.generator_optimizer, both[0], ours)
            take_step(self.classifier_optimizer, both[1], theirs)
            return ratio_sums(deltas[part], ratios)

        optimizers = self.generator_optimizer, self.classifier_optimizer
        changed = [*ours, *theirs, *(v for optimizer in optimizers for v in optimizer.variables)]
        mu, sums = self._passes(step, deltas, changed)
        return {
            "generator_loss": tf.reduce_mean(deltas),
            "classifier_loss": mean_signal,
            **ratio_report("generator", mu, sums),
        }

    def _batch(self, index: Any) -> slice:
        size = self.generative.batch_rows
        return slice(index * size, (index + 1) * size)

    def _passes(self, step: Any, losses: Any, changed: list[Any]) -> tuple[Any, Any]:
        """Makes the inner passes over the logged batches.

        Args:
            step: `step(index, mu)` makes a step on a batch and returns `ratio_sums`.
            losses: `[n, R]` delta or L_G.
            changed: the variables that steps change.

        Returns:
            mu, and the sums over the last pass.
        """
        count = batches_of(tf.shape(losses)[0], self.generative.batch_rows)

        def run(mu: Any) -> Any:
            return passes_over(self.settings.passes, count, 4, lambda _, index: step(index, mu))

        return search_multiplier(self.settings.multiplier, run, losses, changed)

    def _shuffled(self, rows: Any, epoch: Any, purpose: int) -> Any:
        size = tf.size(rows)
        return tf.gather(rows, shuffled(tf.range(size), size, self.crowd.draw(epoch, purpose)))
