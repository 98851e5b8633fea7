"""The Keras model that trains an embedding network on tuplets; RLL uses it as it is, NeuCrowd adds its own parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.nn.similarity import similarity, tuplet_log_likelihood
from neucrowd_tf.training.tuplets import TupletIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TupletModel(keras.Model):
    """An encoder trained to tell each anchor's positive example from the negatives of its tuplet.

    One batch of the pipeline is `[batch, n]` uniform numbers; the tuplets they stand for are drawn inside the step, so
    features are never copied: each distinct instance is embedded once a step and its embedding is gathered.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: NDArray[np.float32],
        index: TupletIndex,
        weights: NDArray[np.float32],
        *,
        eta: float,
        similarity_name: str,
        offset: float = 1.0,
        weight_inside: bool = True,
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them.
            index: the instances by class.
            weights: `[N]` confidence or assurance of each instance's label.
            eta, similarity_name, offset, weight_inside: see `neucrowd_tf.nn.similarity`.
        """
        super().__init__()
        self.encoder = encoder
        self.index = index
        self.eta, self.similarity_name, self.offset, self.weight_inside = eta, similarity_name, offset, weight_inside
        self._instances = tf.constant(features)
        self._weights = tf.constant(weights.astype(np.float32))
        self.cumulative = self.add_weight(
            shape=(len(features) + 1,), dtype="float64", trainable=False, name="cumulative", initializer="zeros", autocast=False
        )
        self.cumulative.assign(index.cumulative())
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.built = True

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker]

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns embeddings."""
        return self.encoder(features, training=training)

    def draw(self, uniforms: Any) -> tuple[Any, Any]:
        """Returns tuplets `[batch, n]` and the index of each tuplet's class among `index.classes`."""
        return self.index.draw(uniforms, tf.convert_to_tensor(self.cumulative))

    def embed_tuplets(self, encoder: Any, tuplets: Any, training: bool) -> Any:
        """Returns `[batch, n, h]`, embedding each distinct instance once where that is less work than row by row."""
        batch, n = tuplets.shape
        if batch is not None and len(self._instances) <= batch * n:
            return tf.gather(encoder(self._instances, training=training), tuplets)
        flat, where = tf.unique(tf.reshape(tuplets, [-1]))
        return tf.gather(encoder(tf.gather(self._instances, flat), training=training), tf.reshape(where, tf.shape(tuplets)))

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the anchors' embeddings `[batch, h]`; a subclass may replace them."""
        del tuplets, classes
        return embeddings[:, 0]

    def tuplet_losses(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns `-log p(positive | anchor)` of each tuplet `[batch]`, in float32."""
        embeddings = tf.cast(embeddings, tf.float32)
        anchor = self.anchors(embeddings, tuplets, classes)[:, None, :]
        scores = similarity(self.similarity_name, embeddings[:, 1:], anchor, self.offset)
        weights = tf.gather(self._weights, tuplets[:, 1:])
        return -tuplet_log_likelihood(scores, weights, eta=self.eta, weight_inside=self.weight_inside)

    def global_mean(self, values: Any) -> Any:
        """Returns the mean over the batch of all replicas, as this replica's share of it (replicas' gradients are summed)."""
        replicas = tf.distribute.get_replica_context()
        count = 1 if replicas is None else replicas.num_replicas_in_sync
        return tf.reduce_mean(values) / count

    def penalty(self, network: keras.Model) -> Any:
        """Returns the network's weight penalties, this replica's share of them."""
        replicas = tf.distribute.get_replica_context()
        count = 1 if replicas is None else replicas.num_replicas_in_sync
        return tf.add_n(network.losses) / count if network.losses else 0.0

    def train_step(self, data: Any) -> dict[str, Any]:
        tuplets, classes = self.draw(data)
        with tf.GradientTape() as tape:
            embeddings = self.embed_tuplets(self.encoder, tuplets, training=True)
            losses = self.tuplet_losses(embeddings, tuplets, classes)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
        variables = self.encoder.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        self.loss_tracker.update_state(losses)
        return {"loss": self.loss_tracker.result()}

    def embed(self, features: Any, rows_at_once: int = 8192) -> NDArray[np.float32]:
        """Returns embeddings `[M, h]` of features as the encoder takes them, with dropout off."""
        if len(features) == 0:
            return np.zeros((0, self.encoder.output_shape[-1]), dtype=np.float32)
        parts = [self._embed(tf.convert_to_tensor(features[start : start + rows_at_once])) for start in range(0, len(features), rows_at_once)]
        return np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])

    @tf.function(reduce_retracing=True)
    def _embed(self, features: Any) -> Any:
        return tf.cast(self.encoder(features, training=False), tf.float32)
