"""NeuCrowd's joint learning (section 3.4): the embedding network learns from the tuplets that the
sampling network picks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import keras
import tensorflow as tf

from neucrowd_tf.neucrowd.robust_anchor import RobustAnchor
from neucrowd_tf.neucrowd.sampler import SamplingNetwork, keep_hardest
from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.tuplet_model import TupletModel
from neucrowd_tf.training.tuplets import TupletIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AnchorRule = Literal["mean", "sum", "scaled", "none"]
Selection = Literal["learned", "random", "oracle"]


class NeuCrowdModel(TupletModel):
    """The embedding network with robust anchors, and beside it the sampling network.

    References:
        NeuCrowd, section 3.4. Step 1: the sampling network scores a pool of tuplets and the hardest
            are kept. Step 2: the embedding network learns from them. Step 3: the sampling network
            learns from the losses they had.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: NDArray[np.float32],
        index: TupletIndex,
        assurance: NDArray[np.float32],
        *,
        sampler: SamplingNetwork | None,
        anchor: AnchorRule,
        anchor_space: Literal["embedding", "input"],
        pool_factor: int,
        warmup_steps: int,
        eta: float,
        similarity_name: str,
        offset: float,
        weight_inside: bool,
        weight_loss: bool = False,
        slot_dropout: bool = False,
        selection: Selection = "learned",
        hardness: str = "loss",
    ) -> None:
        """Sets up training; see `TupletModel` and `NeuCrowd`.

        Args:
            assurance: `[N]` label assurance of each instance.
            warmup_steps: how long the sampling network learns before it selects.
            selection: what the sampling network's pool is cut down by: its "learned" scores, at
                "random", or an "oracle", the loss itself.
            hardness: what the scores are trained towards, the "loss" or, as released, the
                "probability" of the positive, the least being the hardest.
        """
        super().__init__(
            encoder,
            features,
            index,
            assurance,
            eta=eta,
            similarity_name=similarity_name,
            offset=offset,
            weight_inside=weight_inside,
            weight_loss=weight_loss,
            slot_dropout=slot_dropout,
        )
        self.selection, self.by_probability = selection, hardness == "probability"
        self.sampler = sampler
        self.robust_anchor = None
        if anchor != "none":
            self.robust_anchor = RobustAnchor(len(index.classes), anchor)
        self.anchor_space = anchor_space
        self.pool_factor = pool_factor if sampler is not None else 1
        self.warmup_steps = warmup_steps
        self.trackers = [
            keras.metrics.Mean(name=name)
            for name in ("sampler_loss", "predicted_hardness", "hardness_correlation")
        ]

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker, *(self.trackers if self.sampler is not None else ())]

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the robust anchor in place of each tuplet's own (definition 4)."""
        if self.robust_anchor is None:
            return embeddings[:, 0]
        assurance = tf.gather(self.confidence, tuplets[:, 0])
        if self.anchor_space == "embedding":
            return self.robust_anchor(embeddings[:, 0], assurance, classes)
        raw = tf.reshape(tf.gather(self.instances, tuplets[:, 0]), [tf.shape(tuplets)[0], -1])
        shape = self.instances.shape[1:]
        centre = tf.reshape(self.robust_anchor(raw, assurance, classes), [-1, *shape])
        return tf.cast(self.encoder(centre, training=True), tf.float32)

    def train_step(self, data: Any) -> dict[str, Any]:
        step = tf.cast(tf.convert_to_tensor(self.optimizer.iterations), tf.int64)
        tuplets, classes = self.draw(data)
        if self.sampler is not None:
            tuplets, classes = self.select(self.sampler, tuplets, classes, step)
        losses, variables, gradients = self.representation_step(tuplets, classes)
        if self.sampler is not None:
            more, its_gradients = self.sampler_step(self.sampler, tuplets, losses)
            variables, gradients = variables + more, gradients + its_gradients
        take_step(self.optimizer, gradients, variables)
        return {metric.name: metric.result() for metric in self.metrics}

    def select(
        self, sampler: SamplingNetwork, tuplets: Any, classes: Any, step: Any
    ) -> tuple[Any, Any]:
        """Returns the tuplets with the highest predicted hardness; dropout is off while scoring.

        References:
            NeuCrowd, section 3.4, step 1.
        """
        # Deviation: "higher hardness" has no number in the paper; here the hardest 1 / pool_factor,
        # once the warm-up is over.
        if self.pool_factor == 1:
            return tuplets, classes
        if self.selection == "oracle":
            scores = self.tuplet_losses(tuplets, classes, training=False)
        else:
            scores = self.hardness(sampler, tuplets, training=False)
            scores = -scores if self.by_probability else scores
        step = -1 if self.selection == "random" else step
        keep = tuplets.shape[0] // self.pool_factor
        rows = keep_hardest(scores, keep, step >= self.warmup_steps)
        return tf.gather(tuplets, rows), tf.gather(classes, rows)

    def representation_step(self, tuplets: Any, classes: Any) -> tuple[Any, list[Any], list[Any]]:
        """Returns the losses `[batch]` of the tuplets, and the embedding network's variables with
        their gradients.

        References:
            NeuCrowd, section 3.4, step 2.
        """
        with tf.GradientTape() as tape:
            losses = self.tuplet_losses(tuplets, classes)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
        self.loss_tracker.update_state(losses)
        variables = list(self.encoder.trainable_variables)
        return losses, variables, tape.gradient(loss, variables)

    def sampler_step(
        self, sampler: SamplingNetwork, tuplets: Any, hardness: Any
    ) -> tuple[list[Any], list[Any]]:
        """Returns the sampling network's variables with the gradients of its square loss against
        the embedding network's losses `[batch]`, in which nothing flows back.

        References:
            NeuCrowd, section 3.3.4 and section 3.4, step 3.
        """
        hardness = tf.stop_gradient(hardness)
        if self.by_probability:
            hardness = tf.exp(-hardness)
        with tf.GradientTape() as tape:
            predicted = self.hardness(sampler, tuplets, training=True)
            error = tf.square(predicted - hardness)
            loss = self.global_mean(error) + self.penalty(sampler.encoder)
        a, b = predicted - tf.reduce_mean(predicted), hardness - tf.reduce_mean(hardness)
        correlation = tf.reduce_sum(a * b) * tf.math.rsqrt(
            tf.reduce_sum(a * a) * tf.reduce_sum(b * b) + 1e-12
        )
        for tracker, value in zip(self.trackers, (error, predicted, correlation), strict=True):
            tracker.update_state(value)
        variables = list(sampler.trainable_variables)
        return variables, tape.gradient(loss, variables)

    def hardness(self, sampler: SamplingNetwork, tuplets: Any, training: bool) -> Any:
        """Returns the predicted hardness `[batch]` of tuplets `[batch, n]`."""
        features, places = self.distinct(tuplets)
        scores = sampler.scores(sampler.score_table(features, training), places)
        return tf.sigmoid(scores) if self.by_probability else scores
