"""Dropout as released code has it: a mask for each slot of a batch, and masks of the embedding."""

from __future__ import annotations

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Network, Tensor
from neucrowd_tf.nn.embedding_networks import DROPOUT_STRIDE
from neucrowd_tf.training.networks import ENCODERS, configuration


class DroppedEmbedding:
    """An estimator whose default encoder also drops out the embedding."""

    encoder: Network

    def _make_encoder(
        self, input_shape: tuple[int, ...], seed: int, name: str = "encoder"
    ) -> keras.Model:
        encoder = super()._make_encoder(input_shape, seed, name)  # type: ignore[misc]
        config = configuration("encoder", self.encoder, ENCODERS)
        if callable(config) or not config.dropout:
            return encoder
        layers = len(config.hidden_units)
        masks = seed * DROPOUT_STRIDE + layers
        dropout = keras.layers.Dropout(config.dropout, seed=masks, name=f"dropout_{layers}")
        return keras.Model(encoder.input, dropout(encoder.output), name=name)


class SlotDropout:
    """Lets an `EncoderModel` embed an instance in several slots of a batch with several masks."""

    encoder: keras.Model
    distinct: Tensor

    def embed_rows(
        self, rows: Tensor, training: bool, network: keras.Model | None = None
    ) -> Tensor:
        """Returns float32 embeddings `[..., h]` of instances `[...]`, by default the encoder's."""
        if training:
            return self.embed_slots(network or self.encoder, rows)
        return super().embed_rows(rows, training, network)  # type: ignore[misc]

    def embed_slots(self, network: keras.Model, rows: Tensor) -> Tensor:
        """Returns embeddings `[..., h]` of instances `[...]`, each with a dropout mask of its own.

        Of a chain of layers, those before the first dropout see each distinct instance once.
        """
        layers = [x for x in network.layers if not isinstance(x, keras.layers.InputLayer)]
        masks = [isinstance(layer, keras.layers.Dropout) for layer in layers]
        first = 0
        if all(isinstance(layer, keras.layers.Dense | keras.layers.Dropout) for layer in layers):
            if any(masks):
                first = masks.index(True)
            else:
                first = len(layers)
        features, positions = self.distinct(rows)
        for layer in layers[:first]:
            features = layer(features)
        embedded = tf.gather(features, tf.reshape(positions, [-1]))
        if first:
            for layer, mask in zip(layers[first:], masks[first:], strict=True):
                if mask:
                    embedded = layer(embedded, training=True)
                else:
                    embedded = layer(embedded)
        else:
            embedded = network(embedded, training=True)
        return tf.reshape(tf.cast(embedded, tf.float32), [*rows.shape, embedded.shape[-1]])
