"""What goes between DL-CL and the game: the generator is trained, then the discriminative module
(section 3.3.3).
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.crowd import (
    batch_positions,
    batches_of,
    fold,
    gradients,
    passes_over,
    shuffled,
)
from neucrowd_tf.crowding.game import CrowdInGModel
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.tuplets import step_numbers

_BEFORE = 1 << 20  # epochs of pre-training draw from numbers that the game never reaches
_ORDER, _NOISE = 8, 9


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
            optimizer=game.optimizer,
            steps_per_execution=1,
            jit_compile=False,
            auto_scale_loss=False,
        )

    def train_step(self, data: Any) -> dict[str, Any]:
        epoch = tf.cast(tf.reshape(data, []), tf.int32) + _BEFORE
        latent = self.game.generative.classify_all()
        logs = self.game.discriminative_turn(epoch, tf.constant(1), latent)
        return {"loss": logs["discriminator_loss"], **logs}


class Counter:
    """A pipeline of step numbers that is made once and read by every fit (making one costs more
    than reading it).
    """

    def __init__(self) -> None:
        self._made: dict[int, tf.data.Dataset] = {}

    def __call__(self, first_step: int) -> tf.data.Dataset:
        if first_step not in self._made:
            self._made[first_step] = step_numbers(first_step)
        return self._made[first_step]
