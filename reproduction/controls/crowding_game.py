"""Games of CrowdInG's controls: mixins that each change one factor, and DL-CL that goes on."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.game import Game, Pairs, batches_in, positions_of, repeated, shuffled
from neucrowd_tf.crowding.networks import (
    Drawn,
    Generator,
    draw_labels,
    fold,
    label_probabilities,
    of_pairs,
    pair_noise,
)
from neucrowd_tf.crowding.objectives import entropy, printed_discriminator_losses
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.state import reset_optimizer

_LEAST = 1e-12


def exact_risk(answers: Any, losses: Any) -> Any:
    """Returns the mean over pairs of sum_y G(y) delta(y), which logged draws estimate.

    Args:
        answers: `[B, R, ..., C]` G(y | x, e, z-hat), or P(z) G(y | x, e, z).
        losses: delta of the same shape; no gradient passes through them.
    """
    axes = list(range(2, len(answers.shape)))
    return tf.reduce_mean(tf.reduce_sum(answers * tf.stop_gradient(losses), axis=axes))


# ----------------------------------------------------------------- what the generator gets


class ClassGenerator(Generator):
    """Generator that gets a class drawn from z-hat for each pair, as in InfoGAN."""

    def by_class(self, hidden: Any) -> Any:
        """Returns log G(y | z) for each class z, `[..., h] -> [..., C (z), C (y)]`."""
        classes = self.from_classifier(tf.eye(self.from_classifier.kernel.shape[0]))
        return tf.nn.log_softmax(of_pairs(self.scores, tf.nn.relu(hidden[..., None, :] + classes)))

    def draw(self, features: Any, latent: Any, annotators: Any, seed: Any) -> Drawn:
        """Draws a class of each pair from z-hat, then a label given the class."""
        shape = [tf.shape(features)[0], tf.shape(annotators)[0], self.noise_size]
        hidden = self.hidden(features, annotators, pair_noise(seed, shape))
        log_z = tf.math.log(tf.maximum(latent, _LEAST))[:, None, :]
        log_z = tf.broadcast_to(log_z, [*shape[:2], tf.shape(latent)[1]])
        classes = tf.one_hot(draw_labels(log_z, fold(seed, 2)), tf.shape(latent)[1])
        logits = self.logits(hidden, classes)
        labels = draw_labels(logits, fold(seed, 1))
        drawn = Drawn(labels, labels, entropy(tf.nn.softmax(logits)), classes)
        return drawn._replace(probabilities=self.probabilities(hidden, latent, drawn))

    def probabilities(self, hidden: Any, latent: Any, drawn: Drawn) -> Any:
        """Returns P(z) G(y | z) of drawn classes and labels, `[B, R]`."""
        chances = tf.reduce_sum(drawn.latent * latent[:, None, :], axis=-1)
        return chances * label_probabilities(self.logits(hidden, drawn.latent), drawn.labels)

    def log_probabilities(self, hidden: Any, latent: Any) -> Any:
        """Returns log sum_z P(z) G(y | z) of chosen pairs, `[P, C]`."""
        log_z = tf.math.log(tf.maximum(latent, _LEAST))
        return tf.reduce_logsumexp(log_z[..., None] + self.by_class(hidden), axis=-2)

    def answers(self, features: Any, latent: Any, annotators: Any) -> Any:
        """Returns sum_z P(z) G(y | x, e, z) at the mean of the noise, `[B, R, C]`."""
        noise = tf.zeros([tf.shape(features)[0], tf.shape(annotators)[0], self.noise_size])
        hidden = self.hidden(features, annotators, noise)
        return tf.exp(self.log_probabilities(hidden, tf.convert_to_tensor(latent)[:, None, :]))


class ByClass(Game):
    """The generator gets classes; Q guesses the class that each label was drawn for."""

    generator_class = ClassGenerator


# ----------------------------------------------------------------- what the discriminator judges


class Observed(Game):
    """Generated annotations stand in the cells of the authentic ones."""

    def select_cells(self, epoch: Any, entropies: Any) -> tuple[Any, Any]:
        """Returns the cells of the authentic annotations."""
        return self.crowd.instances, self.crowd.codes


class PrintedLoss(Game):
    """The discriminator's loss is eq. 4 as in the paper."""

    def annotation_losses(self, logits: Any, labels: Any, authentic: Any) -> Any:
        """Returns the printed loss of each annotation."""
        return printed_discriminator_losses(logits, labels, authentic)


class NoOutputPenalty(Game):
    """The discriminator's outputs are not penalised."""

    output_penalty = 0.0


