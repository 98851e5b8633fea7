"""The game of DL-CL+GAN as a Keras model: a step is an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.crowding.auxiliary import Auxiliary
from neucrowd_tf.crowding.crowd import (
    Crowd,
    batches_of,
    fold,
    gathered,
    gradients,
    observed_cells,
    passes_over,
    shuffled,
)
from neucrowd_tf.crowding.discriminative import (
    NUM_SUMS,
    DiscriminativeModule,
    discriminative_report,
)
from neucrowd_tf.crowding.discriminator import Discriminator
from neucrowd_tf.crowding.generator import draw_labels
from neucrowd_tf.crowding.selection import select_annotations, selection_counts

if TYPE_CHECKING:
    from baselines.crowd_gan import DLCLGAN
    from neucrowd_tf.crowd_layers import CrowdLayer
    from neucrowd_tf.training.estimator import TrainingData

_BATCH_ROWS = 100
_SURVEY, _SELECT, _PAIRS, _ROWS, _POLICY = range(5)


def policy_loss(logits: Any, labels: Any, rewards: Any) -> Any:
    """Returns the loss whose gradient is REINFORCE's: minus the mean of (reward - mean reward) log
    p(label).

    Args:
        logits: `[B, R, C]`.
        labels, rewards: `[B, R]` drawn labels and what each earned.

    References:
        Wang et al. (2017), IRGAN, eq. 5.
    """
    advantage = tf.stop_gradient(rewards - tf.reduce_mean(rewards))
    return tf.reduce_mean(
        advantage * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    )


class CrowdGANModel(keras.Model):
    """A discriminator of annotations, and a crowd-layer classifier that is rewarded where its draws
    are taken for authentic.

    Args:
        base: standardised features to class probabilities; always in inference mode.
        head: class probabilities to annotators' logits.
        discriminative: the discriminator; its auxiliary network is not used.
        crowd: the data.
        passes, batch_pairs: of the turns.
    """

    def __init__(
        self,
        base: Any,
        head: Any,
        discriminative: DiscriminativeModule,
        crowd: Crowd,
        *,
        passes: int,
        batch_pairs: int,
    ) -> None:
        super().__init__()
        self.base, self.head, self.discriminative, self.crowd = base, head, discriminative, crowd
        self.passes, self.batch_pairs = passes, batch_pairs
        self.built = True

    def compile_players(self, generator: float, discriminator: float) -> None:
        """Gives both players an Adam optimizer, and compiles the step."""
        self.generator_optimizer = keras.optimizers.Adam(generator)
        self.generator_optimizer.build(
            [*self.base.trainable_variables, *self.head.trainable_variables]
        )
        optimizer = keras.optimizers.Adam(discriminator)
        optimizer.build(self.discriminative.discriminator.trainable_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, jit_compile=False, auto_scale_loss=False
        )

    def logits(self, rows: Any) -> Any:
        """Returns annotators' logits `[B, R, C]` of some instances."""
        return tf.cast(
            self.head(self.base(tf.gather(self.crowd.features, rows), training=False)), tf.float32
        )

    def train_step(self, data: Any) -> dict[str, Any]:
        epoch = tf.cast(tf.reshape(data, []), tf.int32)
        logs = self.discriminator_turn(epoch)
        reward = self.generator_turn(epoch)
        return {"loss": logs["discriminator_loss"], **logs, "reward": reward}

    def discriminator_turn(self, epoch: Any) -> dict[str, Any]:
        """Trains the discriminator on authentic annotations and as many generated ones of each
        annotator, drawn at random.
        """
        crowd, size = self.crowd, self.crowd.num_instances

        def compute(index: Any) -> tuple[Any]:
            rows = tf.range(index * _BATCH_ROWS, tf.minimum((index + 1) * _BATCH_ROWS, size))
            return (draw_labels(self.logits(rows), fold(crowd.draw(epoch, _SURVEY), index)),)

        drawn = gathered(batches_of(size, _BATCH_ROWS), (tf.int32,), compute)[0]
        seed = crowd.draw(epoch, _SELECT)
        rows, codes = select_annotations(
            tf.ones_like(drawn, tf.float32), crowd.observed, crowd.counts, seed, by_entropy=False
        )
        generated = tf.gather_nd(drawn, tf.stack([rows, codes], axis=1))
        authentic = tf.concat(
            [tf.ones_like(crowd.labels, tf.bool), tf.zeros_like(generated, tf.bool)], axis=0
        )
        pairs = [
            tf.concat(both, axis=0)
            for both in ((crowd.instances, rows), (crowd.codes, codes), (crowd.labels, generated))
        ]
        total, variables = tf.size(authentic), self.discriminative.discriminator.trainable_variables

        def step(turn: Any, index: Any) -> Any:
            positions = tf.range(
                index * self.batch_pairs, tf.minimum((index + 1) * self.batch_pairs, total)
            )
            chosen = shuffled(positions, total, fold(crowd.draw(epoch, _PAIRS), turn))
            rows, codes, labels, real = (
                tf.gather(column, chosen) for column in (*pairs, authentic)
            )
            latent = tf.zeros([tf.size(chosen), self.discriminative.discriminator.num_classes])
            with tf.GradientTape() as tape:
                loss, sums = self.discriminative.loss(rows, codes, labels, real, latent)
            self.optimizer.apply(gradients(tape, loss, variables), variables)
            return sums

        sums = passes_over(self.passes, batches_of(total, self.batch_pairs), NUM_SUMS, step)
        report = discriminative_report(sums)
        return {name: report[name] for name in report if name != "auxiliary_loss"}

    def generator_turn(self, epoch: Any) -> Any:
        """Makes policy-gradient steps on all pairs, and returns the mean reward of the last
        pass."""
        crowd, size = self.crowd, self.crowd.num_instances
        variables = [*self.base.trainable_variables, *self.head.trainable_variables]

        def step(turn: Any, index: Any) -> Any:
            positions = tf.range(index * _BATCH_ROWS, tf.minimum((index + 1) * _BATCH_ROWS, size))
            rows = shuffled(positions, size, fold(crowd.draw(epoch, _ROWS), turn))
            seed = fold(fold(crowd.draw(epoch, _POLICY), turn), index)
            with tf.GradientTape() as tape:
                logits = self.logits(rows)
                labels = draw_labels(logits, seed)
                scores = self.discriminative.discriminator.all_pairs(
                    tf.gather(crowd.flat, rows), crowd.annotators
                )
                # log(1 + exp(f)), the reward with which IRGAN replaces log(1 - D) for steadier
                # gradients.
                rewards = tf.nn.softplus(tf.gather(scores, labels, axis=2, batch_dims=2))
                loss = policy_loss(logits, labels, rewards)
            self.generator_optimizer.apply(gradients(tape, loss, variables), variables)
            return tf.stack([tf.reduce_sum(rewards), tf.cast(tf.size(rewards), tf.float32)])

        sums = passes_over(self.passes, batches_of(size, _BATCH_ROWS), 2, step)
        return sums[0] / sums[1]


