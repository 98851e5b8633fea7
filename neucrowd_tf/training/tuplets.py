"""The Keras model of an encoder that is trained on tuplets."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats32, Tensor
from neucrowd_tf.nn.similarity import similarity
from neucrowd_tf.nn.steps import share_of
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from neucrowd_tf.training.encoder_model import EncoderModel
from neucrowd_tf.training.tuplet_index import TupletIndex


class TupletModel(EncoderModel):
    """An encoder trained to tell each anchor's positive example from the negatives of its tuplet.

    One batch of the pipeline is `[batch, n]` uniform numbers; the tuplets they stand for are drawn
    inside the step, so features are never copied: each distinct instance is embedded once a step
    and its embedding is gathered.

    References:
        RLL, section III-A and III-B (eq. 3); NeuCrowd, sections 3.2 and 3.3.3.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: Floats32,
        index: TupletIndex,
        confidence: Floats32,
        *,
        eta: float,
        similarity_name: str,
        offset: float = 1.0,
        weight_inside: bool = True,
        anchor_in_sum: bool = False,
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them.
            index: the instances by class.
            confidence: `[N]` in each instance's label, within [0, 1]; NeuCrowd's assurance.
            eta, similarity_name, offset, weight_inside: see `neucrowd_tf.nn.tuplet_loss`.
            anchor_in_sum: whether the softmax's sum has the anchor too.
        """
        super().__init__(encoder, features)
        self.index = index
        self._arrays = (self.hold(index.order), self.hold(index.blocks))
        self.eta = eta
        self.weight_inside = weight_inside
        self.similarity_name = similarity_name
        self.offset = offset
        self.anchor_in_sum = anchor_in_sum
        self.confidence = self.hold(np.asarray(confidence, np.float32))
        self.cumulative = self.add_weight(
            shape=(len(features) + 1,),
            dtype="float64",
            trainable=False,
            name="cumulative",
            initializer="zeros",
            autocast=False,
        )
        self.set_probabilities(None)
        self.built = True

    def set_probabilities(self, relative: Array | None) -> None:
        """Sets the relative probability of drawing each instance, `[N]`; None for uniform."""
        self.cumulative.assign(self.index.cumulative(relative))

    def draw(self, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Returns tuplets `[batch, n]` and their classes.

        A class is an index of `index.classes`.
        """
        return self.index.draw(uniforms, tf.convert_to_tensor(self.cumulative), self._arrays)

    def draw_uniformly(self, size: int, seed: int) -> tuple[Tensor, Tensor]:
        """Returns `size` tuplets and their classes as `draw`, all instances being as probable."""
        width = self.index.negatives + 2
        uniforms = tf.random.stateless_uniform([size, width], seed=[seed, size], dtype=tf.float64)
        cumulative = tf.constant(self.index.cumulative(None))  # the same for all labels
        return self.index.draw(uniforms, cumulative, self._arrays)

    def start_as(self, other: EncoderModel) -> None:
        super().start_as(other)
        self.index = other.index

    def fixed_loss(self, size: int = 1024, *, as_trained: bool = False) -> float:
        """Returns the mean loss of the same uniformly drawn tuplets.

        It does not depend on how the model draws and selects. Dropout is off.

        Args:
            size: how many tuplets.
            as_trained: whether `anchors` replaces their anchors, as in training. Models with other
                anchors can be compared only without.
        """
        return float(self._fixed_loss(size, as_trained))

    @tf.function(reduce_retracing=True, autograph=False)
    def _fixed_loss(self, size: int, as_trained: bool) -> Tensor:
        tuplets, classes = self.draw_uniformly(size, 0)
        embeddings = self.embed_rows(tuplets, training=False)
        anchors = embeddings[:, 0]
        if as_trained:
            anchors = self.anchors(embeddings, tuplets, classes, training=False)
        return tf.reduce_mean(self.losses_to(anchors, embeddings, tuplets))

    def anchors(
        self, embeddings: Tensor, tuplets: Tensor, classes: Tensor, training: bool
    ) -> Tensor:
        """Returns the anchors' embeddings `[batch, h]`; a subclass may replace them."""
        return embeddings[:, 0]

    def tuplet_losses(self, tuplets: Tensor, classes: Tensor, *, training: bool = True) -> Tensor:
        """Returns `-log p(positive | anchor)` of each tuplet `[batch]`, in float32."""
        embeddings = self.embed_rows(tuplets, training=training)
        anchors = self.anchors(embeddings, tuplets, classes, training=training)
        return self.losses_to(anchors, embeddings, tuplets)

    def losses_to(self, anchors: Tensor, embeddings: Tensor, tuplets: Tensor) -> Tensor:
        """Returns the losses `[batch]` of tuplets whose anchors' embeddings are `[batch, h]`."""
        relevance = self.relevance(anchors, embeddings)
        confidence = tf.gather(self.confidence, tuplets[:, 1:])
        if self.anchor_in_sum:
            to_itself = self.offset if self.similarity_name == "euclidean" else 1.0
            relevance = tf.pad(relevance, [[0, 0], [0, 1]], constant_values=to_itself)
            confidence = tf.gather(self.confidence, tf.roll(tuplets, -1, axis=1))
        return -tuplet_log_likelihood(
            relevance, confidence, eta=self.eta, weight_inside=self.weight_inside
        )

    def relevance(self, anchors: Tensor, embeddings: Tensor) -> Tensor:
        """Returns similarities `[batch, n - 1]` of the anchors to the tuplets' other members."""
        return similarity(self.similarity_name, embeddings[:, 1:], anchors[:, None, :], self.offset)

    def batch_losses(self, data: Tensor) -> Tensor:
        return self.tuplet_losses(*share_of(self.draw(data)))
