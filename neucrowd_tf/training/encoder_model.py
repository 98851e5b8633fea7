"""What every Keras model shares that trains an embedding network on rows drawn by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.blocks import in_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EncoderModel(keras.Model):
    """An encoder, the training instances it is trained on, and a step that a subclass fills with
    `batch_losses`.

    A batch of the pipeline says which instances to take (or holds the random numbers that say so);
    features stay where they are. The trained variables are those of the encoder and whatever else
    the subclass holds.
    """

    def __init__(
        self, encoder: keras.Model, features: NDArray[np.float32], *, slot_dropout: bool = False
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them.
            slot_dropout: whether an instance that stands twice in a training batch is embedded
                twice, with two dropout masks.
        """
        super().__init__()
        self.slot_dropout = slot_dropout
        self.encoder = encoder
        self.instances = tf.constant(features)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker]

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns embeddings."""
        return self.encoder(features, training=training)

    def distinct(self, rows: Any) -> tuple[Any, Any]:
        """Returns the features of the distinct instances among `[...]` positions, and the place
        `[...]` of each of them there; all instances as they are where that is less work.
        """
        count = rows.shape.num_elements()
        if count is not None and len(self.instances) <= count:
            return self.instances, rows
        flat, places = tf.unique(tf.reshape(rows, [-1]))
        return tf.gather(self.instances, flat), tf.reshape(places, tf.shape(rows))

    def embed_rows(self, rows: Any, training: bool) -> Any:
        """Returns float32 embeddings `[..., h]` of instances `[...]`, each distinct one embedded
        once.
        """
        if self.slot_dropout and training:
            flat = tf.gather(self.instances, tf.reshape(rows, [-1]))
            embedded = tf.cast(self.encoder(flat, training=True), tf.float32)
            return tf.reshape(embedded, [*rows.shape, embedded.shape[-1]])
        features, places = self.distinct(rows)
        return tf.cast(tf.gather(self.encoder(features, training=training), places), tf.float32)

    def batch_losses(self, data: Any) -> Any:
        """Returns the losses `[B]` of one batch of the pipeline, in float32; their mean is
        minimised.
        """
        raise NotImplementedError

    def global_mean(self, values: Any) -> Any:
        """Returns the mean over the batch of all replicas, as this replica's share of it (replicas'
        gradients are summed).
        """
        replicas = tf.distribute.get_replica_context()
        count = 1 if replicas is None else replicas.num_replicas_in_sync
        return tf.reduce_mean(values) / count

    def penalty(self, network: keras.Model) -> Any:
        """Returns the network's weight penalties, this replica's share of them."""
        replicas = tf.distribute.get_replica_context()
        count = 1 if replicas is None else replicas.num_replicas_in_sync
        return tf.add_n(network.losses) / count if network.losses else 0.0

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            losses = self.batch_losses(data)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
        variables = self.trainable_variables
        take_step(self.optimizer, tape.gradient(loss, variables), variables)
        self.loss_tracker.update_state(losses)
        return {"loss": self.loss_tracker.result()}

    def embed_instances(self) -> NDArray[np.float32]:
        """Returns the embeddings `[N, h]` of the training instances, with dropout off."""
        return self.embed(np.asarray(self.instances))

    def embed(self, features: Any, rows_at_once: int = 8192) -> NDArray[np.float32]:
        """Returns embeddings `[M, h]` of features as the encoder takes them, with dropout off."""
        return in_blocks(
            lambda part: self._embed(tf.convert_to_tensor(part)), features, rows_at_once
        )

    @tf.function(reduce_retracing=True, autograph=False)
    def _embed(self, features: Any) -> Any:
        return tf.cast(self.encoder(features, training=False), tf.float32)
