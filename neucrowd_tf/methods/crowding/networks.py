"""CrowdInG's generator (eq. 1), discriminator with its LCA decoder (eq. 2) and auxiliary network.

Pairs of instance and annotator are worked on through factored embeddings: the first layer of each
network is a sum of parts of its inputs, so nothing of size instances x annotators x features is
ever made. Shapes use B instances, R annotators, P chosen pairs, C classes, d features of an
instance and e of an annotator.
"""

from __future__ import annotations

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats, Floats32, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import cross_entropies
from neucrowd_tf.methods.crowding.objectives import entropy


def fold(seed: Tensor, number: Tensor) -> Tensor:
    """Returns a separate seed `[2]` for each number."""
    return tf.random.experimental.stateless_fold_in(seed, number)


def pair_noise(seed: Tensor, shape: Tensor) -> Tensor:
    """Returns standard normal noise, a function of the seed `[2]` alone."""
    return tf.random.stateless_normal(shape, seed=seed)


def draw_labels(logits: Tensor, seed: Tensor) -> Tensor:
    """Returns labels drawn from `softmax(logits)`, `[..., C] -> [...]` int32.

    References:
        CrowdInG, section 3.2.1.
    """
    shape = tf.shape(logits)
    flat = tf.reshape(logits, [-1, shape[-1]])
    drawn = tf.random.stateless_categorical(flat, 1, seed, dtype=tf.int32)
    return tf.reshape(drawn, shape[:-1])


def label_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """Returns softmax(logits) at one label each, `[..., C]` and `[...]` to `[...]`."""
    return tf.exp(-cross_entropies(labels, logits))


def of_pairs(layer: keras.layers.Dense, inputs: Tensor) -> Tensor:
    """Applies a layer along the last axis, `[..., n] -> [..., units]`, as one product.

    Keras' own way is a dozen operations if shapes are open.
    """
    units = layer.kernel.shape[1]
    size = layer.kernel.shape[0]
    shape = tf.concat([tf.shape(inputs)[:-1], [units]], axis=0)
    return tf.reshape(layer(tf.reshape(inputs, [-1, size])), shape)


def dense(size: int, units: int, seed: int = 0, *, use_bias: bool = True) -> keras.layers.Dense:
    """Returns a built layer without activation, `[..., size] -> [..., units]`."""
    kernel = keras.initializers.GlorotUniform(seed)
    layer = keras.layers.Dense(units, use_bias=use_bias, kernel_initializer=kernel, dtype="float32")
    layer.build((None, size))
    return layer


class Drawn(NamedTuple):
    """Annotations that a generator drew for `[B, R]` pairs.

    Attributes:
        labels: `[B, R]` class codes.
        probabilities: `[B, R]` of the labels when they were drawn, G_0(y).
        entropies: `[B, R]` of the distributions that they were drawn from.
    """

    labels: Tensor
    probabilities: Tensor
    entropies: Tensor


