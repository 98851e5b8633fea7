"""EncoderModel: embedding rows by index, and the step that minimises a subclass's losses."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.nn.embedding_networks import build_encoder
from neucrowd_tf.training.encoder_model import EncoderModel
from neucrowd_tf.training.networks import DenseEncoder
from tests.crowds import array_of


class Pull(EncoderModel):
    """Pulls the embeddings of its batch to zero."""

    def __init__(self, encoder: keras.Model, features: np.ndarray) -> None:
        super().__init__(encoder, features)
        self.built = True

    def batch_losses(self, data: Any) -> Any:
        return tf.reduce_sum(tf.square(self.embed_rows(data, training=True)), axis=-1)


def test_rows_embedded_once_or_all_give_the_same() -> None:
    x = default_rng(0).normal(size=(9, 4)).astype(np.float32)
    model = Pull(build_encoder(DenseEncoder(hidden_units=(3,), dropout=0.0, l2=0.0), 4, seed=1), x)
    for rows in (
        array_of("2 2; 5 0"),
        np.arange(18).reshape(6, 3) % 9,
    ):  # fewer than all instances, and more
        expected = np.asarray(model.encoder(x))[rows]
        assert_allclose(model.embed_rows(tf.constant(rows), training=False), expected, atol=1e-6)
    assert_allclose(model.embed(x), model.encoder(x), atol=1e-6)
    assert model.embed(x[:0]).shape == (0, 3)


def test_one_step_by_hand() -> None:
    # One linear unit, weight w = 2, x = 3, loss (w x)^2 = 36, gradient 2 w x^2 = 36, penalty .5 w^2
    # with gradient w = 2; learning rate .01: w becomes 2 - .38 = 1.62. The bias's gradient is 2 w x
    # = 12: -.12.
    encoder = build_encoder(
        DenseEncoder(hidden_units=(1,), dropout=0.0, l2=0.5, activation="linear"), 1
    )
    encoder.set_weights([np.array([[2.0]]), np.array([0.0])])
    model = Pull(encoder, np.array([[3.0]], np.float32))
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    logs = model.train_step(tf.constant([0]))
    assert_allclose([float(w.item()) for w in encoder.get_weights()], [1.62, -0.12], rtol=1e-5)
    assert float(logs["loss"]) == 36.0