class NoGeneratedTerm(Game):
    """Generated annotations do not count in the discriminator's loss."""

    def annotation_losses(self, logits: Any, labels: Any, authentic: Any) -> Any:
        """Returns the loss of authentic annotations, and 0 of generated ones."""
        return tf.where(authentic, super().annotation_losses(logits, labels, authentic), 0.0)


class DensityRatio(PrintedLoss):
    """The logit of D(y) is log p(y) - log G(y), p a softmax of eq. 2's scores.

    It is the optimum of eq. 4 if p is the annotators' distribution (Goodfellow et al., 2014,
    proposition 1).
    """

    def pair_logits(self, scores: Any, inputs: Any, pairs: Pairs) -> Any:
        """Returns log p - log G of chosen pairs at the noise's mean."""
        features, annotators = tf.gather(inputs[0], pairs.rows), inputs[1]
        noise = tf.zeros([tf.size(pairs.rows), self.generator.noise_size])
        hidden = self.generator.hidden_of_pairs(features, annotators, noise, pairs.codes)
        log_g = self.generator.log_probabilities(hidden, self.classify(features))
        return tf.nn.log_softmax(scores) - tf.stop_gradient(log_g)

    def all_logits(self, scores: Any, inputs: Any, latent: Any) -> Any:
        """Returns log p - log G of all pairs at the noise's mean."""
        answers = self.generator.answers(inputs[0], latent, inputs[1])
        return tf.nn.log_softmax(scores) - tf.math.log(tf.maximum(answers, _LEAST))


# ----------------------------------------------------------------- how the modules learn


class LongTurns(Game):
    """Generator and classifier have twice the passes of the discriminator."""

    @property
    def inner_passes(self) -> int:
        """Passes of a turn of generator or classifier."""
        return 2 * int(self.settings.passes)


class Exact(Game):
    """Generator and classifier learn by the sum over all labels: no draws, ratios or mu."""

    def generator_turn(self, epoch: Any, rows: Any, latent: Any) -> dict[str, Any]:
        """Updates the generator by the exact risk."""
        return self._exact_turn("generator", self.crowd.draw(epoch, 3), epoch, rows, latent)

    def classifier_turn(
        self, epoch: Any, rows: Any, latent: Any, logged: Any = None
    ) -> dict[str, Any]:
        """Updates the classifier by the exact risk."""
        return self._exact_turn("classifier", self.crowd.draw(epoch, 5), epoch, rows, latent)

    def _exact_turn(
        self, name: str, order: Any, epoch: Any, rows: Any, latent: Any
    ) -> dict[str, Any]:
        crowd = self.crowd
        rows = tf.gather(rows, shuffled(tf.range(len(rows)), len(rows), order))
        seed = crowd.draw(epoch, 4 if name == "generator" else 6)
        z = tf.gather(latent, rows)
        return {f"{name}_loss": self._exact_passes(name, *crowd.inputs, rows, z, seed)}

    @tf.function(autograph=False, reduce_retracing=True)
    def _exact_passes(
        self, name: str, instances: Any, annotators: Any, rows: Any, latent: Any, seed: Any
    ) -> Any:
        """Updates one network batch by batch; returns the mean risk of the last pass."""
        network, optimizer = getattr(self, name), getattr(self, f"{name}_optimizer")
        variables, size = network.trainable_variables, self.settings.batch_size
        count = batches_in(tf.size(rows), size)

        def step(number: Any, total: Any) -> tuple[Any, Any]:
            index = number % count
            place = slice(index * size, (index + 1) * size)
            features, z = tf.gather(instances, rows[place]), latent[place]
            authenticity, log_q = self.all_signals((features, annotators), z)
            if name == "classifier" or not self.settings.information:
                log_q = tf.zeros_like(log_q)
            shape = [tf.shape(z)[0], tf.shape(annotators)[0], self.generator.noise_size]
            noise = pair_noise(fold(seed, index), shape)
            with tf.GradientTape() as tape:
                present = z if name == "generator" else self.classify(features)
                hidden = self.generator.hidden(features, annotators, noise)
                risk = exact_risk(*self.expected(hidden, present, z, authenticity, log_q))
            take_step(optimizer, gradients(tape, risk, variables), variables)
            share = tf.cast(tf.shape(z)[0], tf.float32) / tf.cast(tf.size(rows), tf.float32)
            return number + 1, tf.where(index == 0, 0.0, total) + risk * share

        return repeated(self.inner_passes * count, step, 0.0)

    def all_signals(self, inputs: Any, latent: Any) -> tuple[Any, Any]:
        """Returns L_G of every label `[B, R, C]`, and log Q(z | y) `[B, R, C (y), C (z)]`."""
        encoded = self.discriminator.encode(*inputs)
        logits = self.all_logits(self.discriminator.all_pairs(*encoded), inputs, latent)
        shape = tf.shape(logits)[:2]
        log_q = [
            self.auxiliary.all_pairs(*encoded, tf.fill(shape, y))
            for y in range(self.discriminator.num_classes)
        ]
        return -tf.nn.softplus(logits), tf.stack(log_q, axis=2)

    def expected(
        self, hidden: Any, latent: Any, before: Any, authenticity: Any, log_q: Any
    ) -> tuple[Any, Any]:
        """Returns G and delta of all labels, `[B, R, C]`, or with classes `[B, R, C, C]`.

        Args:
            hidden: `[B, R, h]`.
            latent: `[B, C]` z-hat, through which gradients go.
            before: `[B, C]` z-hat before the turn.
            authenticity: `[B, R, C]` from `all_signals`.
            log_q: `[B, R, C, C]` from `all_signals`.
        """
        weight = self.settings.information
        if isinstance(self.generator, ClassGenerator):
            answers = latent[:, None, :, None] * tf.exp(self.generator.by_class(hidden))
            return answers, authenticity[:, :, None] - weight * tf.transpose(log_q, [0, 1, 3, 2])
        answers = tf.nn.softmax(self.generator.logits(hidden, latent[:, None, :]))
        likelihood = tf.reduce_sum(before[:, None, None] * log_q, axis=-1)
        return answers, authenticity - weight * likelihood


