"""The auxiliary network Q: what the classifier had said of an instance, guessed from the annotation
that was generated.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.crowding.discriminator import Discriminator


class Auxiliary(keras.layers.Layer):
    """h(z, x, e, y): a hidden layer over the discriminator's encodings of instance and annotator
    and an embedding of the label.

    The embedding m_c of a label is a linear layer over the discriminator's flattened class matrix,
    label correlation included. As in the generator, the first layer is a sum of a part of each
    input.

    Args:
        num_classes: C.
        hidden_units: width of the hidden layer.
        label_size: length of m_c.
        embedding_size: length of the discriminator's encodings.
        seed: draws the kernels.

    References:
        CrowdInG, section 3.2.2 and section 4.1 (two layers, 128 hidden units).
    """

    def __init__(
        self,
        num_classes: int,
        *,
        hidden_units: int = 128,
        label_size: int = 32,
        embedding_size: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__(name="auxiliary", dtype="float32")
        self.num_classes, self.embedding_size = num_classes, embedding_size

        def dense(units: int, index: int, use_bias: bool = False) -> keras.layers.Dense:
            maker = keras.initializers.GlorotUniform(seed * 1051 + index)
            return keras.layers.Dense(
                units, use_bias=use_bias, kernel_initializer=maker, dtype="float32"
            )

        self.label_embedding = dense(label_size, 0, use_bias=True)
        self.from_label = dense(hidden_units, 1, use_bias=True)
        self.from_instance = dense(hidden_units, 2)
        self.from_annotator = dense(hidden_units, 3)
        self.scores = dense(num_classes, 4, use_bias=True)

    def build(self, input_shape: Any = None) -> None:
        """Makes the weights; all sizes are known from the constructor."""
        k = self.embedding_size
        self.label_embedding.build((None, k * k))
        self.from_label.build((None, self.label_embedding.units))
        self.from_instance.build((None, k))
        self.from_annotator.build((None, k))
        self.scores.build((None, self.from_label.units))
        self.built = True

    def label_part(self, discriminator: Discriminator) -> Any:
        """Returns what each label adds to the hidden layer, `[C, h]`."""
        k = self.embedding_size
        return self.from_label(
            self.label_embedding(tf.reshape(discriminator.class_matrices(), [-1, k * k]))
        )

    def all_pairs(
        self, discriminator: Discriminator, features: Any, annotators: Any, labels: Any
    ) -> Any:
        """Returns log P(z | x, e, y) `[B, R, C]`.

        Args:
            features: `[B, d]`.
            annotators: `[R, e]`.
            labels: `[B, R]` class codes.
        """
        instance = self.from_instance(discriminator.instance_encoder(features))[:, None, :]
        annotator = self.from_annotator(discriminator.annotator_encoder(annotators))[None]
        hidden = tf.nn.relu(
            instance + annotator + tf.gather(self.label_part(discriminator), labels)
        )
        return tf.nn.log_softmax(self.scores(hidden))

    def some_pairs(
        self, discriminator: Discriminator, features: Any, annotators: Any, codes: Any, labels: Any
    ) -> Any:
        """Returns log P(z | x, e, y) `[P, C]` of chosen pairs; see `Discriminator.some_pairs`."""
        instance = self.from_instance(discriminator.instance_encoder(features))
        annotator = tf.gather(
            self.from_annotator(discriminator.annotator_encoder(annotators)), codes
        )
        hidden = tf.nn.relu(
            instance + annotator + tf.gather(self.label_part(discriminator), labels)
        )
        return tf.nn.log_softmax(self.scores(hidden))
