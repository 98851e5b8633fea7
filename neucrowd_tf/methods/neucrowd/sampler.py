"""The n-tuplet sampling network (NeuCrowd, section 3.3.4), which predicts hardness."""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Tensor


class SamplingNetwork(keras.layers.Layer):
    """A shared encoder whose n concatenated embeddings give one linear "hardness" score.

    Such a score is a sum with one number for each slot of the tuplet. `score_table` computes these
    numbers once for each distinct instance, and `scores` looks them up for a whole pool of tuplets.

    Args:
        encoder: `[None, ...] -> [None, h]`.
        n: size of a tuplet.
        seed: draws the weights of the linear score.

    References:
        NeuCrowd, section 3.3.4. The square loss trains it towards the embedding network's loss.
    """

    def __init__(self, encoder: keras.Model, n: int, seed: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.n = n
        # Deviation: NeuCrowd section 3.3.4. Paper: The concatenation is "used as features", of what
        # is not said (released code: one dense layer); weights start normal (4.3). Here: The dense
        # layer's score; its weights start as a Glorot kernel of h x n, with a deviation of 0.236 at
        # h 32 and n 5, where one of h n x 1 has 0.113. Why: They are stored by slot. Effect: not
        # measured.
        self.slots = self.add_weight(
            shape=(encoder.output_shape[-1], n),
            initializer=keras.initializers.GlorotUniform(seed=seed),
            name="slots",
            autocast=False,
        )
        self.bias = self.add_weight(shape=(), initializer="zeros", name="bias", autocast=False)
        self.built = True

    def score_table(self, features: Tensor, training: bool) -> Tensor:
        """Returns `[N, n]` float32: what each instance adds to a tuplet's score in each slot."""
        return tf.matmul(tf.cast(self.encoder(features, training=training), tf.float32), self.slots)

    def scores(self, table: Tensor, tuplets: Tensor) -> Tensor:
        """Returns the predicted hardness `[batch]` of tuplets `[batch, n]` of rows of the table."""
        flat = tuplets * self.n + tf.range(self.n, dtype=tuplets.dtype)[None, :]
        return tf.reduce_sum(tf.gather(tf.reshape(table, [-1]), flat), axis=1) + self.bias


def keep_hardest(scores: Tensor, keep: int, *, selecting: Tensor) -> Tensor:
    """Returns the positions `[keep]` of the tuplets with the highest predicted hardness.

    Args:
        scores: `[pool]` predicted hardness.
        keep: how many tuplets to keep.
        selecting: scalar bool. If it is False (in the sampling network's warm-up), the first `keep`
            tuplets are taken as they were drawn.

    References:
        NeuCrowd, section 3.4, step 1.
    """
    as_drawn = -tf.cast(tf.range(tf.shape(scores)[0]), scores.dtype)
    _, rows = tf.math.top_k(tf.where(selecting, scores, as_drawn), k=keep, sorted=True)
    return rows