# The order in which they override each other.
GAMES: dict[str, type[Game]] = {
    "no_generated_term": NoGeneratedTerm,
    "density_ratio": DensityRatio,
    "printed_loss": PrintedLoss,
    "no_output_penalty": NoOutputPenalty,
    "observed": Observed,
    "class": ByClass,
    "long_turns": LongTurns,
    "exact": Exact,
}


class ContinuedClassifier(keras.Model):
    """DL-CL in further epochs with the steps of a classifier's turn each; a step is an epoch.

    A running average of its weights predicts, as in the game.

    Args:
        network: DL-CL's, fitted; it is trained on.
        averaged: a copy of its classifier.
        settings: a `CrowdInG`.
    """

    def __init__(self, network: Any, averaged: keras.Model, settings: Any) -> None:
        super().__init__()
        self.trained, self.base, self.averaged = network.model, network.base, averaged
        self.settings = settings
        self.built = True
        optimizer = FusedAdam()
        optimizer.build(self.trained.trained_variables)
        self.compile(optimizer=optimizer, run_eagerly=True, auto_scale_loss=False)

    def begin(self, stage: str) -> None:
        """Begins with a fresh optimizer."""
        reset_optimizer(self.optimizer)
        self.optimizer.learning_rate.assign(self.settings.classifier_learning_rate)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Makes an epoch, whose number is the data."""
        loss = self._epoch(tf.constant(data, tf.int32))
        share = self.settings.averaging
        for mean, now in zip(
            self.averaged.trainable_variables, self.base.trainable_variables, strict=True
        ):
            mean.assign(share * mean + (1.0 - share) * now)
        features = tf.convert_to_tensor(self.trained.features)
        latent = tf.cast(self.base(features, training=False), tf.float32)
        return {
            "loss": loss,
            "classifier_loss": loss,
            "classifier_entropy": tf.reduce_mean(entropy(latent)),
            "predicted_class_entropy": entropy(tf.reduce_mean(latent, axis=0)),
        }

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
    def _epoch(self, epoch: Any) -> Any:
        model, settings = self.trained, self.settings
        size, batch, variables = model.num_instances, settings.batch_size, model.trained_variables
        sure = min(max(round(settings.threshold * size), 1), size - 1)
        steps = settings.passes * -(-(size - sure) // batch)
        features, count = tf.convert_to_tensor(model.features), batches_in(size, batch)

        def step(number: Any, mean: Any) -> tuple[Any, Any]:
            # A permutation of all instances for each pass over them.
            seed = tf.stack([settings.seed % 2**31, epoch * steps + number // count])
            rows = shuffled(positions_of(number % count, batch, size), size, seed)
            with tf.GradientTape() as tape:
                total, weight = model.batch_loss(rows, tf.gather(features, rows))
                loss = tf.math.divide_no_nan(total, weight)
                penalised = loss + model.penalty()
            take_step(self.optimizer, gradients(tape, penalised, variables), variables)
            return number + 1, mean + loss / steps

        return repeated(steps, step, 0.0)
