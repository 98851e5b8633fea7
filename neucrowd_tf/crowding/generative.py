"""The generative module: the classifier, the generator, which says what each annotator makes of an
instance that the classifier takes for a class, and annotations drawn from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from neucrowd_tf.crowding.counterfactual import importance_ratios
from neucrowd_tf.crowding.crowd import Crowd, batch_positions, batches_of, fold, gathered
from neucrowd_tf.crowding.selection import entropy

_ROWS_AT_ONCE = 1024
# Of what constant features or a single annotator add: they stay as they are, but for a factor.
_LEAST_VARIANCE = 1e-6
_LEAST_PROBABILITY = 1e-12


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
        latent = self.from_classifier(probabilities)
        if len(latent.shape) == 2:
            latent = latent[:, None, :]
        pair = self.instance_part(features)[:, None, :] + self.annotator_part(annotators)[None]
        return self.scores(tf.nn.relu(pair + latent + self.from_noise(noise)))

    def all_pairs_by_class(self, features: Any, annotators: Any, noise: Any) -> Any:
        """Returns logits `[B, R, C, C]`: what each annotator makes of each instance, were it of the
        class of the third axis; see `all_pairs`.
        """
        pair = self.instance_part(features)[:, None, :] + self.annotator_part(annotators)[None]
        return self._by_class(pair + self.from_noise(noise))

    def _by_class(self, hidden: Any) -> Any:
        """Returns the logits `[..., C, C]` for each class from all that the class adds to."""
        classes = self.from_classifier(tf.eye(self.from_classifier.kernel.shape[0]))
        return self.scores(tf.nn.relu(hidden[..., None, :] + classes))

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


def draw_classes(latent: Any, columns: Any, seed: Any) -> Any:
    """Returns a class drawn from z-hat for each annotator, `[B, C] -> [B, R]` int32.

    References:
        CrowdInG, eq. 3 (z-hat ~ P(z-hat)).
    """
    logits = tf.math.log(tf.maximum(latent, _LEAST_PROBABILITY))[:, None, :]
    shape = [tf.shape(latent)[0], columns, tf.shape(latent)[1]]
    return draw_labels(tf.broadcast_to(logits, shape), seed)


def mixed(latent: Any, logits: Any) -> Any:
    """Returns log sum_z z-hat_z softmax(logits_z), `[..., C]` and `[..., C, C] -> [..., C]`."""
    weights = tf.math.log(tf.maximum(latent, _LEAST_PROBABILITY))[..., None]
    return tf.reduce_logsumexp(weights + tf.nn.log_softmax(logits), axis=-2)


def log_answers(
    generator: Generator, features: Any, latent: Any, annotators: Any, *, by_class: bool
) -> Any:
    """Returns log G(y | x, e) `[B, R, C]` at the noise's mean; see
    `GenerativeModule.log_answers`.
    """
    noise = tf.zeros([tf.shape(features)[0], tf.shape(annotators)[0], generator.noise_size])
    if not by_class:
        return tf.nn.log_softmax(generator.all_pairs(features, latent, annotators, noise))
    logits = generator.all_pairs_by_class(features, annotators, noise)
    return mixed(tf.convert_to_tensor(latent)[:, None, :], logits)


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
        by_class: whether the generator is fed a class drawn from z-hat, for each pair anew, rather
            than z-hat itself. A label that is drawn given z-hat tells nothing of z beyond x; one
            that is drawn given a class does.

    References:
        CrowdInG, section 3.2.1 and eq. 3.
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
        by_class: bool = False,
    ) -> None:
        super().__init__(name="generative_module", dtype="float32")
        self.by_class = by_class
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
            latent: `[B, C]` z-hat of these instances, or `[B, R, C]` what each pair is given.
            seed: `[2]`, decides the noise.
        """
        annotators = self.crowd.annotators
        features, noise = tf.gather(self.crowd.flat, rows), self._noise(rows, seed)
        return self.generator.all_pairs(features, latent, annotators, noise)

    def logits_by_class(self, rows: Any, seed: Any) -> Any:
        """Returns the generator's logits `[B, R, C, C]` for each class; see `logits`."""
        features, noise = tf.gather(self.crowd.flat, rows), self._noise(rows, seed)
        return self.generator.all_pairs_by_class(features, self.crowd.annotators, noise)

    def _noise(self, rows: Any, seed: Any) -> Any:
        columns = tf.shape(self.crowd.annotators)[0]
        return pair_noise(seed, [tf.shape(rows)[0], columns, self.generator.noise_size])

    def draw(self, rows: Any, latent: Any, seed: Any) -> Drawn:
        """Draws what each annotator says of some instances, given z-hat or a class drawn from it.

        Args:
            rows, seed: see `logits`; the seed decides all draws.
            latent: `[B, C]` z-hat.
        """
        fed, classes = latent, tf.zeros([tf.shape(rows)[0], 0], tf.int32)
        if self.by_class:
            classes = draw_classes(latent, tf.shape(self.crowd.annotators)[0], fold(seed, 2))
            fed = tf.one_hot(classes, tf.shape(latent)[1])
        logits = self.logits(rows, fed, seed)
        labels = draw_labels(logits, fold(seed, 1))
        chances = tf.gather(tf.nn.softmax(logits), labels, axis=2, batch_dims=2)
        if self.by_class:
            chances = chances * tf.gather(latent, classes, axis=1, batch_dims=1)
        return Drawn(labels, chances, classes, fed, entropy(tf.nn.softmax(logits)))

    def survey(self, seed: Any) -> tuple[Any, Any, Any]:
        """Generates for all pairs: the entropy of each distribution, a label drawn from it and,
        where the generator is fed classes, the class it was drawn for; each `[N, R]`.
        """
        latent, size = self.classify_all(), self.crowd.num_instances

        def compute(index: Any) -> tuple[Any, Any, Any]:
            rows = batch_positions(index, self.batch_rows, size)
            drawn = self.draw(rows, tf.gather(latent, rows), fold(seed, index))
            return drawn.entropies, drawn.labels, drawn.classes

        kinds = (tf.float32, tf.int32, tf.int32)
        entropies, labels, classes = gathered(batches_of(size, self.batch_rows), kinds, compute)
        return entropies, labels, classes

    def log_answers(self, rows: Any, latent: Any) -> Any:
        """Returns log G(y | x, e) `[B, R, C]` at the noise's mean, where classes are fed summed
        over them by z-hat.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat.
        """
        features = tf.gather(self.crowd.flat, rows)
        return log_answers(
            self.generator, features, latent, self.crowd.annotators, by_class=self.by_class
        )

    def some_log_answers(self, rows: Any, codes: Any, latent: Any, noise: Any = None) -> Any:
        """Returns log G(y | x, e) `[P, C]` of chosen pairs; see `log_answers`.

        Args:
            rows, codes: `[P]` instances and annotators.
            latent: `[P, C]` z-hat.
            noise: `[P, k]`; None is its mean.
        """
        if noise is None:
            noise = tf.zeros([tf.size(rows), self.generator.noise_size])
        features, table = tf.gather(self.crowd.flat, rows), self.crowd.annotators
        if not self.by_class:
            logits = self.generator.some_pairs(features, latent, table, noise, codes)
            return tf.nn.log_softmax(logits)
        logits = self.generator.some_pairs_by_class(features, table, noise, codes)
        return mixed(latent, logits)

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
        log_answers = self.some_log_answers(
            rows, tf.gather(crowd.codes, chosen), tf.gather(latent, rows), noise
        )
        return -tf.reduce_mean(
            tf.gather(log_answers, tf.gather(crowd.labels, chosen), axis=1, batch_dims=1)
        )

    def ratios(
        self, rows: Any, latent: Any, labels: Any, logged: Any, seed: Any, classes: Any = None
    ) -> Any:
        """Returns G(y) / G_0(y) `[B, R]` of logged labels under the present module (eqs. 5, 6);
        where classes were drawn, of the pairs of class and label.

        Args:
            rows, latent, seed: see `logits`; gradients go through `latent`.
            labels: `[B, R]` the labels that the logging policy drew.
            logged: `[B, R]` its probabilities of them.
            classes: `[B, R]` the classes that it drew, where the generator is fed classes.
        """
        fed = tf.one_hot(classes, tf.shape(latent)[1]) if self.by_class else latent
        answers = tf.nn.softmax(self.logits(rows, fed, seed))
        current = tf.gather(answers, labels, axis=2, batch_dims=2)
        if self.by_class:
            current = current * tf.gather(latent, classes, axis=1, batch_dims=1)
        return importance_ratios(current, logged, cap=self.ratio_cap, floor=self.probability_floor)
