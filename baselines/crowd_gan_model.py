"""The game of DL-CL+GAN as a Keras model: a step is an epoch."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import cross_entropies
from neucrowd_tf.methods.crowding.networks import Discriminator, draw_labels, fold
from neucrowd_tf.methods.crowding.objectives import (
    discriminator_losses,
    output_penalty,
    select_annotations,
    selection_counts,
)
from neucrowd_tf.methods.crowding.records import Crowd
from neucrowd_tf.methods.crowding.turns import (
    batches_in,
    gathered,
    passes_over,
    positions_of,
    rows_of,
    shuffles,
)
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.estimator import TrainingData

_BATCH_ROWS = 100
_BATCH_PAIRS = 512  # of the discriminator
_EMBEDDING = 32  # of the discriminator
_DISCRIMINATOR_RATE = 1e-3
_SURVEY, _SELECT, _PAIRS, _ROWS, _POLICY = range(5)


def policy_loss(logits: Tensor, labels: Tensor, rewards: Tensor) -> Tensor:
    """Returns the loss whose gradient is REINFORCE's.

    It is minus the mean of (reward - mean reward) log p(label).

    Args:
        logits: `[B, R, C]`.
        labels: `[B, R]` drawn labels.
        rewards: `[B, R]` what each label earned.

    References:
        Wang et al. (2017), IRGAN, eq. 5.
    """
    advantage = tf.stop_gradient(rewards - tf.reduce_mean(rewards))
    return tf.reduce_mean(advantage * cross_entropies(labels, logits))


class CrowdGANModel(keras.Model):
    """A discriminator of annotations and a crowd-layer classifier that generates them.

    The classifier is rewarded if its draws look authentic to the discriminator.

    Args:
        classifier: the `model_` of a trained `CrowdLayer`; its classifier is always in inference
            mode.
        data: what it was trained on.
        passes: of the turns.
        learning_rate: Adam's for the classifier.
        seed: draws weights and labels.

    Attributes:
        base: standardised features to class probabilities.
        head: class probabilities to annotators' logits.
        discriminator: CrowdInG's, without label correlation.
        crowd: the data.
    """

    def __init__(
        self,
        classifier: keras.Model,
        data: TrainingData,
        *,
        passes: int,
        learning_rate: float,
        seed: int,
    ) -> None:
        super().__init__()
        annotations = data.annotations
        features = np.asarray(classifier.get_layer("standardise")(data.features))
        crowd = Crowd.of(features, annotations, seed)
        self.discriminator = Discriminator(
            int(crowd.features.shape[1]),
            annotations.num_annotators,
            annotations.num_classes,
            embedding_size=_EMBEDDING,
            aggregate_labels=False,
            seed=seed,
        )
        self.base = classifier.get_layer("base")
        self.head = classifier.get_layer("crowd_layer")
        self.crowd = crowd
        self.counts = selection_counts(crowd.observed)
        self.passes = passes
        self.feature_shape = features.shape[1:]
        self.built = True
        self.generator_optimizer = FusedAdam(learning_rate)
        self.generator_optimizer.build(
            [*self.base.trainable_variables, *self.head.trainable_variables]
        )
        optimizer = FusedAdam(_DISCRIMINATOR_RATE)
        optimizer.build(self.discriminator.trainable_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, jit_compile=False, auto_scale_loss=False
        )

    def logits(self, rows: Tensor) -> Tensor:
        """Returns annotators' logits `[B, R, C]` of some instances."""
        features = tf.reshape(tf.gather(self.crowd.features, rows), [-1, *self.feature_shape])
        return tf.cast(self.head(self.base(features, training=False)), tf.float32)

    def orders(self, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns an epoch, and the orders of annotations and of instances in each of its passes.

        They are drawn on the host, because only CPUs have a kernel for them.
        """
        epoch = tf.cast(step, tf.int32)
        crowd = self.crowd
        total = len(crowd.instances) + int(self.counts.sum())
        sizes = ((total, _PAIRS), (len(crowd.features), _ROWS))
        passes = tf.constant(self.passes)
        drawn = (shuffles(tf.constant(n), crowd.draw(epoch, use), passes) for n, use in sizes)
        return epoch, *drawn

    def train_step(self, data: tuple[Tensor, Tensor, Tensor]) -> dict[str, Tensor]:
        epoch, of_pairs, of_rows = data
        loss = self.discriminator_turn(epoch, of_pairs)
        return {"loss": loss, "reward": self.generator_turn(epoch, of_rows)}

    def discriminator_turn(self, epoch: Tensor, orders: Tensor) -> Tensor:
        """Trains the discriminator on authentic and generated annotations; returns the mean loss.

        As many generated annotations of each annotator are drawn at random.

        Args:
            epoch: its number.
            orders: `[passes, P]` of all these annotations.
        """
        crowd = self.crowd
        size = len(crowd.features)

        def compute(index: Tensor) -> Tensor:
            rows = positions_of(index, _BATCH_ROWS, size)
            return draw_labels(self.logits(rows), fold(crowd.draw(epoch, _SURVEY), index))

        spec = tf.TensorSpec([None, None], tf.int32)
        drawn = gathered(batches_in(size, _BATCH_ROWS), spec, compute)
        seed = crowd.draw(epoch, _SELECT)
        rows, codes = select_annotations(
            tf.ones_like(drawn, tf.float32), crowd.observed, self.counts, seed, by_entropy=False
        )
        pairs = crowd.with_generated(rows, codes, drawn)
        total = tf.size(pairs[0])
        variables = self.discriminator.trainable_variables

        def step(turn: Tensor, index: Tensor) -> Tensor:
            positions = positions_of(index, _BATCH_PAIRS, total)
            rows, codes, labels, real = rows_of(pairs, tf.gather(orders[turn], positions))
            with tf.GradientTape() as tape:
                encoded = self.discriminator.encode_rows(*crowd.inputs, rows)
                logits = self.discriminator.some_pairs(*encoded, codes)
                losses = discriminator_losses(logits, labels, real)
                loss = tf.reduce_mean(losses) + output_penalty(logits)
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return tf.reduce_sum(losses)

        count = batches_in(total, _BATCH_PAIRS)
        return passes_over(self.passes, count, step) / tf.cast(total, tf.float32)

    def generator_turn(self, epoch: Tensor, orders: Tensor) -> Tensor:
        """Makes policy-gradient steps on all pairs; returns the mean reward of the last pass.

        Args:
            epoch: its number.
            orders: `[passes, N]` of the instances.
        """
        crowd = self.crowd
        size = len(crowd.features)
        variables = [*self.base.trainable_variables, *self.head.trainable_variables]

        def step(turn: Tensor, index: Tensor) -> Tensor:
            rows = tf.gather(orders[turn], positions_of(index, _BATCH_ROWS, size))
            seed = fold(fold(crowd.draw(epoch, _POLICY), turn), index)
            with tf.GradientTape() as tape:
                logits = self.logits(rows)
                labels = draw_labels(logits, seed)
                features = tf.gather(crowd.features, rows)
                encoded = self.discriminator.encode(features, crowd.identities)
                scores = self.discriminator.all_pairs(*encoded)
                # IRGAN replaces log(1 - D) by this reward for steadier gradients.
                rewards = tf.nn.softplus(tf.gather(scores, labels, axis=2, batch_dims=2))
                loss = policy_loss(logits, labels, rewards)
            take_step(self.generator_optimizer, gradients(tape, loss, variables), variables)
            return tf.reduce_sum(rewards)

        total = passes_over(self.passes, batches_in(size, _BATCH_ROWS), step)
        return total / tf.size(crowd.observed, tf.float32)
