"""NeuCrowd's joint iteration (sections 3.3.3 and 3.4): the embedding network learns from the
tuplets that the sampling network picks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import keras
import tensorflow as tf

from neucrowd_tf.neucrowd.robust_anchor import robust_anchor
from neucrowd_tf.neucrowd.sampler import SamplingNetwork, keep_hardest
from neucrowd_tf.training.tuplet_model import TupletModel
from neucrowd_tf.training.tuplets import TupletIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AnchorRule = Literal["mean", "sum", "none"]


class NeuCrowdModel(TupletModel):
    """The embedding network with robust anchors, and beside it the sampling network.

    References:
        NeuCrowd, section 3.4. Step 1: the sampling network scores a pool of tuplets and the hardest
            are kept. Step 2: the
        embedding network learns from them. Step 3: the sampling network learns from the losses they
            had.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: NDArray[np.float32],
        index: TupletIndex,
        weights: NDArray[np.float32],
        *,
        sampler: SamplingNetwork | None,
        anchor: AnchorRule,
        anchor_space: Literal["embedding", "input"],
        pool_factor: int,
        warmup_steps: int,
        **similarity_options: Any,
    ) -> None:
        """See `TupletModel`; `warmup_steps` is how long the sampling network learns before it
        selects.
        """
        super().__init__(encoder, features, index, weights, **similarity_options)
        self.sampler = sampler
        self.anchor_rule, self.anchor_space = anchor, anchor_space
        self.pool_factor = pool_factor if sampler is not None else 1
        self.warmup_steps = warmup_steps
        self.trackers = [
            keras.metrics.Mean(name=name)
            for name in ("sampler_loss", "predicted_hardness", "hardness_correlation")
        ]

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return (
            [self.loss_tracker, *self.trackers] if self.sampler is not None else [self.loss_tracker]
        )

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the robust anchor in place of each tuplet's own (definition 4)."""
        if self.anchor_rule == "none":
            return embeddings[:, 0]
        assurance = tf.gather(self._weights, tuplets[:, 0])
        if self.anchor_space == "embedding":
            return robust_anchor(
                embeddings[:, 0],
                assurance,
                classes,
                len(self.index.classes),
                reduction=self.anchor_rule,
            )
        raw = tf.reshape(tf.gather(self._instances, tuplets[:, 0]), [tf.shape(tuplets)[0], -1])
        centre = robust_anchor(
            raw, assurance, classes, len(self.index.classes), reduction=self.anchor_rule
        )
        shaped = tf.reshape(centre, tf.concat([[-1], tf.shape(self._instances)[1:]], axis=0))
        return tf.cast(
            self.encoder(
                tf.ensure_shape(shaped, [None, *self._instances.shape[1:]]), training=True
            ),
            tf.float32,
        )

    def select(self, tuplets: Any, classes: Any, step: Any) -> tuple[Any, Any]:
        """Returns the tuplets with the highest predicted hardness (step 1); dropout is off while
        scoring.
        """
        # Deviation: "higher hardness" has no number in the paper; here the hardest 1 / pool_factor,
        # once the warm-up is over.
        keep = tuplets.shape[0] // self.pool_factor
        if self.sampler is None or self.pool_factor == 1:
            return tuplets, classes
        scores = self._sampler_scores(tuplets, training=False)
        rows = keep_hardest(scores, keep, step >= self.warmup_steps)
        return tf.gather(tuplets, rows), tf.gather(classes, rows)

    def _sampler_scores(self, tuplets: Any, training: bool) -> Any:
        if (
            tuplets.shape[0] is not None
            and len(self._instances) <= tuplets.shape[0] * tuplets.shape[1]
        ):
            return self.sampler.scores(self.sampler.score_table(self._instances, training), tuplets)  # type: ignore[union-attr]
        flat, where = tf.unique(tf.reshape(tuplets, [-1]))
        table = self.sampler.score_table(tf.gather(self._instances, flat), training)  # type: ignore[union-attr]
        return self.sampler.scores(table, tf.reshape(where, tf.shape(tuplets)))  # type: ignore[union-attr]

    def train_step(self, data: Any) -> dict[str, Any]:
        tuplets, classes = self.draw(data)
        tuplets, classes = self.select(
            tuplets, classes, tf.cast(tf.convert_to_tensor(self.optimizer.iterations), tf.int64)
        )
        with tf.GradientTape() as tape:
            losses = self.tuplet_losses(
                self.embed_rows(self.encoder, tuplets, training=True), tuplets, classes
            )
            loss = self.global_mean(losses) + self.penalty(self.encoder)
        variables = list(self.encoder.trainable_variables)
        gradients = tape.gradient(loss, variables)
        self.loss_tracker.update_state(losses)
        if self.sampler is not None:
            more, its_gradients = self._sampler_gradients(tuplets, tf.stop_gradient(losses))
            variables, gradients = variables + more, gradients + its_gradients
        self.optimizer.apply(gradients, variables)
        return {metric.name: metric.result() for metric in self.metrics}

    def _sampler_gradients(self, tuplets: Any, hardness: Any) -> tuple[list[Any], list[Any]]:
        """Returns the sampling network's variables and gradients: square loss against the embedding
        network's loss (step 3).
        """
        with tf.GradientTape() as tape:
            predicted = self._sampler_scores(tuplets, training=True)
            error = tf.square(predicted - hardness)
            loss = self.global_mean(error) + self.penalty(self.sampler.encoder)  # type: ignore[union-attr]
        a, b = predicted - tf.reduce_mean(predicted), hardness - tf.reduce_mean(hardness)
        correlation = tf.reduce_sum(a * b) * tf.math.rsqrt(
            tf.reduce_sum(a * a) * tf.reduce_sum(b * b) + 1e-12
        )
        for tracker, value in zip(self.trackers, (error, predicted, correlation), strict=True):
            tracker.update_state(value)
        variables = list(self.sampler.trainable_variables)  # type: ignore[union-attr]
        return variables, tape.gradient(loss, variables)