def make_gan(estimator: DLCLGAN, classifier: CrowdLayer, data: TrainingData) -> CrowdGANModel:
    """Returns the compiled game around a trained DL-CL."""
    network: Any = classifier.__dict__["_network"]
    crowd_labels = data.annotations.observed()
    crowd = Crowd(tuple(data.features.shape[1:]), crowd_labels.num_annotators)
    features = np.asarray(network.standardise(data.features))
    table = np.eye(crowd_labels.num_annotators, dtype=np.float32)
    crowd.set(
        features,
        crowd_labels,
        table,
        selection_counts(observed_cells(crowd_labels)),
        estimator.seed,
    )
    k, classes = estimator.embedding_size, crowd_labels.num_classes
    discriminator = Discriminator(
        classes, embedding_size=k, aggregate_labels=False, seed=estimator.seed
    )
    discriminator.build(crowd.feature_size, crowd.annotator_size)
    auxiliary = Auxiliary(
        classes, hidden_units=1, label_size=1, embedding_size=k, seed=estimator.seed
    )
    auxiliary.build()
    discriminative = DiscriminativeModule(
        discriminator, auxiliary, crowd, information=0.0, output_penalty=1.0, literal=False
    )
    model = CrowdGANModel(
        network.base,
        network.head,
        discriminative,
        crowd,
        passes=estimator.passes,
        batch_pairs=estimator.pair_batch_size,
    )
    model.compile_players(estimator.gan_learning_rate, estimator.discriminator_learning_rate)
    return model
