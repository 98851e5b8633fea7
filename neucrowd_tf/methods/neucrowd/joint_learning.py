"""NeuCrowd's joint learning (section 3.4): embedding network and sampling network."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Fields, Tensor
from neucrowd_tf.methods.neucrowd.robust_anchor import robust_anchors
from neucrowd_tf.methods.neucrowd.sampler import SamplingNetwork, keep_hardest
from neucrowd_tf.nn.steps import share_of, take_step
from neucrowd_tf.training.tuplets import TupletModel


class NeuCrowdModel(TupletModel):
    """The embedding network with robust anchors, and beside it the sampling network.

    References:
        NeuCrowd, section 3.4. Step 1: the sampling network scores a pool of tuplets and the hardest
            are kept. Step 2: the embedding network learns from them. Step 3: the sampling network
            learns from the losses they had.
    """

    def __init__(
        self,
        *arguments: Any,
        sampler: SamplingNetwork | None,
        anchor: str,
        pool_factor: int,
        warmup_steps: int,
        **options: Any,
    ) -> None:
        """Sets up training.

        Args:
            arguments: of `TupletModel`; its confidence is the label assurance.
            sampler: the sampling network, or None.
            anchor: "mean", "sum", "embedding_sum" or "none"; see `anchors`.
            pool_factor: candidates that are scored for each tuplet that is trained on.
            warmup_steps: steps in which the sampling network learns before it selects.
            options: of `TupletModel`.
        """
        super().__init__(*arguments, **options)
        self.sampler = sampler
        self.anchor = anchor
        self.pool_factor = pool_factor
        if sampler is None:
            self.pool_factor = 1
        self.warmup_steps = warmup_steps
        # Which instances were safe when an epoch last compared them; at first all count as safe.
        self.safe = self.add_weight(
            shape=(len(self.index.order),),
            dtype="bool",
            trainable=False,
            name="safe",
            initializer="ones",
            autocast=False,
        )
        self.sampler_loss = keras.metrics.Mean(name="sampler_loss")
        self.predicted_hardness = keras.metrics.Mean(name="predicted_hardness")

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The loss, and the sampling network's figures."""
        if self.sampler is None:
            return [self.loss_tracker]
        return [self.loss_tracker, self.sampler_loss, self.predicted_hardness]

    def anchors(
        self, embeddings: Tensor, tuplets: Tensor, classes: Tensor, training: bool
    ) -> Tensor:
        """Returns the robust anchor of each tuplet's class in place of its own (definition 4).

        With "sum" it is the embedding of the example that definition 4 forms, F(sum A(e) e);
        otherwise it is formed from embeddings.

        Args:
            embeddings: `[batch, n, h]` of the tuplets.
            tuplets: `[batch, n]` instances.
            classes: `[batch]` each tuplet's positive class, an index of `index.classes`.
            training: whether dropout is on.

        Returns:
            `[batch, h]`.
        """
        drawn = embeddings[:, 0]
        size = len(self.index.classes)
        if self.anchor == "none":
            return drawn
        assurance = tf.gather(self.confidence, tuplets[:, 0])
        if self.anchor != "sum":
            reduction = self.anchor.removeprefix("embedding_")
            anchors = robust_anchors(drawn, assurance, classes, size, reduction=reduction)
            return tf.gather(anchors, classes)
        shape = self.instances.shape[1:]
        examples = tf.reshape(self.take(tuplets[:, 0]), [-1, math.prod(shape)])
        formed = robust_anchors(examples, assurance, classes, size, reduction="sum")
        embedded = self.encoder(tf.reshape(formed, [size, *shape]), training=training)
        return tf.gather(tf.cast(embedded, tf.float32), classes)

    def train_step(self, data: Tensor) -> dict[str, Tensor]:
        """Takes steps 1 to 3 of section 3.4 on a batch of uniform numbers `[pool, n]`."""
        step = tf.cast(tf.convert_to_tensor(self.optimizer.iterations), tf.int64)
        tuplets, classes = self.draw(data)
        if self.sampler is not None:
            tuplets, classes = self.select(self.sampler, tuplets, classes, step)
        tuplets, classes = share_of((tuplets, classes))
        losses, variables, gradients = self.representation_step(tuplets, classes)
        if self.sampler is not None:
            more, its_gradients = self.sampler_step(self.sampler, tuplets, losses)
            variables = variables + more
            gradients = gradients + its_gradients
        take_step(self.optimizer, gradients, variables)
        return {metric.name: metric.result() for metric in self.metrics}

    def select(
        self, sampler: SamplingNetwork, tuplets: Tensor, classes: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the tuplets with the highest predicted hardness; dropout is off while scoring.

        References:
            NeuCrowd, section 3.4, step 1.
        """
        # Deviation: NeuCrowd section 3.4, step 1. Paper: Tuplets with higher hardness are selected
        # into H. Here: The hardest of `pool_factor` (2) times the batch, all classes together, from
        # the second epoch (`sampler_warmup`). Why: An untrained sampling network selects by
        # accident. Effect: results/neucrowd_forms.csv (random and oracle selection).
        if self.pool_factor == 1:
            return tuplets, classes
        scores = self.hardness(sampler, tuplets, training=False)
        count = tuplets.shape[0] // self.pool_factor
        rows = keep_hardest(scores, count, selecting=step >= self.warmup_steps)
        return tf.gather(tuplets, rows), tf.gather(classes, rows)

    def representation_step(
        self, tuplets: Tensor, classes: Tensor
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Returns the tuplets' losses `[batch]`, and the embedding network's gradients.

        References:
            NeuCrowd, section 3.4, step 2.
        """
        with tf.GradientTape() as tape:
            losses = self.tuplet_losses(tuplets, classes)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
            loss = self.optimizer.scale_loss(loss)
        self.loss_tracker.update_state(self.logged(losses))
        variables = self.encoder.trainable_variables
        return losses, variables, tape.gradient(loss, variables)

    def sampler_step(
        self, sampler: SamplingNetwork, tuplets: Tensor, hardness: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Returns the sampling network's variables and the gradients of its square loss.

        It learns the embedding network's losses `[batch]`, into which nothing flows back.

        References:
            NeuCrowd, section 3.3.4 and section 3.4, step 3.
        """
        hardness = tf.stop_gradient(hardness)
        with tf.GradientTape() as tape:
            predicted = self.hardness(sampler, tuplets, training=True)
            error = tf.square(predicted - hardness)
            loss = self.global_mean(error) + self.penalty(sampler.encoder)
            loss = self.optimizer.scale_loss(loss)
        self.sampler_loss.update_state(self.logged(error))
        self.predicted_hardness.update_state(self.logged(predicted))
        variables = sampler.trainable_variables
        return variables, tape.gradient(loss, variables)

    def hardness(self, sampler: SamplingNetwork, tuplets: Tensor, training: bool) -> Tensor:
        """Returns the predicted hardness `[batch]` of tuplets `[batch, n]`."""
        features, places = self.distinct(tuplets)
        return sampler.scores(sampler.score_table(features, training), places)

    def figures(self, batch: int) -> dict[str, float]:
        """Returns figures of section 3's parts, for the same uniformly drawn tuplets each time.

        Dropout is off, so that a tuplet's loss and its predicted hardness belong to one network.

        Args:
            batch: tuplets that share a robust anchor.

        Returns:
            `anchor_spread`, the mean distance of robust anchors from their class's mean over that
                of the examples that they replace. With a sampling network also
                `hardness_correlation` of predicted hardness and loss; `selected_loss_ratio`, the
                mean loss of the selected tuplets over that of the pool; and
                `selected_oracle_share`, their extra loss over that of the tuplets with the highest
                losses.
        """
        return {name: float(value) for name, value in self._figures(batch).items()}

    @tf.function(reduce_retracing=True, autograph=False)
    def _figures(self, batch: int) -> Fields:
        groups = max(2, 1024 // batch)
        size = groups * batch
        tuplets, classes = self.draw_uniformly(size, 1)
        embeddings = self.embed_rows(tuplets, training=False)

        def grouped(values: Tensor) -> Tensor:
            return tf.reshape(values, [groups, batch, *values.shape[1:]])

        anchors = tf.map_fn(  # a loop in the graph: batches of one have a thousand groups
            lambda group: self.anchors(group[0], group[1], group[2], training=False),
            (grouped(embeddings), grouped(tuplets), grouped(classes)),
            fn_output_signature=embeddings.dtype,
        )
        drawn = embeddings[:, 0]
        anchors = tf.reshape(anchors, tf.shape(drawn))
        losses = self.losses_to(anchors, embeddings, tuplets)
        means = tf.math.unsorted_segment_mean(drawn, classes, len(self.index.classes))
        centres = tf.gather(means, classes)
        spread = tf.reduce_mean(tf.norm(anchors - centres, axis=1))
        spread_before = tf.reduce_mean(tf.norm(drawn - centres, axis=1))
        figures = {"anchor_spread": tf.math.divide_no_nan(spread, spread_before)}
        if self.sampler is not None:
            scores = self.hardness(self.sampler, tuplets, training=False)
            count = size // self.pool_factor
            hardest = keep_hardest(scores, count, selecting=True)
            selected = tf.reduce_mean(tf.gather(losses, hardest))
            oracle = tf.reduce_mean(tf.math.top_k(losses, count).values)
            pool = tf.reduce_mean(losses)
            figures |= {
                "hardness_correlation": correlation(scores, losses),
                "selected_loss_ratio": tf.math.divide_no_nan(selected, pool),
                "selected_oracle_share": tf.math.divide_no_nan(selected - pool, oracle - pool),
            }
        return figures


def correlation(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Returns Pearson's correlation of two vectors; NaN if one is constant."""
    first -= tf.reduce_mean(first)
    second -= tf.reduce_mean(second)
    deviations = tf.math.reduce_std(first) * tf.math.reduce_std(second)
    return tf.reduce_mean(first * second) / deviations
