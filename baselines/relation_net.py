"""Relation network (Sung et al., 2018), trained in episodes.

The embedding and the function that compares embeddings are learned together.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Floats32, Tensor
from neucrowd_tf.training.encoder_model import EncoderModel


class RelationModel(EncoderModel):
    """A relation network whose steps are episodes.

    A few instances of each class are its support, the others of the batch its queries.

    The support of a class is embedded and summed up by its mean; a small network scores each query
    against each class between 0 and 1, and learns by square error to answer 1 for the query's own
    class.

    Args:
        shots: support instances of each class.
        seed: draws the relation network's weights.
        units: width of the relation network's hidden layer.

    References:
        Sung, Yang, Zhang, Xiang, Torr, Hospedales (2018): Learning to compare, eq. (1) and (2).
    """

    def __init__(
        self, encoder: keras.Model, features: Floats32, *, shots: int, seed: int, units: int = 32
    ) -> None:
        super().__init__(encoder, features)
        self.shots = shots
        first = keras.initializers.GlorotUniform(seed=seed)
        second = keras.initializers.GlorotUniform(seed=seed + 1)
        self.relation = keras.Sequential(
            [
                keras.Input((2 * encoder.output_shape[-1],)),
                keras.layers.Dense(units, "relu", kernel_initializer=first, name="hidden"),
                keras.layers.Dense(1, "sigmoid", kernel_initializer=second, name="relation"),
            ],
            name="relation_network",
        )
        self.built = True

    def scores(self, support: Tensor, queries: Tensor) -> Tensor:
        """Returns relation scores `[Q, C]`.

        The queries are `[Q, h]`, each class's support is `[shots, C, h]`.
        """
        # Deviation: the mean instead of the sum, which is the same up to a factor that the next
        # layer's weights take up.
        prototypes = tf.reduce_mean(support, axis=0)
        count = tf.shape(queries)[0]
        classes = tf.shape(prototypes)[0]
        of_classes = tf.repeat(prototypes[None], count, axis=0)
        of_queries = tf.repeat(queries[:, None], classes, axis=1)
        pairs = tf.concat([of_classes, of_queries], axis=-1)
        flat = self.relation(tf.reshape(pairs, [-1, pairs.shape[-1]]), training=True)
        return tf.reshape(tf.cast(flat, tf.float32), [count, classes])

    def batch_losses(self, data: Tensor) -> Tensor:
        embeddings = self.embed_rows(data, training=True)
        shots = max(1, min(self.shots, data.shape[0] // 2))
        classes = tf.shape(embeddings)[1]
        width = embeddings.shape[-1]
        queries = tf.reshape(embeddings[shots:], [-1, width])
        target = tf.tile(tf.eye(classes), [tf.shape(embeddings)[0] - shots, 1])
        return tf.reduce_mean(tf.square(self.scores(embeddings[:shots], queries) - target), axis=1)
