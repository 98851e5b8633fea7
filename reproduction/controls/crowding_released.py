"""Games of CrowdInG as in the paper and in its authors' code: mixins that each change one point.

The facts are those of the folder `gan/` of HCDM/NeuralCrowds, commit 6d61dfd;
docs/papers/crowding.md compares them with the paper and with ours.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Estimator, Fields, Floats32, Network, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import at_labels
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowding.game import PRETRAINING, Game
from neucrowd_tf.methods.crowding.networks import (
    Auxiliary,
    Discriminator,
    Generator,
    dense,
    label_cooccurrence,
)
from neucrowd_tf.methods.crowding.objectives import (
    entropy,
    latent_log_likelihood,
    printed_discriminator_losses,
    selection_counts,
)
from neucrowd_tf.methods.crowding.records import Crowd, Logged, Pairs, Purpose
from neucrowd_tf.methods.crowding.turns import PURPOSES
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import reset_optimizer

GENERATED_WEIGHT = 0.9  # of generated annotations in the loss of the discriminative module
REWARD_SHIFT = 1e-3  # in log((D + .001) / 1.001)
DECAY = 1e-2  # PyTorch's weight decay of the discriminative module, l2 / 2 times the squares
PRETRAIN_RATE = 1e-4  # of the discriminative module before the game
DROPOUT = 0.5
LEAST_PROBABILITY = 1e-4  # of those that the entropy is of: for 8 classes H is at least .0066
_EPSILON = 1e-5  # of PyTorch's batch normalisation


def _weights(authentic: Tensor) -> Tensor:
    """Returns .5 for authentic and .45 for generated annotations, twice as many of both."""
    return tf.where(authentic, 1.0, GENERATED_WEIGHT)


# ----------------------------------------------------------------- the discriminative module


class PrintedLoss(Game):
    """The discriminator's loss is eq. 4 as in the paper."""

    def annotation_losses(self, logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
        """Returns the printed loss of each annotation."""
        return printed_discriminator_losses(logits, labels, authentic)


class ReleasedLoss(Game):
    """Both sides have the binary cross-entropy of the given entry, the generated one times .9."""

    def annotation_losses(self, logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
        """Returns the loss of each annotation."""
        return _weights(authentic) * printed_discriminator_losses(logits, labels, authentic)


class L1Outputs(Game):
    """The discriminator's outputs have an L1 penalty."""

    def penalty(self, logits: Tensor, authentic: Tensor) -> Tensor:
        """Returns the weighted mean of D over all entries."""
        return tf.reduce_mean(_weights(authentic) * tf.reduce_mean(tf.sigmoid(logits), axis=1))


class WeightDecay(Game):
    """The discriminative module has a weight decay in the game, and a lower rate before it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._decay = tf.Variable(0.0, trainable=False)

    def begin(self, stage: str) -> None:
        """Begins a stage; there is no decay before the game."""
        super().begin(stage)
        self._decay.assign(DECAY if stage == "game" else 0.0)
        if stage == "discriminator":
            self.optimizer.learning_rate.assign(PRETRAIN_RATE)

    def weight_penalty(self) -> Tensor:
        """Returns half the decay times the sum of all squared weights."""
        squares = [tf.reduce_sum(tf.square(variable)) for variable in self.discriminative_variables]
        return self._decay / 2 * tf.add_n(squares)


class InformedByBoth(Game):
    """The auxiliary network is trained on authentic and on generated annotations."""

    def auxiliary_loss(self, unlikely: Tensor, authentic: Tensor) -> Tensor:
        """Returns the weighted mean over all annotations."""
        return tf.reduce_mean(_weights(authentic) * unlikely)


class EntropyFloor(Game):
    """The entropy of the generator's distributions has the released code's floor."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.generator.least_probability = LEAST_PROBABILITY


class SeparateNorm(Game):
    """The auxiliary network normalises authentic and generated pairs apart, as two batches."""

    def latent_answers(self, encoded: tuple[Tensor, Tensor, Tensor], batch: Pairs) -> Tensor:
        """Returns log Q of each annotation, `[P, C]`."""
        v, u, matrices = encoded
        positions = []
        answers = []
        for side in (batch.authentic, ~batch.authentic):
            rows = tf.where(side)[:, 0]
            pairs = tf.gather(batch.annotators, rows), tf.gather(batch.labels, rows)
            answers.append(self.auxiliary.some_pairs(tf.gather(v, rows), u, matrices, *pairs))
            positions.append(tf.cast(rows, tf.int32))
        return tf.dynamic_stitch(positions, answers)


class Unpretrained(Game):
    """The generator is not trained before the game."""

    def pretrain_generator(self, epoch: Tensor) -> Fields:
        """Trains nothing."""
        return {"loss": tf.constant(0.0)}


# ----------------------------------------------------------------- the generative module


class ReleasedReward(Game):
    """The reward is -log D; Q's term has a sum of importance-weighted losses of its own.

    Each sum has the same constant mu, so that eq. 5's is (1 + lambda) mu; taken off Q's term it
    need not be known elsewhere.
    """

    def reward(self, inputs: Tensor, latent: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Returns -log D, and it minus lambda (log Q + mu), both `[B, R]`."""
        encoded = self.discriminator.encode(*inputs)
        hparams = self.hparams
        d = tf.sigmoid(at_labels(self.discriminator.all_pairs(*encoded), labels))
        loss = -tf.math.log((d + REWARD_SHIFT) / (1.0 + REWARD_SHIFT))
        log_q = self.auxiliary.all_pairs(*encoded, labels)
        likelihood = latent_log_likelihood(latent[:, None, :], log_q)
        if isinstance(hparams.multiplier, str):
            constant = 0.0
        else:
            constant = float(hparams.multiplier)
        return loss, loss - hparams.information * (likelihood + constant)


class Uncapped(Game):
    """Importance ratios are as eqs. 5 and 6 have them."""

    ratio_cap = math.inf
    ratio_floor = float(np.finfo(np.float32).tiny)


class Nats(Game):
    """`threshold` is an entropy in nats, not a share of the instances."""

    def split(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the instances up to the threshold and the others, each at least one."""
        entropies = entropy(latent)
        order = tf.argsort(entropies, stable=True)
        size = tf.reduce_sum(tf.cast(entropies <= self.hparams.threshold, tf.int32))
        size = tf.clip_by_value(size, 1, tf.size(order) - 1)
        return order[:size], order[size:]


class SameDraws(Game):
    """Eqs. 5 and 6 have the same draws, of the module before the generator's turn."""

    def early_draws(
        self, epoch: Tensor, instances: Tensor, latent: Tensor
    ) -> tuple[Logged, Tensor] | None:
        """Returns the draws of the classifier's turn."""
        return self.log_annotations(epoch, instances, latent, PURPOSES["classifier",])


class Dropout(Game):
    """The classifier's dropout is on in the game, for z-hat too."""

    def classify(self, features: Tensor) -> Tensor:
        """Returns z-hat of `[B, d]` features with dropout, `[B, C]`."""
        shaped = tf.reshape(features, [-1, *self.feature_shape])
        return tf.cast(self.classifier(shaped, training=True), tf.float32)


class Batches(Game):
    """All networks have their turns in each batch of `batch_size` instances.

    Each update of discriminator and auxiliary network has all annotations of the batch.
    """

    pair_batch = 1 << 20

    def pretrain_discriminator(self, epoch: Tensor) -> Fields:
        """Trains discriminator and auxiliary network for a turn, against the generator as it is."""
        logs = self.discriminator_turn(
            epoch + PRETRAINING, self.classify_all(), passes=self.hparams.passes
        )
        return {"loss": logs["discriminator_loss"], **logs}

    def play_epoch(self, epoch: Tensor) -> Fields:
        """Plays an epoch; the logs are those of its last batch."""
        full_crowd = self.crowd
        counts = self.counts
        size = len(full_crowd.observed)
        batch = self.hparams.batch_size
        if size <= batch:
            return super().play_epoch(epoch)
        seed = np.asarray(full_crowd.draw(epoch, Purpose.ORDER))
        order = np.random.default_rng(seed).permutation(size)
        batches = np.array_split(order, -(-size // batch))
        for index, rows in enumerate(batches):
            self.crowd = part_of(full_crowd, rows)
            self.counts = selection_counts(self.crowd.observed)
            logs = super().play_epoch(epoch * len(batches) + index)
        self.crowd = full_crowd
        self.counts = counts
        return logs


def part_of(crowd: Crowd, rows: Tensor) -> Crowd:
    """Returns the instances of these rows `[n]` with their annotations."""
    new_rows = np.full(len(crowd.observed), -1, np.int32)
    new_rows[rows] = np.arange(len(rows))
    instances = new_rows[crowd.instances.numpy()]
    inside = np.flatnonzero(instances >= 0)
    return dataclasses.replace(
        crowd,
        features=tf.gather(crowd.features, rows),
        instances=tf.constant(instances[inside]),
        annotators=tf.gather(crowd.annotators, inside),
        labels=tf.gather(crowd.labels, inside),
        observed=crowd.observed[rows],
    )


# ----------------------------------------------------------------- networks


def _normalisation(units: int) -> keras.layers.BatchNormalization:
    layer = keras.layers.BatchNormalization(
        momentum=0.9, epsilon=_EPSILON, center=False, scale=False, dtype="float32"
    )
    layer.build((None, units))
    return layer


def standardised(values: Tensor) -> Tensor:
    """Returns values of mean 0 and variance 1 in each of the last axis' columns."""
    axes = list(range(len(values.shape) - 1))
    mean, variance = tf.nn.moments(values, axes=axes)
    return (values - mean) * tf.math.rsqrt(variance + _EPSILON)


class ReleasedGenerator(Generator):
    """Generator of the released code: instance 64-ReLU-dropout-norm-20, norm, 128 hidden units.

    The second normalisation is over all pairs of the batch's instances and all annotators, so that
    it is one over instances and one over annotators. Noise has the length C. Dropout and the
    batch's own moments are used in the game alone.
    """

    middle = 64
    embedding = 20
    hidden_width = 128

    def __init__(
        self, feature_size: int, annotator_size: int, num_classes: int, **options: Any
    ) -> None:
        options |= {"embedding_size": self.embedding, "hidden_units": self.hidden_width}
        super().__init__(
            self.middle, annotator_size, num_classes, **{**options, "noise_size": num_classes}
        )
        self.playing = False
        self.first = dense(feature_size, self.middle)
        self.drop = keras.layers.Dropout(DROPOUT, dtype="float32")
        self.middle_norm = _normalisation(self.middle)
        self.instance_norm = _normalisation(self.embedding)
        self.annotator_norm = _normalisation(self.embedding)

    def instance_part(self, features: Tensor) -> Tensor:
        """Returns the instances' part of the hidden layer, `[B, d] -> [B, h]`."""
        if not self.use_instances:
            return super().instance_part(features)
        training = self.playing
        middle = self.drop(tf.nn.relu(self.first(features)), training=training)
        embedded = self.instance_embedding(self.middle_norm(middle, training=training))
        return self.from_instance(self.instance_norm(embedded, training=training))

    def annotator_part(self, annotators: Tensor) -> Tensor:
        """Returns the annotators' part of the hidden layer, `[R, e] -> [R, h]`."""
        embedded = self.annotator_norm(self.annotator_embedding(annotators), training=self.playing)
        hidden = self.from_annotator(embedded)
        if self.use_annotators:
            return hidden
        return tf.zeros_like(hidden)


class ReleasedDiscriminator(Discriminator):
    """Discriminator of the released code: v by two layers, dropout of u and v for each pair.

    The class matrices start uniform in (0, 1); the graph adds its row-normalised mean to them.
    """

    middle = 128

    def __init__(
        self, feature_size: int, annotator_size: int, num_classes: int, **options: Any
    ) -> None:
        super().__init__(self.middle, annotator_size, num_classes, **options)
        self.first = dense(feature_size, self.middle)
        self.drop = keras.layers.Dropout(DROPOUT, dtype="float32")
        self.matrices_initializer = keras.initializers.RandomUniform(0.0, 1.0)

    def class_matrices(self) -> Tensor:
        """Returns S M + M, or M without label correlation, `[C, k, k]`."""
        matrices = tf.convert_to_tensor(self.matrices)
        if not self.aggregate_labels:
            return matrices
        return matrices + tf.einsum("cd,dkl->ckl", tf.convert_to_tensor(self.correlation), matrices)

    def encode(self, features: Tensor, annotators: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns v `[B, k]`, u `[R, k]` and the class matrices `[C, k, k]`."""
        return super().encode(tf.nn.relu(self.first(features)), annotators)

    def _scores(self, v: Tensor, u: Tensor, matrices: Tensor) -> Tensor:
        u = self.drop(u, training=True)
        v = self.drop(v, training=True)
        k = self.embedding_size
        classes = self.num_classes
        maps = tf.matmul(u, tf.reshape(tf.transpose(matrices, [1, 0, 2]), [k, classes * k]))
        return tf.einsum("pcl,pl->pc", tf.reshape(maps, [-1, classes, k]), v)

    def all_pairs(self, v: Tensor, u: Tensor, matrices: Tensor) -> Tensor:
        """Returns the logits of D of every label of every pair, `[B, R, C]`."""
        instances = tf.shape(v)[0]
        annotators = tf.shape(u)[0]
        k = self.embedding_size
        v = tf.reshape(tf.repeat(v, annotators, axis=0), [-1, k])
        u = tf.reshape(tf.tile(u, [instances, 1]), [-1, k])
        shape = [instances, annotators, self.num_classes]
        return tf.reshape(self._scores(v, u, matrices), shape)

    def some_pairs(self, v: Tensor, u: Tensor, matrices: Tensor, codes: Tensor) -> Tensor:
        """Returns the logits of D of every label of chosen pairs, `[P, C]`."""
        return self._scores(v, tf.gather(u, codes), matrices)


class ReleasedAuxiliary(Auxiliary):
    """Auxiliary network of the released code: its inputs have mean 0 and variance 1 over pairs."""

    def _embedded(self, matrices: Tensor, labels: Tensor) -> Tensor:
        flat = tf.nn.relu(tf.reshape(matrices, [-1, self.embedding_size**2]))
        embedded = tf.gather(self.label_embedding(flat), labels)
        rows = tf.reshape(standardised(embedded), [-1, embedded.shape[-1]])
        hidden = self.from_label(rows)
        return tf.reshape(hidden, tf.concat([tf.shape(labels), [hidden.shape[-1]]], axis=0))

    def _answers(self, hidden: Tensor) -> Tensor:
        return tf.nn.log_softmax(self.scores(tf.nn.relu(hidden)))

    def all_pairs(self, v: Tensor, u: Tensor, matrices: Tensor, labels: Tensor) -> Tensor:
        """Returns log Q(z | x, e, y) of all pairs, `[B, R, C]`."""
        instance = self.from_instance(standardised(v))[:, None, :]
        annotator = self.from_annotator(standardised(u))[None]
        return self._answers(instance + annotator + self._embedded(matrices, labels))

    def some_pairs(
        self, v: Tensor, u: Tensor, matrices: Tensor, codes: Tensor, labels: Tensor
    ) -> Tensor:
        """Returns log Q(z | x, e, y) of chosen pairs, `[P, C]`."""
        annotator = self.from_annotator(standardised(tf.gather(u, codes)))
        instance = self.from_instance(standardised(v))
        return self._answers(instance + annotator + self._embedded(matrices, labels))


class ReleasedNetworks(Game):
    """Generator, discriminator and auxiliary network of the released code."""

    generator_class = ReleasedGenerator
    discriminator_class = ReleasedDiscriminator
    auxiliary_class = ReleasedAuxiliary

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.generator.playing = True
        self.precompute = False  # a pass has dropout of its own

    def label_graph(self, annotations: Annotations) -> Floats32:
        """Returns the row-normalised co-occurrence with loops."""
        counts = label_cooccurrence(annotations)
        graph = counts / max(counts.sum(axis=1).max(), 1.0) + np.eye(len(counts))
        return (graph / graph.sum(axis=1, keepdims=True)).astype(np.float32)


class ReleasedStart(CrowdLayer):
    """DL-CL of the released code: Adam starts anew in each epoch, validation picks the epoch.

    An epoch of the authors' is ten passes here: their 10,000 images are ten copies of each.

    Attributes:
        judged: features and labels that pick the epoch, or None.
    """

    passes = 10
    judged: Tensor = None

    def fit(  # type: ignore[override]
        self, features: ArrayLike, annotations: Annotations, *, run: Run
    ) -> ReleasedStart:
        """Trains the network."""
        return super().fit(features, annotations, validation=self.judged, run=run)

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        def restart_optimizer(epoch: int) -> None:
            if epoch % self.passes == 0:
                reset_optimizer(network.model.optimizer)

        return self._train_phase(network, network.model, self.epochs, data, run, restart_optimizer)


def released_start(crowding: Estimator, judged: Tensor) -> ReleasedStart:
    """Returns the untrained DL-CL of a `CrowdInG`; `judged` picks its epoch."""
    classifier = ReleasedStart(
        crowding.base,
        standardise=crowding.standardise,
        initial=2.0,
        epochs=40 * ReleasedStart.passes,
        batch_size=1024,
        learning_rate=1e-2,
        monitor=None if judged is None else "accuracy",
        restarts=0,
        seed=crowding.seed,
    )
    classifier.judged = judged
    return classifier
