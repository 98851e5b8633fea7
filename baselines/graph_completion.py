"""A graph convolutional autoencoder that predicts the labels of all annotators."""

from __future__ import annotations

import math

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats32, Indices, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import cross_entropies
from neucrowd_tf.methods.crowding.networks import dense
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.features import in_blocks

_ROWS_AT_ONCE = 512  # instances whose labels are predicted at once
_LEARNING_RATE = 3e-3


class GraphCompletion(keras.Model):
    """A graph autoencoder of annotators and instances.

    Annotations are edges, with one kind of edge for each class. A step is an epoch.

    Each node sums the messages of its neighbours, a linear map for each kind of edge, and adds its
    own features; a bilinear form for each class scores each pair. In every step some edges are left
    out of the graph, and those are what is predicted.

    Args:
        features: `[N, d]`.
        annotations: of N instances.
        units: width of messages and embeddings.
        edge_dropout: the share of edges left out.
        seed: draws weights and edges.

    References:
        van den Berg, Kipf, Welling (2017), Graph convolutional matrix completion, sections 2.3 to
        2.5.
    """

    def __init__(
        self,
        features: Floats32,
        annotations: Annotations,
        *,
        seed: int,
        units: int = 32,
        edge_dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.size, self.annotators = annotations.shape
        self.classes = annotations.num_classes
        self.edge_dropout = edge_dropout
        self.seed = seed
        self._features = tf.constant(features)
        edges = (annotations.instances, annotations.annotators, annotations.labels)
        self._edges = tuple(map(tf.constant, edges))

        def weight(shape: tuple[int, ...], index: int) -> Tensor:
            stddev = math.sqrt(2.0 / (shape[-2] + shape[-1]))
            normal = keras.initializers.RandomNormal(stddev=stddev, seed=seed * 1061 + index)
            return self.add_weight(shape=shape, initializer=normal, dtype="float32")

        self.from_features = weight((features.shape[1], units), 0)
        self.of_annotators = weight((self.annotators, units), 1)
        self.to_instances = weight((self.classes, units, units), 2)
        self.to_annotators = weight((self.classes, units, units), 3)
        self.instance_layer = dense(2 * units, units, seed * 1061 + 4)
        self.annotator_layer = dense(2 * units, units, seed * 1061 + 5)
        self.decoders = weight((self.classes, units, units), 6)
        self.biases = self.add_weight(shape=(self.classes,), initializer="zeros")
        self.built = True
        self.compile(
            optimizer=keras.optimizers.Adam(_LEARNING_RATE),
            steps_per_execution=1,
            jit_compile=False,
            auto_scale_loss=False,
        )

    def embeddings(self, used: Tensor) -> tuple[Tensor, Tensor]:
        """Returns embeddings of instances `[N, h]` and annotators `[R, h]`.

        Edges count with their weight in `used` `[A]` (0 or 1).
        """
        rows, columns, labels = self._edges
        instances = tf.matmul(self._features, self.from_features)
        annotators = tf.convert_to_tensor(self.of_annotators)
        from_annotators = tf.gather_nd(
            tf.einsum("rh,chk->rck", annotators, self.to_instances),
            tf.stack([columns, labels], axis=1),
        )
        from_instances = tf.gather_nd(
            tf.einsum("nh,chk->nck", instances, self.to_annotators),
            tf.stack([rows, labels], axis=1),
        )
        at_instances = _mean_at_nodes(from_annotators, rows, used, self.size)
        at_annotators = _mean_at_nodes(from_instances, columns, used, self.annotators)
        return (
            self.instance_layer(tf.nn.relu(tf.concat([instances, at_instances], axis=1))),
            self.annotator_layer(tf.nn.relu(tf.concat([annotators, at_annotators], axis=1))),
        )

    def annotator_maps(self, annotators: Tensor) -> Tensor:
        """Returns the maps `[R, C, h]` from an instance's embedding to an annotator's scores."""
        return tf.einsum("rh,chk->rck", annotators, self.decoders)

    def train_step(self, data: Tensor) -> dict[str, Tensor]:
        rows, columns, labels = self._edges
        epoch = tf.cast(tf.reshape(data, []), tf.int32)
        draws = tf.random.stateless_uniform(tf.shape(rows), tf.stack([self.seed, epoch]))
        used = tf.cast(draws >= self.edge_dropout, tf.float32)
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            instances, annotators = self.embeddings(used)
            pairs = tf.gather(self.annotator_maps(annotators), columns)
            logits = tf.einsum("ach,ah->ac", pairs, tf.gather(instances, rows))
            losses = cross_entropies(labels, logits + self.biases)
            left_out = 1 - used
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses * left_out), tf.reduce_sum(left_out))
        take_step(self.optimizer, gradients(tape, loss, variables), variables)
        return {"loss": loss}

    def most_probable(self) -> Indices:
        """Returns the best label of each pair `[N, R]`, from the whole graph."""
        instances, annotators = self.embeddings(tf.ones_like(self._edges[0], tf.float32))
        maps = tf.reshape(self.annotator_maps(annotators), [self.annotators * self.classes, -1])

        def labels(rows: Floats32) -> Indices:
            logits = tf.reshape(
                tf.matmul(rows, maps, transpose_b=True), [-1, self.annotators, self.classes]
            )
            return np.asarray(logits + self.biases).argmax(axis=2)

        return in_blocks(labels, np.asarray(instances), _ROWS_AT_ONCE)


def _mean_at_nodes(messages: Tensor, nodes: Tensor, used: Tensor, size: int) -> Tensor:
    """Returns the mean of the used messages `[A, h]` at each node, `[size, h]`; 0 without any."""
    total = tf.math.unsorted_segment_sum(messages * used[:, None], nodes, size)
    count = tf.math.unsorted_segment_sum(used, nodes, size)
    return tf.math.divide_no_nan(total, count[:, None])
