"""The generator (eq. 1), and what is drawn from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from neucrowd_tf.crowding.crowd import (
    draw_classes,
    draw_labels,
    entropy,
    fold,
    label_probabilities,
    mixed,
    pair_noise,
)

# Of what constant features or a single annotator add: they stay as they are, but for a factor.
_LEAST_VARIANCE = 1e-6


class Drawn(NamedTuple):
    """What the generative module drew for `[B, R]` pairs.

    Attributes:
        labels: what annotators say.
        chances: how probable that was (where classes are fed, that and the class).
        classes: the classes that were fed; `[B, 0]` where z-hat was.
        fed: `[B, C]` z-hat, or the classes as one-hot vectors `[B, R, C]`.
        entropies: of the distributions that labels were drawn from.
    """

    labels: Any
    chances: Any
    classes: Any
    fed: Any
    entropies: Any


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

    def instance_part(self, features: Any) -> Any:
        """Returns what instances add to the hidden layer, `[B, d] -> [B, h]`."""
        if not self.use_instances:
            return tf.zeros([tf.shape(features)[0], self.scores.kernel.shape[0]])
        return self.from_instance(self.instance_embedding(features))

    def annotator_part(self, annotators: Any) -> Any:
        """Returns what annotators add to the hidden layer, `[R, e] -> [R, h]`."""
        part = self.from_annotator(self.annotator_embedding(annotators))
        return part if self.use_annotators else tf.zeros_like(part)

    def all_pairs(self, features: Any, probabilities: Any, annotators: Any, noise: Any) -> Any:
        """Returns logits `[B, R, C]` of each annotator's label of each instance.

        Args:
            features: `[B, d]`.
            probabilities: `[B, C]`, z-hat; or `[B, R, C]`, what each pair is given of it.
            annotators: `[R, e]`.
            noise: `[B, R, k]`.

        References:
            CrowdInG, eq. 1.
        """
        return self.answer(self.hidden(features, annotators, noise), probabilities)

    def hidden(self, features: Any, annotators: Any, noise: Any) -> Any:
        """Returns what instances, annotators and noise add to the hidden layer, `[B, R, h]`; see
        `all_pairs`.
        """
        instance = self.instance_part(features)[:, None, :]
        return instance + self.annotator_part(annotators) + of_pairs(self.from_noise, noise)

    def answer(self, hidden: Any, probabilities: Any) -> Any:
        """Returns logits `[B, R, C]` from `hidden` and z-hat; see `all_pairs`."""
        latent = of_pairs(self.from_classifier, probabilities)
        if len(probabilities.shape) == 2:
            latent = latent[:, None, :]
        return of_pairs(self.scores, tf.nn.relu(hidden + latent))

    def all_pairs_by_class(self, features: Any, annotators: Any, noise: Any) -> Any:
        """Returns logits `[B, R, C, C]`: what each annotator makes of each instance, were it of the
        class of the third axis; see `all_pairs`.
        """
        return self._by_class(self.hidden(features, annotators, noise))

    def _by_class(self, hidden: Any) -> Any:
        """Returns the logits `[..., C, C]` for each class from all that the class adds to."""
        classes = self.from_classifier(tf.eye(self.from_classifier.kernel.shape[0]))
        return of_pairs(self.scores, tf.nn.relu(hidden[..., None, :] + classes))

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
        latent = self.from_classifier(probabilities)
        return self.scores(tf.nn.relu(latent + self._some(features, annotators, noise, codes)))

    def some_pairs_by_class(self, features: Any, annotators: Any, noise: Any, codes: Any) -> Any:
        """Returns logits `[P, C, C]` of chosen pairs for each class; see `all_pairs_by_class`."""
        return self._by_class(self._some(features, annotators, noise, codes))

    def _some(self, features: Any, annotators: Any, noise: Any, codes: Any) -> Any:
        part = tf.gather(self.annotator_part(annotators), codes)
        return self.instance_part(features) + part + self.from_noise(noise)

    def log_answers(self, features: Any, latent: Any, annotators: Any, *, by_class: bool) -> Any:
        """Returns log G(y | x, e) `[B, R, C]` at the noise's mean.

        Args:
            features, annotators: see `all_pairs`.
            latent: `[B, C]` z-hat.
            by_class: whether classes are fed, over which to sum by z-hat.
        """
        noise = tf.zeros([tf.shape(features)[0], tf.shape(annotators)[0], self.noise_size])
        if not by_class:
            return tf.nn.log_softmax(self.all_pairs(features, latent, annotators, noise))
        logits = self.all_pairs_by_class(features, annotators, noise)
        return mixed(tf.convert_to_tensor(latent)[:, None, :], logits)

    def answers(self, features: Any, latent: Any, annotators: Any, *, by_class: bool) -> Any:
        """Returns G(y | x, e) `[B, R, C]`; see `log_answers`."""
        return tf.exp(self.log_answers(features, latent, annotators, by_class=by_class))

    def draw(
        self, features: Any, latent: Any, annotators: Any, seed: Any, *, by_class: bool
    ) -> Drawn:
        """Draws what each annotator says of each instance, given z-hat or a class drawn from it.

        Args:
            features, annotators: see `all_pairs`.
            latent: `[B, C]` z-hat.
            seed: `[2]`, decides all draws, those of the noise too.
            by_class: whether a class is drawn, and fed.
        """
        size, columns = tf.shape(features)[0], tf.shape(annotators)[0]
        fed, classes = latent, tf.zeros([size, 0], tf.int32)
        if by_class:
            classes = draw_classes(latent, columns, fold(seed, 2))
            fed = tf.one_hot(classes, tf.shape(latent)[1])
        noise = pair_noise(seed, [size, columns, self.noise_size])
        logits = self.all_pairs(features, fed, annotators, noise)
        labels = draw_labels(logits, fold(seed, 1))
        chances = label_probabilities(logits, labels)
        if by_class:
            chances = chances * tf.gather(latent, classes, axis=1, batch_dims=1)
        return Drawn(labels, chances, classes, fed, entropy(tf.nn.softmax(logits)))

    def equalise(self, features: Any, annotators: Any, latent: Any) -> None:
        """Scales the kernels so that instances, annotators, the classifier's output and the noise
        each add as much to the hidden layer: a variance of 1/4.

        With Glorot's kernels the instance adds six times as much as the classifier's output and
        nine times as much as a one-hot annotator.

        Args:
            features: `[N, d]` of all instances.
            annotators: `[R, e]`.
            latent: `[N, C]` z-hat.
        """
        parts = [
            (self.from_classifier, tf.math.reduce_variance(self.from_classifier(latent), axis=0)),
            (self.from_noise, tf.reduce_sum(tf.square(self.from_noise.kernel), axis=0)),
        ]
        if self.use_instances:
            part = self.instance_part(features)
            parts.append((self.from_instance, tf.math.reduce_variance(part, axis=0)))
        if self.use_annotators:
            part = self.annotator_part(annotators)
            parts.append((self.from_annotator, tf.math.reduce_variance(part, axis=0)))
        for layer, variances in parts:
            scale = 0.5 / tf.sqrt(tf.maximum(tf.reduce_mean(variances), _LEAST_VARIANCE))
            layer.kernel.assign(layer.kernel * scale)


def of_pairs(layer: keras.layers.Dense, inputs: Any) -> Any:
    """Applies a layer along the last axis, `[..., n] -> [..., units]`, as one product: Keras'
    own is a dozen operations where shapes are open.
    """
    units, size = layer.kernel.shape[1], layer.kernel.shape[0]
    shape = tf.concat([tf.shape(inputs)[:-1], [units]], axis=0)
    return tf.reshape(layer(tf.reshape(inputs, [-1, size])), shape)