class Generator(keras.layers.Layer):
    """Generator of annotations, g(x, e, noise, z-hat): one hidden layer, then a score per class.

    A fit draws its weights with `reinitialise`.

    Args:
        feature_size, annotator_size: d and e.
        num_classes: C.
        embedding_size: width of the instance and annotator embeddings.
        hidden_units: width h of the hidden layer.
        noise_size: length of the noise vector.
        use_instances: False leaves the instance's features out (CrowdInGU).
        use_annotators: False leaves the annotator out (CrowdInGI).

    Attributes:
        least_probability: lower bound of the probabilities in `Drawn.entropies`.

    References:
        CrowdInG, eq. 1 and section 4.1 (our reading: 64 hidden units are g's, 128 are h's).
    """

    def __init__(
        self,
        feature_size: int,
        annotator_size: int,
        num_classes: int,
        *,
        embedding_size: int,
        hidden_units: int,
        noise_size: int,
        use_instances: bool = True,
        use_annotators: bool = True,
    ) -> None:
        super().__init__(name="generator", dtype="float32")
        self.noise_size = noise_size
        self.hidden_units = hidden_units
        self.least_probability = 0.0
        self.use_instances = use_instances
        self.use_annotators = use_annotators
        # Deviation: CrowdInG eq. 1. Paper: Two-layer networks of all inputs (4.1); how these enter
        # is not said. Here: A sum of dense layers, each with its own fan-in, in P_Q too. Why: No
        # array of pairs x features is made. Effect: not measured.
        self.instance_embedding = dense(feature_size, embedding_size)
        self.annotator_embedding = dense(annotator_size, embedding_size)
        self.from_instance = dense(embedding_size, hidden_units, use_bias=False)
        self.from_annotator = dense(embedding_size, hidden_units, use_bias=False)
        self.from_classifier = dense(num_classes, hidden_units)
        self.from_noise = dense(noise_size, hidden_units, use_bias=False)
        self.scores = dense(hidden_units, num_classes)
        self.built = True

    def instance_part(self, features: Tensor) -> Tensor:
        """Returns the instances' part of the hidden layer, `[B, d] -> [B, h]`."""
        if not self.use_instances:
            return tf.zeros([tf.shape(features)[0], self.hidden_units])
        return self.from_instance(self.instance_embedding(features))

    def annotator_part(self, annotators: Tensor) -> Tensor:
        """Returns the annotators' part of the hidden layer, `[R, e] -> [R, h]`."""
        hidden = self.from_annotator(self.annotator_embedding(annotators))
        if self.use_annotators:
            return hidden
        return tf.zeros_like(hidden)

    def hidden(self, features: Tensor, annotators: Tensor, noise: Tensor) -> Tensor:
        """Returns the hidden layer's sum over instances, annotators and noise, `[B, R, h]`.

        Args:
            features: `[B, d]`.
            annotators: `[R, e]`.
            noise: `[B, R, k]`.
        """
        instance = self.instance_part(features)[:, None, :]
        return instance + self.annotator_part(annotators) + of_pairs(self.from_noise, noise)

    def logits(self, hidden: Tensor, latent: Tensor) -> Tensor:
        """Returns the logits of each annotator's label of each instance, `[B, R, C]`.

        Args:
            hidden: `[B, R, h]` from `hidden`, or `[P, h]` of chosen pairs, for logits `[P, C]`.
            latent: z-hat, `[B, 1, C]`, `[B, R, C]` or `[P, C]`; gradients go through it.

        References:
            CrowdInG, eq. 1.
        """
        from_classifier = of_pairs(self.from_classifier, latent)
        return of_pairs(self.scores, tf.nn.relu(hidden + from_classifier))

    def probabilities(self, hidden: Tensor, latent: Tensor, labels: Tensor) -> Tensor:
        """Returns G(y) of drawn labels under the present generative module, `[B, R]`.

        Args:
            hidden: `[B, R, h]` from `hidden`.
            latent: `[B, C]` z-hat of the present classifier; gradients go through it.
            labels: `[B, R]`.

        References:
            CrowdInG, eqs. 5 and 6 (G).
        """
        return label_probabilities(self.logits(hidden, latent[:, None, :]), labels)

    def draw(self, features: Tensor, latent: Tensor, annotators: Tensor, seed: Tensor) -> Drawn:
        """Draws a label of each instance by each annotator.

        Args:
            features: `[B, d]`.
            latent: `[B, C]` z-hat.
            annotators: `[R, e]`.
            seed: `[2]`, decides all draws; the noise is `pair_noise` of it.
        """
        shape = [tf.shape(features)[0], tf.shape(annotators)[0], self.noise_size]
        hidden = self.hidden(features, annotators, pair_noise(seed, shape))
        logits = self.logits(hidden, latent[:, None, :])
        labels = draw_labels(logits, fold(seed, 1))
        distributions = tf.nn.softmax(logits)
        least = self.least_probability
        if least:
            distributions = tf.clip_by_value(distributions, least, 1.0 - least)
        return Drawn(labels, label_probabilities(logits, labels), entropy(distributions))

    def answers(self, features: Tensor, latent: Tensor, annotators: Tensor) -> Tensor:
        """Returns G(y | x, e, z-hat) at the mean of the noise, `[B, R, C]`.

        Args:
            features: `[B, d]`.
            latent: `[B, C]` z-hat.
            annotators: `[R, e]`.
        """
        noise = tf.zeros([tf.shape(features)[0], tf.shape(annotators)[0], self.noise_size])
        hidden = self.hidden(features, annotators, noise)
        return tf.nn.softmax(self.logits(hidden, tf.convert_to_tensor(latent)[:, None, :]))

    def hidden_of_pairs(
        self, features: Tensor, annotators: Tensor, noise: Tensor, codes: Tensor
    ) -> Tensor:
        """Returns `hidden` of chosen pairs, `[P, h]`.

        Args:
            features: `[P, d]`, a row per pair.
            annotators: `[R, e]`, all of them.
            noise: `[P, k]`.
            codes: `[P]` annotator codes.
        """
        annotator = tf.gather(self.annotator_part(annotators), codes)
        return self.instance_part(features) + annotator + self.from_noise(noise)

    def log_probabilities(self, hidden: Tensor, latent: Tensor) -> Tensor:
        """Returns log G of all labels of chosen pairs, `[P, C]`.

        Args:
            hidden: `[P, h]` from `hidden_of_pairs`.
            latent: `[P, C]` z-hat.
        """
        return tf.nn.log_softmax(self.logits(hidden, latent))


