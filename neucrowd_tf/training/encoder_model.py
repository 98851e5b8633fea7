"""The Keras model of an encoder that is trained on instances drawn by index."""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats32, Indices, Tensor
from neucrowd_tf.nn.steps import replicas, summed, take_step
from neucrowd_tf.training.features import ArrayFeatures, in_blocks


class EncoderModel(keras.Model):
    """An encoder, its training instances, and a training step.

    A subclass defines the step in `batch_losses`.

    A batch of the pipeline says which instances to take (or holds the random numbers that say so);
    features stay where they are. The trained variables are those of the encoder and whatever else
    the subclass holds.
    """

    def __init__(self, encoder: keras.Model, features: Floats32) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them; each step reads its own if they are not in
                memory.
        """
        super().__init__()
        self.encoder = encoder
        self.held: list[tf.Variable] = []
        if isinstance(features, ArrayFeatures):
            self.instances: Tensor = features
        else:
            self.instances = self.hold(features)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def hold(self, values: Array) -> tf.Variable:
        """Returns a variable of training data, which is no weight: neither saved nor checkpointed.

        What is compiled reads data from such variables only, so that it serves other data.
        """
        variable = tf.Variable(values, trainable=False)
        self.held.append(variable)
        return variable

    def start_as(self, other: EncoderModel) -> None:
        """Takes over the data and the weights of a model of the same specification."""
        for variable, value in zip(self.held, other.held, strict=True):
            variable.assign(value)
        for variable, value in zip(self.variables, other.variables, strict=True):
            variable.assign(value)

    def call(self, features: Tensor, training: bool = False) -> Tensor:
        """Returns embeddings."""
        return self.encoder(features, training=training)

    def distinct(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the features of the distinct instances among `[...]` positions.

        The second value has the place `[...]` of each position there. All instances are returned if
        that is less work.
        """
        count = rows.shape.num_elements()
        in_memory = not isinstance(self.instances, ArrayFeatures)
        if in_memory and count is not None and self.instances.shape[0] <= count:
            return tf.convert_to_tensor(self.instances), rows
        flat, places = tf.unique(tf.reshape(rows, [-1]))
        return self.take(flat), tf.reshape(places, tf.shape(rows))

    def take(self, rows: Tensor) -> Tensor:
        """Returns the features `[M, d]` of instances `[M]`."""
        if not isinstance(self.instances, ArrayFeatures):
            return tf.gather(self.instances, rows)
        features = tf.numpy_function(self.instances.take, [rows], tf.float32)
        features.set_shape([*rows.shape, *self.instances.shape[1:]])
        return features

    def embed_rows(
        self, rows: Tensor, training: bool, network: keras.Model | None = None
    ) -> Tensor:
        """Returns float32 embeddings `[..., h]` of instances `[...]`, by default the encoder's.

        Each distinct instance is embedded once.
        """
        network = network or self.encoder
        features, places = self.distinct(rows)
        return tf.cast(tf.gather(network(features, training=training), places), tf.float32)

    def batch_losses(self, data: Tensor) -> Tensor:
        """Returns the losses `[B]` of one batch of the pipeline, in float32.

        Their mean is minimised. Of replicas, each returns those of its part of the batch; if losses
        depend on the whole batch, each returns all of them.
        """
        raise NotImplementedError

    def global_mean(self, values: Tensor) -> Tensor:
        """Returns this replica's share of the mean over the batch of all replicas.

        Replicas' gradients are summed; the parts of a batch may be of different sizes.
        """
        if replicas() == 1:
            return tf.reduce_mean(values)
        return tf.reduce_sum(values) / summed(tf.cast(tf.size(values), values.dtype))

    def logged(self, values: Tensor) -> Tensor:
        """Returns what a metric of the values is given: their mean over all replicas' parts."""
        if replicas() == 1:
            return values
        return summed(self.global_mean(values))

    def penalty(self, network: keras.Model) -> Tensor:
        """Returns the network's weight penalties, this replica's share of them."""
        if network.losses:
            return tf.add_n(network.losses) / replicas()
        return 0.0

    def train_step(self, data: Tensor) -> dict[str, Tensor]:
        with tf.GradientTape() as tape:
            losses = self.batch_losses(data)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
            loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        take_step(self.optimizer, tape.gradient(loss, variables), variables)
        self.loss_tracker.update_state(self.logged(losses))
        return {"loss": self.loss_tracker.result()}

    def embed(self, features: Tensor) -> Floats32:
        """Returns embeddings `[M, h]` of features as the encoder takes them, with dropout off."""
        return in_blocks(lambda block: self._embed(tf.convert_to_tensor(block)), features, 8192)

    def embed_instances(self, rows: Indices) -> Floats32:
        """Returns embeddings `[M, h]` of training instances by position, with dropout off."""
        return in_blocks(lambda block: self._embed(self.take(block)), rows, 8192)

    @tf.function(reduce_retracing=True, autograph=False)
    def _embed(self, features: Tensor) -> Tensor:
        return tf.cast(self.encoder(features, training=False), tf.float32)
