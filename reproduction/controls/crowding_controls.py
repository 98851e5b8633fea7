"""Controls of CrowdInG's gain, and measures of its discriminator on cells of no turn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Fields, Floats32, Indices, Tensor
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.networks import fold, label_cooccurrence, pair_noise, with_loops
from neucrowd_tf.methods.crowding.objectives import authentic_loss
from neucrowd_tf.methods.crowding.records import Logged, Pairs, Purpose
from neucrowd_tf.methods.crowding.turns import (
    authenticity_auc,
    batches_in,
    codes,
    compiled,
    inputs_spec,
    passes_over,
    positions_of,
    rows_of,
    seeds,
    shuffled,
    shuffles,
)
from neucrowd_tf.nn.steps import gradients, take_step


class ShuffledRewards(Game):
    """The losses of a turn's drawn labels are shuffled among them."""

    def log_annotations(
        self, epoch: Tensor, instances: Tensor, latent: Tensor, purposes: tuple[Purpose, Purpose]
    ) -> tuple[Logged, Tensor]:
        """Returns drawn annotations, each with the losses of another one."""
        logged, seed = super().log_annotations(epoch, instances, latent, purposes)
        size = tf.size(logged.labels)
        order = shuffled(tf.range(size), size, fold(seed, 1 << 20))

        def mixed(losses: Tensor) -> Tensor:
            return tf.reshape(tf.gather(tf.reshape(losses, [-1]), order), tf.shape(losses))

        losses = {"authenticity": mixed(logged.authenticity), "delta": mixed(logged.delta)}
        return logged._replace(**losses), seed