def label_cooccurrence(annotations: Annotations) -> Floats:
    """Returns how many pairs of annotators gave an instance these two labels, `[C, C]`.

    The pairs are summed over instances. The diagonal is zero; generated annotations do not count.

    References:
        CrowdInG, section 3.2.2 (A of the LCA decoder).
    """
    votes = annotations.observed().vote_counts().astype(np.float64)
    counts = votes.T @ votes
    np.fill_diagonal(counts, 0.0)
    return counts


def label_correlation(cooccurrence: Floats) -> Floats32:
    """Returns the graph convolution's matrix D^-1/2 (A + I) D^-1/2, `[C, C]`.

    A is the co-occurrence divided by its largest row sum, so that a label has at least as much
    weight as its neighbours together.

    Args:
        cooccurrence: `[C, C]` counts, from `label_cooccurrence`.

    References:
        CrowdInG, section 3.2.2 (LCA decoder); Kipf and Welling (2017), Semi-supervised
        classification with graph convolutional networks, eq. 2.
    """
    # Deviation: CrowdInG section 3.2.2. Paper: A from the frequency of label co-occurrence, scale
    # not given. Here: Zero diagonal, divided by its largest row sum. Why: With raw counts the
    # identity vanishes and all classes become one. Effect: claim crowding_frequency.
    return with_loops(cooccurrence / max(1.0, cooccurrence.sum(axis=1).max()))


def with_loops(adjacency: Floats) -> Floats32:
    """Returns D^-1/2 (A + I) D^-1/2 of a graph A, `[C, C]`."""
    adjacency = adjacency + np.eye(len(adjacency))
    scale = 1.0 / np.sqrt(adjacency.sum(axis=1))
    return (scale[:, None] * adjacency * scale[None, :]).astype(np.float32)


