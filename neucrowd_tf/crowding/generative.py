"""The generative module: the classifier and the generator, and annotations drawn from them."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.classifier import entropy
from neucrowd_tf.crowding.counterfactual import importance_ratios
from neucrowd_tf.crowding.crowd import Crowd, batches_of, fold, gathered
from neucrowd_tf.crowding.generator import Generator, draw_labels, pair_noise

_ROWS_AT_ONCE = 1024


class GenerativeModule(keras.layers.Layer):
    """First the classifier says z-hat, then the generator says what each annotator makes of it.

    Pairs are worked on in batches of instances with all their annotators. Noise is a function of a
    seed and the batch's number, so that the same pairs meet the same noise again and importance
    ratios start at one.

    Args:
        classifier: `[None, ...] -> [None, C]` probabilities; always called in inference mode.
        generator: built.
        crowd: the data.
        batch_rows: instances in a batch.
        ratio_cap, probability_floor: of the importance ratios.

    References:
        CrowdInG, section 3.2.1.
    """

    def __init__(
        self,
        classifier: keras.Model,
        generator: Generator,
        crowd: Crowd,
        *,
        batch_rows: int,
        ratio_cap: float,
        probability_floor: float,
    ) -> None:
        super().__init__(name="generative_module", dtype="float32")
        self.classifier, self.generator, self.crowd = classifier, generator, crowd
        self.batch_rows, self.ratio_cap, self.probability_floor = (
            batch_rows,
            ratio_cap,
            probability_floor,
        )
        self.built = True

    def classify(self, features: Any) -> Any:
        """Returns z-hat `[B, C]` of features as the classifier takes them."""
        return tf.cast(self.classifier(features, training=False), tf.float32)

    def classify_all(self) -> Any:
        """Returns z-hat `[N, C]` of all instances."""
        features, size = self.crowd.features, self.crowd.num_instances

        def compute(index: Any) -> tuple[Any]:
            return (self.classify(features[index * _ROWS_AT_ONCE : (index + 1) * _ROWS_AT_ONCE]),)

        return gathered(batches_of(size, _ROWS_AT_ONCE), (tf.float32,), compute)[0]

    def logits(self, rows: Any, latent: Any, seed: Any) -> Any:
        """Returns the generator's logits `[B, R, C]`.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat of these instances.
            seed: `[2]`, decides the noise.
        """
        annotators = self.crowd.annotators
        noise = pair_noise(
            seed, [tf.shape(rows)[0], tf.shape(annotators)[0], self.generator.noise_size]
        )
        return self.generator.all_pairs(tf.gather(self.crowd.flat, rows), latent, annotators, noise)

    def survey(self, seed: Any) -> tuple[Any, Any]:
        """Generates for all pairs: the entropy of each distribution, and a label drawn from it,
        both `[N, R]`.
        """
        latent, size = self.classify_all(), self.crowd.num_instances

        def compute(index: Any) -> tuple[Any, Any]:
            rows = tf.range(
                index * self.batch_rows, tf.minimum((index + 1) * self.batch_rows, size)
            )
            logits = self.logits(rows, tf.gather(latent, rows), fold(seed, index))
            return entropy(tf.nn.softmax(logits)), draw_labels(logits, fold(fold(seed, index), 1))

        entropies, labels = gathered(
            batches_of(size, self.batch_rows), (tf.float32, tf.int32), compute
        )
        return entropies, labels

    def ratios(self, rows: Any, latent: Any, labels: Any, logged: Any, seed: Any) -> Any:
        """Returns G(y) / G_0(y) `[B, R]` of logged labels under the present module.

        Args:
            rows, latent, seed: see `logits`; gradients go through `latent`.
            labels: `[B, R]` the labels that the logging policy drew.
            logged: `[B, R]` its probabilities of them.
        """
        current = tf.gather(
            tf.nn.softmax(self.logits(rows, latent, seed)), labels, axis=2, batch_dims=2
        )
        return importance_ratios(current, logged, cap=self.ratio_cap, floor=self.probability_floor)
