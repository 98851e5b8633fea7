"""The discriminative module: the discriminator and the auxiliary network Q, which guesses what the
classifier had said of an instance from the annotation that was generated.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.crowd_layers.losses import at_labels
from neucrowd_tf.crowding.crowd import Crowd, entropy, fold
from neucrowd_tf.crowding.discriminator import (
    Discriminator,
    Encoded,
    discriminator_losses,
    generator_signal,
    output_penalty,
)
from neucrowd_tf.crowding.generative import GenerativeModule

NUM_SUMS = 8
_LEAST = 1e-12
_SEED = (0x1F, 0x0D)  # of the noise, the same before and after a game


class Auxiliary(keras.layers.Layer):
    """h(z, x, e, y): a hidden layer over the discriminator's encodings of instance and annotator
    and an embedding of the label.

    The embedding m_c of a label is a linear layer over the discriminator's flattened class matrix,
    label correlation included. As in the generator, the first layer is a sum of a part of each
    input.

    Args:
        num_classes: C.
        hidden_units: width of the hidden layer.
        label_size: length of m_c.
        embedding_size: length of the discriminator's encodings.
        seed: draws the kernels.

    References:
        CrowdInG, section 3.2.2 (P_Q, below eq. 3) and section 4.1 (two layers, 128 hidden units).
    """

    def __init__(
        self,
        num_classes: int,
        *,
        hidden_units: int = 128,
        label_size: int = 32,
        embedding_size: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__(name="auxiliary", dtype="float32")
        self.embedding_size = embedding_size

        def dense(size: int, units: int, index: int, use_bias: bool = False) -> keras.layers.Dense:
            maker = keras.initializers.GlorotUniform(seed * 1051 + index)
            layer = keras.layers.Dense(
                units, use_bias=use_bias, kernel_initializer=maker, dtype="float32"
            )
            layer.build((None, size))
            return layer

        self.label_embedding = dense(embedding_size**2, label_size, 0, use_bias=True)
        self.from_label = dense(label_size, hidden_units, 1, use_bias=True)
        self.from_instance = dense(embedding_size, hidden_units, 2)
        self.from_annotator = dense(embedding_size, hidden_units, 3)
        self.scores = dense(hidden_units, num_classes, 4, use_bias=True)
        self.built = True

    def label_part(self, encoded: Encoded) -> Any:
        """Returns what each label adds to the hidden layer, `[C, h]`."""
        flat = tf.reshape(encoded.matrices, [-1, self.embedding_size**2])
        return self.from_label(self.label_embedding(flat))

    def _log_probabilities(self, encoded: Encoded, pairs: Any, labels: Any) -> Any:
        hidden = tf.nn.relu(pairs + tf.gather(self.label_part(encoded), labels))
        return tf.nn.log_softmax(self.scores(hidden))

    def all_pairs(self, encoded: Encoded, labels: Any) -> Any:
        """Returns log P(z | x, e, y) `[B, R, C]`.

        Args:
            encoded: by the discriminator.
            labels: `[B, R]` class codes.
        """
        instance = self.from_instance(encoded.instances)[:, None, :]
        annotator = self.from_annotator(encoded.annotators)[None]
        return self._log_probabilities(encoded, instance + annotator, labels)

    def all_labels(self, encoded: Encoded) -> Any:
        """Returns log P(z | x, e, y) of every label, `[B, R, C (y), C (z)]`; see `all_pairs`."""
        instance = self.from_instance(encoded.instances)[:, None, None, :]
        annotator = self.from_annotator(encoded.annotators)[:, None, :]
        hidden = tf.nn.relu(instance + annotator + self.label_part(encoded))
        return tf.nn.log_softmax(self.scores(hidden))

    def some_pairs(self, encoded: Encoded, codes: Any, labels: Any) -> Any:
        """Returns log P(z | x, e, y) `[P, C]` of chosen pairs; see `Discriminator.some_pairs`."""
        instance = self.from_instance(encoded.instances)
        annotator = tf.gather(self.from_annotator(encoded.annotators), codes)
        return self._log_probabilities(encoded, instance + annotator, labels)


def latent_log_likelihood(latent: Any, log_q: Any) -> Any:
    """Returns the expectation of log Q(z | y) over z drawn from the classifier's output, `[..., C]
    -> [...]`.

    Args:
        latent: `[..., C]` probabilities, z-hat.
        log_q: `[..., C]` the auxiliary network's log probabilities.

    References:
        CrowdInG, eq. 3 (its first term, for one annotation).
    """
    # The expectation over z is a sum of C terms, so it is taken exactly rather than by drawing z.
    return tf.reduce_sum(latent * log_q, axis=-1)


def information_loss(latent: Any, log_q: Any) -> Any:
    """Returns L_I, the lower bound on the information between the classifier's output and generated
    annotations, in nats.

    Args:
        latent: `[P, C]` z-hat of each generated annotation's instance.
        log_q: `[P, C]`.

    Returns:
        a scalar: the mean of log Q(z | y), plus H(z), which is the entropy of the mean of z-hat and
        a constant while the classifier is fixed.

    References:
        CrowdInG, eq. 3.
    """
    return tf.reduce_mean(latent_log_likelihood(latent, log_q)) + entropy(
        tf.reduce_mean(latent, axis=0)
    )


class DiscriminativeModule(keras.layers.Layer):
    """Two networks over shared encoders: is an annotation authentic, and what does it say of the
    classifier's output?

    Args:
        discriminator, auxiliary: built.
        crowd: the data.
        information: lambda, the weight of the information loss.
        output_penalty: the weight of the mean squared output.
        literal: see `discriminator_losses`.
        density_ratio: whether the logit of D(y) is log p(y | x, e) - log G(y | x, e), where p is
            the softmax of eq. 2's scores: the optimum of eq. 4 where p is what annotators say.
        generated_term: the weight of generated annotations in D's loss.

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
        density_ratio: bool = False,
        generated_term: float = 1.0,
    ) -> None:
        super().__init__(name="discriminative_module", dtype="float32")
        self.density_ratio, self.generated_term = density_ratio, generated_term
        self.discriminator, self.auxiliary, self.crowd = discriminator, auxiliary, crowd
        self.information, self.output_penalty, self.literal = information, output_penalty, literal
        self.built = True

    def judged(self, scores: Any, log_answers: Any) -> Any:
        """Returns the logits of D from eq. 2's scores, both `[..., C]`.

        Args:
            scores: u^T M_c v.
            log_answers: log G(y | x, e), which a density ratio is taken over.

        References:
            Goodfellow et al. (2014), Generative adversarial networks, proposition 1 (D = p / (p +
            g)).
        """
        if not self.density_ratio:
            return scores
        return tf.nn.log_softmax(scores) - tf.stop_gradient(log_answers)

    def loss(
        self,
        rows: Any,
        codes: Any,
        labels: Any,
        authentic: Any,
        latent: Any,
        log_answers: Any = None,
    ) -> tuple[Any, Any]:
        """Returns what both networks minimise on a batch of pairs, and the sums that
        `discriminative_report` reads.

        Args:
            rows, codes, labels: `[P]` instances, annotators and labels.
            authentic: `[P]` bool.
            latent: `[P, C]` z-hat of the instances, or the class that was fed as one-hot vectors.
            log_answers: `[P, C]`, see `judged`.

        References:
            CrowdInG, eq. 4 (V - lambda L_I).
        """
        # An instance of several pairs is encoded once: its features are long.
        distinct, places = tf.unique(rows)
        encoded = self._encoded(distinct)
        encoded = encoded._replace(instances=tf.gather(encoded.instances, places))
        generated = tf.cast(~authentic, tf.float32)
        logits = self.judged(self.discriminator.some_pairs(encoded, codes), log_answers)
        literal = self.literal or self.density_ratio
        losses = discriminator_losses(logits, labels, authentic, literal=literal)
        if self.generated_term != 1.0:
            losses = tf.where(authentic, losses, self.generated_term * losses)
        penalty = output_penalty(logits)
        log_q = self.auxiliary.some_pairs(encoded, codes, labels)
        unlikely = -latent_log_likelihood(latent, log_q) * generated
        auxiliary = tf.math.divide_no_nan(tf.reduce_sum(unlikely), tf.reduce_sum(generated))
        loss = tf.reduce_mean(losses) + self.output_penalty * penalty + self.information * auxiliary
        believed = at_labels(logits, labels) > 0
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

    def signals(
        self, rows: Any, latent: Any, labels: Any, log_answers: Any = None
    ) -> tuple[Any, Any]:
        """Returns L_G, and delta = L_G - lambda log Q(z-hat | y), of generated annotations, both
        `[B, R]`.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat, or `[B, R, C]` the class that each pair was fed.
            labels: `[B, R]` drawn labels.
            log_answers: `[B, R, C]`, see `judged`.

        References:
            CrowdInG, section 3.3.2, above eq. 5 (delta = L_G - lambda L_I).
        """
        encoded = self._encoded(rows)
        scores = self.discriminator.all_pairs(encoded)
        signal = generator_signal(self.judged(scores, log_answers), labels)
        if not self.information:
            return signal, signal
        log_q = self.auxiliary.all_pairs(encoded, labels)
        # Minimising delta has to raise log Q, as the information is to be maximised; H(z) is a
        # constant here.
        fed = latent if len(latent.shape) == 3 else latent[:, None, :]
        return signal, signal - self.information * latent_log_likelihood(fed, log_q)

    def all_signals(self, rows: Any, log_answers: Any = None) -> tuple[Any, Any]:
        """Returns L_G of every label `[B, R, C]`, and log Q(z | x, e, y) `[B, R, C (y), C (z)]`.

        Args:
            rows: `[B]` instance codes.
            log_answers: `[B, R, C]`, see `judged`.
        """
        encoded = self._encoded(rows)
        logits = self.judged(self.discriminator.all_pairs(encoded), log_answers)
        return -tf.nn.softplus(logits), self.auxiliary.all_labels(encoded)

    def _encoded(self, rows: Any) -> Encoded:
        features = tf.gather(self.crowd.flat, rows)
        return self.discriminator.encode(features, self.crowd.annotators)


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


def mutual_information(joint: Any) -> Any:
    """Returns I(z; y) of joint distributions in nats, `[..., C (z), C (y)] -> [...]`."""
    joint = np.asarray(joint, np.float64)
    independent = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    ratio = np.log(np.maximum(joint, _LEAST)) - np.log(np.maximum(independent, _LEAST))
    return (joint * ratio).sum(axis=(-2, -1))


def information(
    generative: GenerativeModule, discriminative: DiscriminativeModule
) -> dict[str, float]:
    """Returns, of all pairs of instance and annotator:

    - `conditional_information`: the mean of I(z; y | x, e); 0 where the generator is fed z-hat,
      given which labels are drawn without regard to z;
    - `information`: the mean over annotators of I(z; y | e), instances taken together;
    - `bound`: E log Q(z | x, e, y) + H(z | x), which is at most `conditional_information`;
    - `score_variance`: the mean over pairs of the variance over y of E[log Q(z | x, e, y) | y].

    Args:
        generative, discriminative: as they are; the noise is drawn once.

    References:
        CrowdInG, eq. 3.
    """
    crowd, latent = generative.crowd, np.asarray(generative.classify_all(), np.float64)
    classes, sums, joint_sum = latent.shape[1], np.zeros(3), 0.0
    for index, first in enumerate(range(0, len(latent), generative.batch_rows)):
        rows = tf.range(first, min(first + generative.batch_rows, len(latent)))
        z, noise = latent[rows.numpy()], generative.noise(rows, fold(tf.constant(_SEED), index))
        fed = tf.constant(z, tf.float32)
        if generative.by_class:
            answers = tf.nn.softmax(generative.logits_by_class(rows, noise))
        else:
            answers = tf.nn.softmax(generative.logits(rows, fed, noise))
            answers = tf.repeat(answers[:, :, None, :], classes, axis=2)
        joint = z[:, None, :, None] * np.asarray(answers, np.float64)
        _, log_q = discriminative.all_signals(rows, generative.log_answers(rows, fed))
        log_q = np.swapaxes(np.asarray(log_q, np.float64), -1, -2)  # [B, R, C (z), C (y)]
        chances = joint.sum(axis=2)
        scores = (joint * log_q).sum(axis=2) / np.maximum(chances, _LEAST)
        spread = (chances * scores**2).sum(-1) - (chances * scores).sum(-1) ** 2
        uncertainty = -(z * np.log(np.maximum(z, _LEAST))).sum(axis=1)
        bound = (joint * log_q).sum(axis=(2, 3)) + uncertainty[:, None]
        each = mutual_information(joint), bound, spread
        sums += [value.sum() for value in each]
        joint_sum = joint_sum + joint.sum(axis=0)
    pairs = len(latent) * int(crowd.annotators.shape[0])
    conditional, bound, spread = sums / pairs
    return {
        "conditional_information": float(conditional),
        "information": float(mutual_information(joint_sum / len(latent)).mean()),
        "bound": float(bound),
        "score_variance": float(spread),
    }
