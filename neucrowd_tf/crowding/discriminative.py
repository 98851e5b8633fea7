"""The discriminative module: the discriminator and the auxiliary network, which judge annotations
together.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.auxiliary import Auxiliary
from neucrowd_tf.crowding.crowd import Crowd
from neucrowd_tf.crowding.discriminator import (
    Discriminator,
    discriminator_losses,
    generator_signal,
    output_penalty,
)
from neucrowd_tf.crowding.information import latent_log_likelihood


class DiscriminativeModule(keras.layers.Layer):
    """Two networks over shared encoders: is an annotation authentic, and what does it say of the
    classifier's output?

    Args:
        discriminator, auxiliary: built.
        crowd: the data.
        information: lambda, the weight of the information loss.
        output_penalty: the weight of the mean squared output.
        literal: see `discriminator_losses`.

    References:
        CrowdInG, section 3.2.2 and eq. 4.
    """

    def __init__(
        self,
        discriminator: Discriminator,
        auxiliary: Auxiliary,
        crowd: Crowd,
        *,
        information: float,
        output_penalty: float,
        literal: bool,
    ) -> None:
        super().__init__(name="discriminative_module", dtype="float32")
        self.discriminator, self.auxiliary, self.crowd = discriminator, auxiliary, crowd
        self.information, self.output_penalty, self.literal = information, output_penalty, literal
        self.built = True

    def loss(
        self, rows: Any, codes: Any, labels: Any, authentic: Any, latent: Any
    ) -> tuple[Any, Any]:
        """Returns what both networks minimise on a batch of pairs, and the sums that
        `discriminative_report` reads.

        Args:
            rows, codes, labels: `[P]` instances, annotators and labels.
            authentic: `[P]` bool.
            latent: `[P, C]` z-hat of the instances.
        """
        features, generated = tf.gather(self.crowd.flat, rows), tf.cast(~authentic, tf.float32)
        logits = self.discriminator.some_pairs(features, self.crowd.annotators, codes)
        losses = discriminator_losses(logits, labels, authentic, literal=self.literal)
        penalty = output_penalty(logits)
        log_q = self.auxiliary.some_pairs(
            self.discriminator, features, self.crowd.annotators, codes, labels
        )
        unlikely = -latent_log_likelihood(latent, log_q) * generated
        auxiliary = tf.math.divide_no_nan(tf.reduce_sum(unlikely), tf.reduce_sum(generated))
        loss = tf.reduce_mean(losses) + self.output_penalty * penalty + self.information * auxiliary
        believed = tf.gather(logits, labels, axis=1, batch_dims=1) > 0
        hits, size = (
            tf.cast(tf.equal(believed, authentic), tf.float32),
            tf.cast(tf.size(rows), tf.float32),
        )
        real = 1.0 - generated
        sums = [
            tf.reduce_sum(losses),
            penalty * size,
            tf.reduce_sum(unlikely),
            tf.reduce_sum(hits * real),
            tf.reduce_sum(hits * generated),
        ]
        return loss, tf.stack([*sums, tf.reduce_sum(real), tf.reduce_sum(generated), size])

    def signals(self, rows: Any, latent: Any, labels: Any) -> tuple[Any, Any]:
        """Returns L_G, and delta = L_G - lambda log Q(z-hat | y), of generated annotations, both
        `[B, R]`.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat.
            labels: `[B, R]` drawn labels.

        References:
            CrowdInG, section 3.3.2, above eq. 5.
        """
        features, annotators = tf.gather(self.crowd.flat, rows), self.crowd.annotators
        signal = generator_signal(self.discriminator.all_pairs(features, annotators), labels)
        if not self.information:
            return signal, signal
        log_q = self.auxiliary.all_pairs(self.discriminator, features, annotators, labels)
        # Minimising delta has to raise log Q, as the information is to be maximised; H(z) is a
        # constant here.
        return signal, signal - self.information * latent_log_likelihood(latent[:, None, :], log_q)


NUM_SUMS = 8


def discriminative_report(sums: Any) -> dict[str, Any]:
    """Returns the logged values from the sums of a pass: losses and the share of annotations that D
    takes for what they are.
    """
    loss, penalty, unlikely, real_hits, generated_hits, real, generated, size = tf.unstack(sums)
    return {
        "discriminator_loss": tf.math.divide_no_nan(loss, size),
        "output_penalty": tf.math.divide_no_nan(penalty, size),
        "auxiliary_loss": tf.math.divide_no_nan(unlikely, generated),
        "hit_rate_authentic": tf.math.divide_no_nan(real_hits, real),
        "hit_rate_generated": tf.math.divide_no_nan(generated_hits, generated),
    }
