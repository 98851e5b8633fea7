"""The generative module: the classifier, the generator, which says what each annotator makes of an
instance that the classifier takes for a class, and annotations drawn from them.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.counterfactual import importance_ratios
from neucrowd_tf.crowding.crowd import Crowd, batch_positions, batches_of, fold, gathered
from neucrowd_tf.crowding.selection import entropy

_ROWS_AT_ONCE = 1024


class Generator(keras.layers.Layer):
    """g(x, e, noise, z-hat): a hidden layer over instance, annotator, noise and the classifier's
    output, then a score a class.

    The first layer is linear in its concatenated inputs, so it is a sum of a part of the instance,
    a part of the annotator and a part of the noise; the first two are computed once for each
    instance and annotator, and their sums make all `[B, R]` pairs.

    Args:
        feature_size: d of the instances' features.
        annotator_size: of the annotators' features (R for one-hot vectors).
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
        feature_size: int,
        annotator_size: int,
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
        self.noise_size = noise_size
        self.use_instances, self.use_annotators = use_instances, use_annotators

        def dense(size: int, units: int, index: int, use_bias: bool = False) -> keras.layers.Dense:
            maker = keras.initializers.GlorotUniform(seed * 1039 + index)
            layer = keras.layers.Dense(
                units, use_bias=use_bias, kernel_initializer=maker, dtype="float32"
            )
            layer.build((None, size))
            return layer

        self.instance_embedding = dense(feature_size, embedding_size, 0, use_bias=True)
        self.annotator_embedding = dense(annotator_size, embedding_size, 1, use_bias=True)
        self.from_instance = dense(embedding_size, hidden_units, 2)
        self.from_annotator = dense(embedding_size, hidden_units, 3)
        self.from_classifier = dense(num_classes, hidden_units, 4, use_bias=True)
        self.from_noise = dense(noise_size, hidden_units, 5)
        self.scores = dense(hidden_units, num_classes, 6, use_bias=True)
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

        References:
            CrowdInG, eq. 1.
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

    References:
        CrowdInG, section 3.2.1.
    """
    from tensorflow_probability import distributions as tfd

    return tfd.Categorical(logits=logits, dtype=tf.int32).sample(seed=seed)


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
        """Returns z-hat `[B, C]` of features as the classifier takes them.

        References:
            CrowdInG, section 3.2.1 (P(z | x)).
        """
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
            rows = batch_positions(index, self.batch_rows, size)
            logits = self.logits(rows, tf.gather(latent, rows), fold(seed, index))
            return entropy(tf.nn.softmax(logits)), draw_labels(logits, fold(fold(seed, index), 1))

        entropies, labels = gathered(
            batches_of(size, self.batch_rows), (tf.float32, tf.int32), compute
        )
        return entropies, labels

    def authentic_loss(self, chosen: Any, latent: Any, seed: Any) -> Any:
        """Returns the mean of -log G(y | x, e, noise, z-hat) over authentic annotations, a scalar.

        Args:
            chosen: `[P]` positions among the authentic annotations.
            latent: `[N, C]` z-hat of all instances.
            seed: `[2]`, decides the noise.

        References:
            CrowdInG, section 3.3.3 (the generator is pre-trained).
        """
        crowd = self.crowd
        rows = tf.gather(crowd.instances, chosen)
        noise = pair_noise(seed, [tf.size(chosen), self.generator.noise_size])
        logits = self.generator.some_pairs(
            tf.gather(crowd.flat, rows),
            tf.gather(latent, rows),
            crowd.annotators,
            noise,
            tf.gather(crowd.codes, chosen),
        )
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(crowd.labels, chosen), logits)
        )

    def ratios(self, rows: Any, latent: Any, labels: Any, logged: Any, seed: Any) -> Any:
        """Returns G(y) / G_0(y) `[B, R]` of logged labels under the present module (eqs. 5, 6).

        Args:
            rows, latent, seed: see `logits`; gradients go through `latent`.
            labels: `[B, R]` the labels that the logging policy drew.
            logged: `[B, R]` its probabilities of them.
        """
        current = tf.gather(
            tf.nn.softmax(self.logits(rows, latent, seed)), labels, axis=2, batch_dims=2
        )
        return importance_ratios(current, logged, cap=self.ratio_cap, floor=self.probability_floor)
