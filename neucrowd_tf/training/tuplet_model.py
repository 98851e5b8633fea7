"""The Keras model that trains an embedding network on tuplets; RLL uses it as it is, NeuCrowd adds
its own parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from neucrowd_tf.nn.similarity import similarity
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from neucrowd_tf.training.encoder_model import EncoderModel
from neucrowd_tf.training.tuplets import TupletIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        features: NDArray[np.float32],
        index: TupletIndex,
        confidence: NDArray[np.float32],
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
            confidence: `[N]` in each instance's label, within [0, 1]; NeuCrowd's assurance.
            eta, similarity_name, offset, weight_inside: see `neucrowd_tf.nn.tuplet_loss`.
        """
        super().__init__(encoder, features)
        self.index = index
        self.eta, self.weight_inside = eta, weight_inside
        self.similarity_name, self.offset = similarity_name, offset
        self.confidence = tf.constant(confidence, dtype=tf.float32)
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

    def set_probabilities(self, relative: NDArray[Any] | None) -> None:
        """Sets how likely each instance is drawn, `[N]` relative to the others; None for all
        alike.
        """
        self.cumulative.assign(self.index.cumulative(relative))

    def draw(self, uniforms: Any) -> tuple[Any, Any]:
        """Returns tuplets `[batch, n]` and the index of each tuplet's class among
        `index.classes`."""
        return self.index.draw(uniforms, tf.convert_to_tensor(self.cumulative))

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the anchors' embeddings `[batch, h]`; a subclass may replace them."""
        del tuplets, classes
        return embeddings[:, 0]

    def tuplet_losses(self, tuplets: Any, classes: Any, training: bool = True) -> Any:
        """Returns `-log p(positive | anchor)` of each tuplet `[batch]`, in float32."""
        embeddings = self.embed_rows(tuplets, training)
        anchor = self.anchors(embeddings, tuplets, classes)[:, None, :]
        relevance = similarity(self.similarity_name, embeddings[:, 1:], anchor, self.offset)
        return -tuplet_log_likelihood(
            relevance,
            tf.gather(self.confidence, tuplets[:, 1:]),
            eta=self.eta,
            weight_inside=self.weight_inside,
        )

    def batch_losses(self, data: Any) -> Any:
        return self.tuplet_losses(*self.draw(data))
