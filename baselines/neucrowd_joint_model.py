"""The residual of `neucrowd_joint`: an embedding and a linear map, trained beside a classifier."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from neucrowd_tf.training.tuplets import TupletIndex, TupletModel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ResidualModel(TupletModel):
    """Trains f and V of the logits `linear(x) + f(x) V`.

    A batch is `[batch, n + 1]` uniform numbers: n for a tuplet and one for an instance. Its loss is
    the tuplet's, times the positive's assurance (an example on which the crowd is undecided pulls
    little), plus `trust` times the cross-entropy between the instance's posterior and the softmax
    of its logits.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: NDArray[np.float32],
        index: TupletIndex,
        assurance: NDArray[np.float32],
        posterior: NDArray[Any],
        logits: NDArray[Any],
        *,
        eta: float,
        trust: float,
        l2: float,
    ) -> None:
        """Sets up training.

        Args:
            encoder: see `TupletModel`, as `features` and `index`.
            features: `[N, d]`.
            index: the instances by class.
            assurance: `[N]` of each instance's label.
            posterior: `[N, C]` class probabilities.
            logits: `[N, C]` of linear classifiers that were not trained on the instance.
            eta: smoothing of the tuplets' softmax.
            trust: how much the cross-entropy counts.
            l2: penalty on V's squares.
        """
        super().__init__(encoder, features, index, assurance, eta=eta, similarity_name="euclidean")
        self.posterior = tf.constant(posterior, tf.float32)
        self.logits = tf.constant(logits, tf.float32)
        self.trust, self.l2 = trust, l2
        self.kernel = self.add_weight(
            shape=(encoder.output_shape[-1], posterior.shape[1]),
            initializer="zeros",  # it begins as the linear classifier
            name="residual",
            autocast=False,
        )

    def losses_to(self, anchors: Any, embeddings: Any, tuplets: Any) -> Any:
        """Returns the losses `[batch]` of tuplets whose anchors' embeddings are `[batch, h]`.

        The posterior is without assurances.
        """
        relevance = self.relevance(anchors, embeddings)
        likelihood = tuplet_log_likelihood(
            relevance, tf.ones_like(relevance), eta=self.eta, weight_inside=True
        )
        return -tf.gather(self.confidence, tuplets[:, 1]) * likelihood

    def batch_losses(self, data: Any) -> Any:
        """Returns the losses `[batch]` of one batch."""
        cumulative = tf.convert_to_tensor(self.cumulative)
        point = data[:, -1] * cumulative[-1]
        place = tf.searchsorted(cumulative, point, side="right") - 1
        last = tf.constant(len(self.index.order) - 1, place.dtype)
        rows = tf.gather(tf.constant(self.index.order), tf.minimum(place, last))
        logits = tf.gather(self.logits, rows) + self.embed_rows(rows, training=True) @ self.kernel
        entropy = tf.nn.softmax_cross_entropy_with_logits(tf.gather(self.posterior, rows), logits)
        penalty = self.l2 * tf.reduce_sum(tf.square(self.kernel))
        return super().batch_losses(data[:, :-1]) + self.trust * entropy + penalty


@dataclasses.dataclass(frozen=True)
class Member:
    """A trained residual: f and V `[h, C]`."""

    encoder: keras.Model
    kernel: NDArray[np.float32]

    def residual(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Returns `[M, C]`: f(x) V of features as the encoder takes them."""
        embedded = np.asarray(self.encoder(tf.convert_to_tensor(features), training=False))
        return embedded @ self.kernel.astype(np.float64)