class NoNegatives(Game):
    """The discriminator's loss leaves generated annotations out."""

    def annotation_losses(self, logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
        """Returns the loss of each annotation, 0 for generated ones."""
        return tf.where(authentic, super().annotation_losses(logits, labels, authentic), 0.0)


class RandomNegatives(Game):
    """The discriminative module learns from uniform labels instead of generated ones."""

    def select_pairs(self, epoch: Tensor, latent: Tensor) -> tuple[Pairs, Tensor]:
        """Returns authentic annotations, the selected cells with random labels, and the entropy."""
        pairs, mean_entropy = super().select_pairs(epoch, latent)
        seed = self.crowd.draw(epoch, Purpose.NOISE)
        classes = latent.shape[1]
        random = tf.random.stateless_uniform(
            tf.shape(pairs.labels), seed, maxval=classes, dtype=tf.int32
        )
        return pairs._replace(labels=tf.where(pairs.authentic, pairs.labels, random)), mean_entropy


class AuthenticClassifier(Game):
    """The classifier learns from authentic annotations through the generator, in as many steps."""

    def generative_turn(
        self, players: tuple[str, ...], epoch: Tensor, instances: Tensor, *others: Any
    ) -> Fields:
        """Takes a turn; the classifier's has all authentic annotations of the instances."""
        if players != ("classifier",):
            return super().generative_turn(players, epoch, instances, *others)
        crowd = self.crowd
        seed = self.crowd.draw(epoch, Purpose.CLASSIFIER)
        among = np.flatnonzero(np.isin(crowd.instances, instances))
        columns = (crowd.instances, crowd.annotators, crowd.labels)
        authentic = tuple(tf.gather(column, among) for column in columns)
        count = self._batches(instances)
        return {"classifier_loss": self.authentic_passes(crowd.inputs, authentic, seed, count)}

    @compiled(inputs_spec, (codes, codes, codes), seeds, tf.TensorSpec([], tf.int32))
    def authentic_passes(
        self, inputs: Tensor, authentic: Tensor, seed: Tensor, count: Tensor
    ) -> Tensor:
        """Updates the classifier on the likelihood of authentic annotations.

        It returns the mean of the batches' losses in the last pass.
        """
        features, identities = inputs
        variables = self.classifier.trainable_variables
        size = tf.size(authentic[0])
        orders = shuffles(size, seed, tf.constant(self.hparams.passes))

        def update(turn: Tensor, index: Tensor) -> Tensor:
            positions = positions_of(index, batches_in(size, count), size)
            chosen = tf.gather(orders[turn], positions)
            instances, annotators, labels = rows_of(authentic, chosen)
            number = turn * count + index
            noise = pair_noise(fold(seed, number), [tf.size(chosen), self.generator.noise_size])
            x = tf.gather(features, instances)
            hidden = self.generator.hidden_of_pairs(x, identities, noise, annotators)
            with tf.GradientTape() as tape:
                log_g = self.generator.log_probabilities(hidden, self.classify(x))
                loss = authentic_loss(log_g, labels)
            take_step(self.classifier_optimizer, gradients(tape, loss, variables), variables)
            return loss

        total = passes_over(self.hparams.passes, count, update)
        return total / tf.cast(count, tf.float32)


class Frequency(Game):
    """The label graph has shares of all pairs of labels of one instance, as the paper words it."""

    def label_graph(self, annotations: Annotations) -> Floats32:
        """Returns the matrix of the discriminator's graph convolution, `[C, C]`."""
        labels = annotations.observed().vote_counts().sum(axis=1).astype(np.float64)
        pairs = float((labels * (labels - 1.0)).sum())
        return with_loops(label_cooccurrence(annotations) / max(1.0, pairs))


class HeldOut(Game):
    """Logs how the discriminator judges cells that no turn trains on, and repeated negatives.

    The cells are those of withheld annotations, and as many empty ones of the same annotators.

    Attributes:
        withheld: withheld annotations, which the fit does not see.
    """

    withheld: Annotations
    _negatives: Indices | None = None

    def withhold(self, annotations: Annotations, seed: int) -> None:
        """Reserves the cells of withheld annotations and of as many empty ones."""
        rng = np.random.default_rng(seed)
        observed = self.crowd.observed.copy()
        self.withheld = annotations
        self._negatives = None
        observed[annotations.instances, annotations.annotators] = True
        self.reserved = np.empty(len(annotations.labels), np.int32)
        for index, annotator in enumerate(annotations.annotators):
            self.reserved[index] = instance = rng.choice(np.flatnonzero(~observed[:, annotator]))
            observed[instance, annotator] = True
        self.crowd = dataclasses.replace(self.crowd, observed=observed)

    def select_pairs(self, epoch: Tensor, latent: Tensor) -> tuple[Pairs, Tensor]:
        """Returns what the discriminative module learns from, and remembers the negatives."""
        pairs, mean_entropy = super().select_pairs(epoch, latent)
        cells = np.stack([pairs.instances, pairs.annotators])[:, ~np.asarray(pairs.authentic)]
        negatives = np.ravel_multi_index(cells, self.crowd.observed.shape)
        before = self._negatives
        self._negatives = negatives
        if before is None:
            self.repeated = np.nan
        else:
            self.repeated = float(np.isin(negatives, before).mean())
        return pairs, mean_entropy

    def discriminator_turn(self, epoch: Tensor, latent: Tensor, passes: int) -> Fields:
        """Trains the discriminative module; in the game it also logs the measures."""
        logs = super().discriminator_turn(epoch, latent, passes)
        if self.stage != "game":
            return logs
        seed = self.crowd.draw(epoch, Purpose.SURVEY)
        everyone = tf.range(len(latent))
        drawn = np.asarray(self.draw(self.crowd.inputs, everyone, latent, seed).labels)
        instances = self.withheld.instances
        annotators = self.withheld.annotators

        def scores(instances: Tensor, labels: Tensor) -> Floats32:
            columns = [tf.constant(column, tf.int32) for column in (instances, annotators, labels)]
            authentic = tf.ones(len(annotators), tf.bool)
            latents = tf.gather(latent, instances)
            pairs = Pairs(columns[0], columns[1], columns[2], authentic, latents)
            return np.asarray(self.scores(self.crowd.inputs, pairs))

        authentic = scores(instances, self.withheld.labels)
        same_cell = scores(instances, drawn[instances, annotators])
        empty_cell = scores(self.reserved, drawn[self.reserved, annotators])
        sides = np.arange(2 * len(authentic)) < len(authentic)
        logs["held_out_auc"] = authenticity_auc(sides, np.concatenate([authentic, empty_cell]))
        logs["cell_auc"] = float(np.mean((np.sign(authentic - same_cell) + 1) / 2))
        logs["repeated_negatives"] = self.repeated
        return logs


def split_annotations(
    annotations: Annotations, share: float, seed: int
) -> tuple[Annotations, Annotations]:
    """Returns annotations without a share of them, and these; each instance keeps one at least.

    Args:
        annotations: of any crowd.
        share: of the annotations, no more than one of an instance.
        seed: draws them.
    """
    order = np.random.default_rng(seed).permutation(len(annotations.labels))
    several = order[np.bincount(annotations.instances)[annotations.instances[order]] > 1]
    _, first = np.unique(annotations.instances[several], return_index=True)
    chosen = several[np.sort(first)][: round(share * len(order))]
    withheld = np.zeros(len(order), bool)
    withheld[chosen] = True
    return annotations.select(~withheld), annotations.select(withheld)
