"""The discriminator: whether an annotation is authentic (eq. 2), with labels that are given
together sharing their weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.crowd_layers.losses import at_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations


def label_cooccurrence(annotations: Annotations) -> NDArray[np.float64]:
    """Returns `[C, C]`: how many pairs of annotators gave the two labels to one instance; the
    diagonal is zero.

    References:
        CrowdInG, section 3.2.2 (A of the LCA decoder).
    """
    votes = annotations.observed().vote_counts().astype(np.float64)
    counts = votes.T @ votes
    np.fill_diagonal(counts, 0.0)
    return counts


def label_correlation(cooccurrence: NDArray[np.float64]) -> NDArray[np.float32]:
    """Returns the graph convolution's matrix D^-1/2 (A + I) D^-1/2, `[C, C]`.

    A is the co-occurrence scaled by its largest row sum, so that a label keeps at least as much
    weight as its neighbours together.

    References:
        CrowdInG, section 3.2.2 (LCA decoder); Kipf and Welling (2017), Semi-supervised
        classification with graph convolutional networks, eq. 2.
    """
    largest = cooccurrence.sum(axis=1).max(initial=0.0)
    # Deviation: the paper does not scale A; with raw counts the identity vanishes beside them and
    # all classes blur into one.
    adjacency = cooccurrence / largest if largest > 0 else np.zeros_like(cooccurrence)
    adjacency = adjacency + np.eye(len(adjacency))
    scale = 1.0 / np.sqrt(adjacency.sum(axis=1))
    return (scale[:, None] * adjacency * scale[None, :]).astype(np.float32)


class Encoded(NamedTuple):
    """What is known of instances, annotators and labels in the discriminative module.

    Attributes:
        instances: `[B, k]` v.
        annotators: `[R, k]` u.
        matrices: `[C, k, k]` M_c.

    References:
        CrowdInG, eq. 2.
    """

    instances: Any
    annotators: Any
    matrices: Any

    def annotator_maps(self) -> Any:
        """Returns u^T M_c of each annotator, `[R, C, k]`."""
        return tf.einsum("rk,ckl->rcl", self.annotators, self.matrices)


class Discriminator(keras.layers.Layer):
    """D(y = c | x, e) = sigmoid(u^T M_c v): a multi-label classifier of annotation triplets.

    Args:
        feature_size, annotator_size: d and e of the instances' and the annotators' features.
        num_classes: C.
        embedding_size: length of u and v.
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
        embedding_size: int = 32,
        aggregate_labels: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(name="discriminator", dtype="float32")
        self.num_classes, self.embedding_size, self.aggregate_labels = (
            num_classes,
            embedding_size,
            aggregate_labels,
        )
        k, c = embedding_size, num_classes
        self.instance_encoder, self.annotator_encoder = (
            keras.layers.Dense(
                k,
                kernel_initializer=keras.initializers.GlorotUniform(seed * 1049 + index),
                dtype="float32",
            )
            for index in range(2)
        )
        # Kept under the weights' names, by which `reinitialise` finds them.
        self.matrices_initializer = keras.initializers.RandomNormal(
            stddev=1.0 / k, seed=seed * 1049 + 2
        )
        self.mixing_initializer = keras.initializers.Orthogonal(seed=seed * 1049 + 3)
        self.correlation_initializer = keras.initializers.Identity()
        self.instance_encoder.build((None, feature_size))
        self.annotator_encoder.build((None, annotator_size))
        self.matrices = self.add_weight(
            shape=(c, k, k), initializer=self.matrices_initializer, name="matrices"
        )
        self.mixing = self.add_weight(
            shape=(k, k),
            initializer=self.mixing_initializer,
            trainable=aggregate_labels,
            name="mixing",
        )
        self.correlation = self.add_weight(
            shape=(c, c),
            initializer=self.correlation_initializer,
            trainable=False,
            name="correlation",
        )
        self.built = True

    def class_matrices(self) -> Any:
        """Returns `[C, k, k]`: M_c, or with the LCA decoder the graph convolution of them, sum_c'
        S_cc' M_c' W.
        """
        matrices = tf.convert_to_tensor(self.matrices)
        if not self.aggregate_labels:
            return matrices
        k = self.embedding_size
        mixed = tf.matmul(tf.convert_to_tensor(self.correlation), tf.reshape(matrices, [-1, k * k]))
        return tf.matmul(tf.reshape(mixed, [-1, k, k]), tf.convert_to_tensor(self.mixing))

    def encode(self, features: Any, annotators: Any) -> Encoded:
        """Returns what this network and the auxiliary one make of `[B, d]` instances and `[R, e]`
        annotators, once for both.
        """
        return Encoded(
            self.instance_encoder(features),
            self.annotator_encoder(annotators),
            self.class_matrices(),
        )

    def all_pairs(self, encoded: Encoded) -> Any:
        """Returns logits `[B, R, C]`: how authentic each label of each pair looks."""
        maps = tf.reshape(encoded.annotator_maps(), [-1, self.embedding_size])
        scores = tf.matmul(encoded.instances, maps, transpose_b=True)
        return tf.reshape(scores, [tf.shape(scores)[0], -1, self.num_classes])

    def some_pairs(self, encoded: Encoded, codes: Any) -> Any:
        """Returns logits `[P, C]` of chosen pairs.

        Args:
            encoded: a row of its instances for each pair, and all annotators.
            codes: `[P]` annotator codes.
        """
        maps = tf.gather(encoded.annotator_maps(), codes)
        return tf.einsum("pcl,pl->pc", maps, encoded.instances)


def discriminator_losses(logits: Any, labels: Any, authentic: Any, *, literal: bool = False) -> Any:
    """Returns what the discriminator minimises for each annotation, `[P]`.

    Args:
        logits: `[P, C]`.
        labels: `[P]` class codes.
        authentic: `[P]` bool, False for generated annotations.
        literal: eq. 4 as printed: -log D(y) of an authentic annotation and -log(1 - D(y)) of a
            generated one, one entry each.

    References:
        CrowdInG, eq. 4 (V, as D maximises it).
    """
    own = at_labels(logits, labels)
    on_generated = tf.nn.softplus(own)
    if literal:
        return tf.where(authentic, tf.nn.softplus(-own), on_generated)
    # Deviation: an authentic annotation says that its label is right for the pair and the others
    # are not, as the multi-label classifier that section 3.2.2 describes learns it. With one entry
    # on both sides the discriminator can only tell authentic from generated by lowering the labels
    # that are generated most, which are the right ones.
    every = tf.nn.softplus(logits) - tf.one_hot(labels, tf.shape(logits)[1]) * logits
    return tf.where(authentic, tf.reduce_sum(every, axis=1), on_generated)


def output_penalty(logits: Any) -> Any:
    """Returns the mean of D^2 over all entries, which keeps the discriminator's outputs sparse.

    References:
        CrowdInG, section 3.2.2 (L2 norm of the outputs).
    """
    return tf.reduce_mean(tf.square(tf.sigmoid(logits)))


def generator_signal(logits: Any, labels: Any) -> Any:
    """Returns L_G = log(1 - D(y)) of drawn labels, `[..., C]` and `[...]` to `[...]`.

    References:
        CrowdInG, section 3.3.2.
    """
    return -tf.nn.softplus(at_labels(logits, labels))
