"""CrowdInG's game: its networks, its stages before the game, and an epoch of turns.

`Game.play_epoch` is section 3.3 of the paper: the discriminative module learns from authentic and
selected generated annotations, the generator by eq. 5 on the instances of which the classifier is
sure, the classifier by eq. 6 on the others. The turns are in `turns.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Fields, Floats32, Tensor
from neucrowd_tf.methods.crowding.networks import (
    Auxiliary,
    Discriminator,
    Generator,
    fold,
    label_cooccurrence,
    label_correlation,
    pair_noise,
)
from neucrowd_tf.methods.crowding.objectives import (
    authentic_loss,
    entropy,
    latent_log_likelihood,
    selection_counts,
    split_by_entropy,
)
from neucrowd_tf.methods.crowding.records import Crowd, Logged, Purpose
from neucrowd_tf.methods.crowding.turns import (
    Turns,
    batches_in,
    codes,
    compiled,
    inputs_spec,
    matrix,
    passes_over,
    positions_of,
    rows_of,
    seeds,
    shuffled,
)
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.state import (
    read_variables,
    reinitialise,
    reset_optimizer,
    write_variables,
)

INFORMED = 0x1F  # the number of the draws of `informed`
PRETRAINING = 1 << 20  # epochs before the game draw from numbers that the game never reaches


class Game(Turns):
    """CrowdInG's networks and their turns, an epoch of which is `play`.

    Everything drawn in an epoch is a function of (seed, epoch). A subclass changes the networks
    (`generator_class`, `discriminator_class`, `auxiliary_class`), the discriminator's loss
    (`annotation_losses`, `penalty`, `weight_penalty`), the auxiliary network's
    (`auxiliary_loss`), the labels' graph (`label_graph`), the reward (`reward`), the split of the
    instances (`split`) or the schedule of turns (`play_epoch`, `early_draws`).

    Args:
        hparams: a `CrowdInG`, whose arguments are read.
        base: the classifier; the game trains a copy.
        averaged: another copy, whose weights follow the classifier's as a running average.
        feature_shape: of an instance.
        annotator_size: e.
        precompute: whether a turn computes what is the same in all passes once and stores it.

    References:
        CrowdInG, eq. 4 and section 3.3.
    """

    generator_class: ClassVar[type[Generator]] = Generator
    discriminator_class: ClassVar[type[Discriminator]] = Discriminator
    auxiliary_class: ClassVar[type[Auxiliary]] = Auxiliary
    hidden_units: ClassVar[tuple[int, int]] = (64, 128)  # of g and h (a reading of section 4.1)
    pretrain_batch: ClassVar[int] = 64  # annotations in a batch of the generator's pre-training
    pretrain_rate: ClassVar[float] = 1e-3  # of the generator before the game

    def __init__(
        self,
        hparams: Any,
        base: keras.Model,
        averaged: keras.Model,
        feature_shape: tuple[int, ...],
        annotator_size: int,
        *,
        precompute: bool = True,
    ) -> None:
        super().__init__()
        self.hparams = hparams
        self.stage = "game"
        self.precompute = precompute
        self.feature_shape = feature_shape
        sizes = (math.prod(feature_shape), annotator_size, base.output_shape[-1])
        width = hparams.embedding_size
        self.generator = self.make_generator(hparams, *sizes)
        self.classifier = keras.models.clone_model(base)
        self.auxiliary = self.auxiliary_class(
            sizes[-1], hidden_units=self.hidden_units[1], embedding_size=width
        )
        self.discriminator = self.discriminator_class(
            *sizes, embedding_size=width, aggregate_labels=hparams.label_correlation
        )
        self.averaged = averaged
        self.optimizer = FusedAdam()  # of discriminator and auxiliary network
        self.generator_optimizer = FusedAdam()
        self.classifier_optimizer = FusedAdam()
        self.generator_optimizer.build(self.generator.trainable_variables)
        self.classifier_optimizer.build(self.classifier.trainable_variables)
        self.optimizer.build(self.discriminative_variables)

    @property
    def networks(self) -> Sequence[keras.Model]:
        """All networks, in the order in which a seed draws their weights."""
        players = (self.generator, self.classifier, self.auxiliary, self.discriminator)
        return (*players, self.averaged)

    @classmethod
    def make_generator(
        cls, hparams: Any, feature_size: int, annotator_size: int, num_classes: int
    ) -> Generator:
        """Returns an untrained generator.

        Args:
            hparams: a `CrowdInG`, whose arguments are read.
            feature_size, annotator_size, num_classes: d, e and C.
        """
        return cls.generator_class(
            feature_size,
            annotator_size,
            num_classes,
            embedding_size=hparams.embedding_size,
            hidden_units=cls.hidden_units[0],
            noise_size=hparams.noise_size,
            use_instances=hparams.instance_features,
            use_annotators=hparams.annotator_identities,
        )

    # ----------------------------------------------------------------- a fit

    def restart(
        self, hparams: Any, classifier: keras.Model, features: Floats32, annotations: Annotations
    ) -> None:
        """Takes a fit's data and the pre-trained classifier; the other networks get fresh weights.

        Args:
            hparams: the `CrowdInG` that is fitted.
            classifier: DL-CL's, of the same layers as `base`.
            features: `[N, ...]` standardised.
            annotations: of N instances.
        """
        self.hparams = hparams
        reinitialise(self, hparams.seed)
        for model in (self.classifier, self.averaged):
            write_variables(model.variables, read_variables(classifier.variables))
        if self.discriminator.aggregate_labels:
            self.discriminator.correlation.assign(self.label_graph(annotations))
        self.crowd = Crowd.of(features, annotations, hparams.seed)
        self.counts = selection_counts(self.crowd.observed)

    def begin(self, stage: str) -> None:
        """Begins a stage, "generator", "discriminator" or "game", with fresh optimizers."""
        self.stage = stage
        hparams = self.hparams
        generator_rate = hparams.generator_learning_rate
        if stage == "generator":
            generator_rate = self.pretrain_rate
        for optimizer, rate in (
            (self.optimizer, hparams.discriminator_learning_rate),
            (self.generator_optimizer, generator_rate),
            (self.classifier_optimizer, hparams.classifier_learning_rate),
        ):
            reset_optimizer(optimizer)
            optimizer.learning_rate.assign(rate)

    def label_graph(self, annotations: Annotations) -> Floats32:
        """Returns the matrix of the discriminator's graph convolution, `[C, C]`."""
        return label_correlation(label_cooccurrence(annotations))

    def play(self, epoch: int) -> dict[str, Tensor]:
        """Runs an epoch of the present stage, by its number, and returns its figures.

        Each turn is compiled by itself; TensorFlow would optimise a shared part once per turn.
        """
        run_epoch = getattr(self, f"pretrain_{self.stage}", self.play_epoch)
        return run_epoch(tf.constant(epoch, tf.int32))

    # ----------------------------------------------------------------- before the game

    def pretrain_generator(self, epoch: Tensor) -> Fields:
        """Trains the generator on all authentic annotations; the classifier stays as it is.

        References:
            CrowdInG, section 3.3.3.
        """
        crowd = self.crowd
        epoch = epoch + PRETRAINING
        size = tf.size(crowd.instances)
        order = shuffled(tf.range(size), size, crowd.draw(epoch, Purpose.ORDER))
        seed = crowd.draw(epoch, Purpose.NOISE)
        latent = self.classify_all()
        return {"loss": self._pretrained(crowd.inputs, crowd.authentic, latent, order, seed)}

    @compiled(inputs_spec, (codes, codes, codes), matrix, codes, seeds)
    def _pretrained(
        self, inputs: Tensor, authentic: Tensor, latent: Tensor, order: Tensor, seed: Tensor
    ) -> Tensor:
        """Updates the generator batch by batch; returns the mean loss of the pass."""
        generator = self.generator
        variables = generator.trainable_variables
        size = tf.size(order)

        def update(_: Tensor, index: Tensor) -> Tensor:
            positions = positions_of(index, self.pretrain_batch, size)
            instances, annotators, labels = rows_of(authentic, tf.gather(order, positions))
            noise = pair_noise(fold(seed, index), [tf.size(labels), generator.noise_size])
            x = tf.gather(inputs[0], instances)
            with tf.GradientTape() as tape:
                hidden = generator.hidden_of_pairs(x, inputs[1], noise, annotators)
                log_g = generator.log_probabilities(hidden, tf.gather(latent, instances))
                loss = authentic_loss(log_g, labels)
            take_step(self.generator_optimizer, gradients(tape, loss, variables), variables)
            return loss * tf.cast(tf.size(labels) / size, tf.float32)

        return passes_over(1, batches_in(size, self.pretrain_batch), update)

    def pretrain_discriminator(self, epoch: Tensor) -> Fields:
        """Trains discriminator and auxiliary network for a pass, against the generator as it is.

        References:
            CrowdInG, section 3.3.3.
        """
        logs = self.discriminator_turn(epoch + PRETRAINING, self.classify_all(), passes=1)
        return {"loss": logs["discriminator_loss"], **logs}

    # ----------------------------------------------------------------- an epoch of the game

    def play_epoch(self, epoch: Tensor) -> Fields:
        """Plays an epoch: a turn of each network.

        References:
            CrowdInG, section 3.3.3 (two-step update).
        """
        latent = self.classify_all()  # until the classifier's turn ends
        logs = self.discriminator_turn(epoch, latent, self.hparams.passes)
        if self.hparams.two_step:
            sure, unsure = self.split(latent)
            drawn = self.early_draws(epoch, unsure, latent)
            logs |= self.generative_turn(("generator",), epoch, sure, latent)
            logs |= self.generative_turn(("classifier",), epoch, unsure, latent, drawn)
        else:
            players = ("generator", "classifier")
            logs |= self.generative_turn(players, epoch, tf.range(len(latent)), latent)
        decay = self.hparams.averaging
        trained = self.classifier.trainable_variables
        for average, variable in zip(self.averaged.trainable_variables, trained, strict=True):
            average.assign(decay * average + (1.0 - decay) * variable)
        latent = self.classify_all()
        logs["classifier_entropy"] = tf.reduce_mean(entropy(latent))
        logs["predicted_class_entropy"] = entropy(tf.reduce_mean(latent, axis=0))
        return {"loss": logs["generator_loss"] + logs["discriminator_loss"], **logs}

    def early_draws(
        self, epoch: Tensor, instances: Tensor, latent: Tensor
    ) -> tuple[Logged, Tensor] | None:
        """Returns annotations for the classifier's turn, drawn before the generator's turn.

        None has the classifier's turn draw them.
        """
        return None

    def split(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the instances of the generator's turn and those of the classifier's."""
        return split_by_entropy(entropy(latent), self.hparams.threshold)

    # ----------------------------------------------------------------- after the game

    def _blocks(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yields blocks of instances: the first code, features `[B, d]` and z-hat `[B, C]`."""
        latent = self.classify_all()
        size = self.hparams.batch_size
        for start in range(0, len(latent), size):
            end = start + size
            yield start, self.crowd.features[start:end], latent[start:end]

    def informed(self) -> dict[str, float]:
        """Returns measures of the auxiliary network Q after the game, on labels that G draws.

        Returns:
            `information_loss`, the mean of -log Q(z-hat | y), and `auxiliary_accuracy`, how often
                Q's most probable class is the classifier's; both of all training pairs.

        References:
            CrowdInG, eq. 3.
        """
        identities = self.crowd.identities
        losses: list[Array] = []
        right: list[Array] = []
        for start, x, z in self._blocks():
            seed = fold([self.crowd.seed, INFORMED], start)
            labels = self.generator.draw(x, z, identities, seed).labels
            log_q = self.auxiliary.all_pairs(*self.discriminator.encode(x, identities), labels)
            losses.append(-latent_log_likelihood(z[:, None, :], log_q))
            right.append(np.argmax(log_q, axis=2) == np.argmax(z, axis=1)[:, None])
        return {
            "information_loss": float(np.concatenate(losses).mean()),
            "auxiliary_accuracy": float(np.concatenate(right).mean()),
        }

    def confusion_matrices(self) -> Floats32:
        """Returns the generator's mean answers by the classifier's classes, `[R, C, C]`.

        An entry (annotator, true class, observed class) is the mean of G at the noise's mean over
        the training instances, weighted by the classifier's probability of the true class.
        """
        identities = self.crowd.identities
        classes = self.discriminator.num_classes
        total = np.zeros((len(identities), classes, classes))
        for _, x, z in self._blocks():
            answers = np.asarray(self.generator.answers(x, z, identities), np.float64)
            total += np.einsum("nc,nrk->rck", np.asarray(z, np.float64), answers)
        return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)
