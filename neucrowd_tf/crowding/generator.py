"""The generator: which label an annotator would give to an instance that the classifier takes for a
class (eq. 1).
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class Generator(keras.layers.Layer):
    """g(x, e, noise, z-hat): a hidden layer over instance, annotator, noise and the classifier's
    output, then a score a class.

    The first layer is linear in its concatenated inputs, so it is a sum of a part of the instance,
    a part of the annotator and a part of the noise; the first two are computed once for each
    instance and annotator, and their sums make all `[B, R]` pairs.

    Args:
        num_classes: C.
        embedding_size: width of the instance and annotator embeddings.
        hidden_units: width of the hidden layer.
        noise_size: length of the noise vector.
        use_instances: False leaves the instance's features out (CrowdInGU).
        use_annotators: False leaves the annotator out (CrowdInGI).
        seed: draws the kernels.

    References:
        CrowdInG, eq. 1 and section 4.1 (two layers, 64 hidden units).
    """

    def __init__(
        self,
        num_classes: int,
        *,
        embedding_size: int = 32,
        hidden_units: int = 64,
        noise_size: int = 8,
        use_instances: bool = True,
        use_annotators: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(name="generator", dtype="float32")
        self.num_classes, self.noise_size = num_classes, noise_size
        self.use_instances, self.use_annotators = use_instances, use_annotators

        def dense(units: int, index: int, use_bias: bool = False) -> keras.layers.Dense:
            maker = keras.initializers.GlorotUniform(seed * 1039 + index)
            return keras.layers.Dense(
                units, use_bias=use_bias, kernel_initializer=maker, dtype="float32"
            )

        self.instance_embedding = dense(embedding_size, 0, use_bias=True)
        self.annotator_embedding = dense(embedding_size, 1, use_bias=True)
        self.from_instance = dense(hidden_units, 2)
        self.from_annotator = dense(hidden_units, 3)
        self.from_classifier = dense(hidden_units, 4, use_bias=True)
        self.from_noise = dense(hidden_units, 5)
        self.scores = dense(num_classes, 6, use_bias=True)

    def build(self, feature_size: int, annotator_size: int) -> None:  # type: ignore[override]
        """Makes the weights.

        Args:
            feature_size: d of the instances' features.
            annotator_size: of the annotators' features (R for one-hot vectors).
        """
        hidden = self.from_classifier.units
        self.instance_embedding.build((None, feature_size))
        self.annotator_embedding.build((None, annotator_size))
        self.from_instance.build((None, self.instance_embedding.units))
        self.from_annotator.build((None, self.annotator_embedding.units))
        self.from_classifier.build((None, self.num_classes))
        self.from_noise.build((None, self.noise_size))
        self.scores.build((None, hidden))
        self.built = True

    def instance_part(self, features: Any, probabilities: Any) -> Any:
        """Returns what an instance and the classifier's output add to the hidden layer, `[B,
        h]`."""
        part = self.from_classifier(probabilities)
        return (
            part + self.from_instance(self.instance_embedding(features))
            if self.use_instances
            else part
        )

    def annotator_part(self, annotators: Any) -> Any:
        """Returns what annotators add to the hidden layer, `[R, e] -> [R, h]`."""
        part = self.from_annotator(self.annotator_embedding(annotators))
        return part if self.use_annotators else tf.zeros_like(part)

    def all_pairs(self, features: Any, probabilities: Any, annotators: Any, noise: Any) -> Any:
        """Returns logits `[B, R, C]` of each annotator's label of each instance.

        Args:
            features: `[B, d]`.
            probabilities: `[B, C]`, z-hat.
            annotators: `[R, e]`.
            noise: `[B, R, k]`.
        """
        pair = (
            self.instance_part(features, probabilities)[:, None, :]
            + self.annotator_part(annotators)[None]
        )
        return self.scores(tf.nn.relu(pair + self.from_noise(noise)))

    def some_pairs(
        self, features: Any, probabilities: Any, annotators: Any, noise: Any, codes: Any
    ) -> Any:
        """Returns logits `[P, C]` of chosen pairs.

        Args:
            features, probabilities: `[P, d]` and `[P, C]`, a row a pair.
            annotators: `[R, e]`, all of them.
            noise: `[P, k]`.
            codes: `[P]` annotator codes.
        """
        part = tf.gather(self.annotator_part(annotators), codes)
        return self.scores(
            tf.nn.relu(self.instance_part(features, probabilities) + part + self.from_noise(noise))
        )


def pair_noise(seed: Any, shape: Any) -> Any:
    """Returns standard normal noise, a function of the seed `[2]` alone."""
    return tf.random.stateless_normal(shape, seed=seed)


def draw_labels(logits: Any, seed: Any) -> Any:
    """Returns labels drawn from `softmax(logits)`, `[..., C] -> [...]` int32, a function of the
    seed `[2]` alone.
    """
    from tensorflow_probability import distributions as tfd

    return tfd.Categorical(logits=logits, dtype=tf.int32).sample(seed=seed)