class Discriminator(keras.layers.Layer):
    """Discriminator D(y = c | x, e) = sigmoid(u^T M_c v), a multi-label classifier.

    Args:
        feature_size, annotator_size: d and e.
        num_classes: C.
        embedding_size: length k of u and v.
        aggregate_labels: whether M_c passes through the label-correlation graph convolution (LCA
            decoder).
        seed: draws the weights.

    References:
        CrowdInG, eq. 2 and the LCA decoder below it (section 3.2.2).
    """

    def __init__(
        self,
        feature_size: int,
        annotator_size: int,
        num_classes: int,
        *,
        embedding_size: int,
        aggregate_labels: bool,
        seed: int = 0,
    ) -> None:
        super().__init__(name="discriminator", dtype="float32")
        self.num_classes = num_classes
        self.embedding_size = embedding_size
        self.aggregate_labels = aggregate_labels
        k = embedding_size
        first_seed = seed * 1049
        self.instance_encoder = dense(feature_size, k, first_seed)
        self.annotator_encoder = dense(annotator_size, k, first_seed + 1)
        # `reinitialise` finds an initialiser by the name of its weight.
        self.matrices_initializer = keras.initializers.RandomNormal(
            stddev=1.0 / k, seed=first_seed + 2
        )
        self.mixing_initializer = keras.initializers.Orthogonal(seed=first_seed + 3)
        self.correlation_initializer = keras.initializers.Identity()
        self.matrices = self._weight("matrices", (num_classes, k, k))
        self.mixing = self._weight("mixing", (k, k), trainable=aggregate_labels)
        classes = (num_classes, num_classes)
        self.correlation = self._weight("correlation", classes, trainable=False)
        self.built = True

    def _weight(self, name: str, shape: tuple[int, ...], *, trainable: bool = True) -> Tensor:
        initializer = getattr(self, f"{name}_initializer")
        return self.add_weight(shape=shape, initializer=initializer, trainable=trainable, name=name)

    def class_matrices(self) -> Tensor:
        """Returns M_c, or with the LCA decoder sum_c' S_cc' M_c' W, `[C, k, k]`.

        References:
            CrowdInG, section 3.2.2 (M-hat_c).
        """
        if not self.aggregate_labels:
            return tf.convert_to_tensor(self.matrices)
        k = self.embedding_size
        mixed = tf.matmul(self.correlation, tf.reshape(self.matrices, [-1, k * k]))
        return tf.matmul(tf.reshape(mixed, [-1, k, k]), self.mixing)

    def encode(self, features: Tensor, annotators: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns v `[B, k]`, u `[R, k]` and the class matrices M `[C, k, k]`.

        Args:
            features: `[B, d]`.
            annotators: `[R, e]`.
        """
        v = self.instance_encoder(features)
        u = self.annotator_encoder(annotators)
        return v, u, self.class_matrices()

    def encode_rows(
        self, features: Tensor, annotators: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns `encode` of chosen rows of the features: v `[P, k]`, u and M.

        A row that is chosen several times is encoded once: features are long.

        Args:
            features: `[N, d]`.
            annotators: `[R, e]`.
            rows: `[P]` instance codes.
        """
        distinct, places = tf.unique(rows)
        v, u, matrices = self.encode(tf.gather(features, distinct), annotators)
        return tf.gather(v, places), u, matrices

    def all_pairs(self, v: Tensor, u: Tensor, matrices: Tensor) -> Tensor:
        """Returns the logits of D of every label of every pair, `[B, R, C]`.

        Args:
            v: `[B, k]` from `encode`.
            u: `[R, k]` from `encode`.
            matrices: `[C, k, k]` from `encode`.
        """
        maps = tf.reshape(tf.einsum("rk,ckl->rcl", u, matrices), [-1, self.embedding_size])
        scores = tf.matmul(v, maps, transpose_b=True)
        return tf.reshape(scores, [tf.shape(scores)[0], -1, self.num_classes])

    def some_pairs(self, v: Tensor, u: Tensor, matrices: Tensor, codes: Tensor) -> Tensor:
        """Returns the logits of D of every label of chosen pairs, `[P, C]`.

        Args:
            v: `[P, k]`, a row per pair.
            u: `[R, k]` from `encode`.
            matrices: `[C, k, k]` from `encode`.
            codes: `[P]` annotator codes.
        """
        maps = tf.gather(tf.einsum("rk,ckl->rcl", u, matrices), codes)
        return tf.einsum("pcl,pl->pc", maps, v)


class Auxiliary(keras.layers.Layer):
    """Auxiliary network Q(z-hat | x, e, y): one hidden layer over the discriminator's encodings.

    The embedding m_c of a label is a linear layer over the discriminator's flattened class matrix,
    label correlation included. A fit draws the weights with `reinitialise`.

    Args:
        num_classes: C.
        hidden_units: width of the hidden layer.
        embedding_size: length k of the discriminator's encodings, and of m_c.

    References:
        CrowdInG, section 3.2.2 (P_Q, below eq. 3) and section 4.1 (our reading: 64 hidden units are
        g's, 128 are h's).
    """

    def __init__(self, num_classes: int, *, hidden_units: int, embedding_size: int) -> None:
        super().__init__(name="auxiliary", dtype="float32")
        self.embedding_size = embedding_size
        self.label_embedding = dense(embedding_size**2, embedding_size)
        self.from_label = dense(embedding_size, hidden_units)
        self.from_instance = dense(embedding_size, hidden_units, use_bias=False)
        self.from_annotator = dense(embedding_size, hidden_units, use_bias=False)
        self.scores = dense(hidden_units, num_classes)
        self.built = True

    def _log_probabilities(self, pairs: Tensor, matrices: Tensor, labels: Tensor) -> Tensor:
        flat = tf.reshape(matrices, [-1, self.embedding_size**2])
        from_label = self.from_label(self.label_embedding(flat))
        hidden = tf.nn.relu(pairs + tf.gather(from_label, labels))
        return tf.nn.log_softmax(self.scores(hidden))

    def all_pairs(self, v: Tensor, u: Tensor, matrices: Tensor, labels: Tensor) -> Tensor:
        """Returns log Q(z | x, e, y) of all pairs, `[B, R, C]`.

        Args:
            v: `[B, k]` from `Discriminator.encode`.
            u: `[R, k]` likewise.
            matrices: `[C, k, k]` likewise.
            labels: `[B, R]` class codes y.
        """
        pairs = self.from_instance(v)[:, None, :] + self.from_annotator(u)[None]
        return self._log_probabilities(pairs, matrices, labels)

    def some_pairs(
        self, v: Tensor, u: Tensor, matrices: Tensor, codes: Tensor, labels: Tensor
    ) -> Tensor:
        """Returns log Q(z | x, e, y) of chosen pairs, `[P, C]`.

        Args:
            v: `[P, k]`, a row per pair.
            u: `[R, k]` from `Discriminator.encode`.
            matrices: `[C, k, k]` likewise.
            codes: `[P]` annotator codes.
            labels: `[P]` class codes y.
        """
        pairs = self.from_instance(v) + tf.gather(self.from_annotator(u), codes)
        return self._log_probabilities(pairs, matrices, labels)
