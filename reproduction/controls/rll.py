"""RLL as its released code trains it, with a point of the grid of its training script."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.declarations import estimator, one_of, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Codes32, Fields, Floats32, Indices, Network, Tensor
from neucrowd_tf.methods.rll.confidence import bayesian_confidence
from neucrowd_tf.methods.rll.estimator import RLL
from neucrowd_tf.training.batches import pipelines
from neucrowd_tf.training.representation import SECOND_SEED, EmbeddingData, adadelta
from neucrowd_tf.training.tuplets import TupletModel
from reproduction.controls.slots import DroppedEmbedding, SlotDropout

# The prior of every label, positive or negative.
ALPHA = 3.0
BETA = 2.0
# Passes over all pairs between two looks at the validation loss.
PASSES = 10
# The point of the grid of source/train.py with the lowest loss of validation groups of hotel, of
# those that were tried (docs/papers/rll.md). Its penalty, halved by TensorFlow, is added
# to the sum over a batch. Features are standardised, as the scaling of the authors' is not known
# and their code stops at a higher validation loss without.
BATCH = 512
PENALTY = 1.5
RELEASED: Fields = {
    "hidden_units": (32, 16),
    "dropout": 0.7,
    "l2": PENALTY / 2 / BATCH,
    "batch_size": BATCH,
    "epochs": 150 // PASSES,
    "patience": 5,
    "eta": 10.0,
    "optimizer": adadelta(0.1),
    "weight_inside": False,
}


def all_pairs(seed: int, positives: int, batch: int, width: int) -> Tensor:
    """Returns `make(first_step)`, batches of uniform numbers that stand for all pairs of positives.

    They are `[batch, width]`, functions of (seed, step) alone, and mean this to a `TupletIndex`
    that draws uniformly. Pairs are shuffled, each has negatives of its own, and every pass has the
    same ones. A pass leaves out the pairs that do not fill a batch.

    Args:
        seed: draws the order and the negatives.
        positives: how many instances have the positive class, at least 2.
        batch: tuplets a batch.
        width: n.
    """
    pairs = positives * (positives - 1)
    passes = max(1, pairs // batch)

    def draw(step: tf.Tensor) -> tf.Tensor:
        position = ((step % passes) * batch + tf.range(batch, dtype=tf.int64)) % pairs
        order = tf.constant([seed, pairs], tf.int64)
        pair = tf.random.experimental.index_shuffle(position, seed=order, max_index=pairs - 1)
        # The middle of the interval of an anchor, and of one of the others as its positive.
        first = pair // (positives - 1)
        second = pair % (positives - 1)
        members = [(first, positives), (second, positives - 1)]
        chosen = [(tf.cast(row, tf.float64) + 0.5) / size for row, size in members]
        draw_seed = tf.stack([tf.constant(seed, tf.int64), step % passes])
        shape = [batch, width - 2]
        negatives = tf.random.stateless_uniform(shape, seed=draw_seed, dtype=tf.float64)
        return tf.concat([tf.stack(chosen, axis=1), negatives], axis=1)

    return pipelines(draw)


class TwoTowerModel(SlotDropout, TupletModel):
    """A tuplet model in which a second network, the query tower, embeds the anchors.

    Anchors are positive examples alone, so predictions take `encoder`, which learns from both.
    """

    def __init__(
        self, *arguments: Any, make_tower: Callable[[tuple[int, ...]], keras.Model], **options: Any
    ) -> None:
        """Sets up training.

        Args:
            arguments: of `TupletModel`.
            make_tower: returns the second network for a shape of features.
            options: of `TupletModel`.
        """
        super().__init__(*arguments, **options)
        self.query = make_tower(tuple(self.instances.shape[1:]))

    def embed_rows(
        self, rows: Tensor, training: bool, network: keras.Model | None = None
    ) -> Tensor:
        """Returns embeddings `[batch, n, h]` of tuplets `[batch, n]`, whose anchors come first."""
        anchors = super().embed_rows(rows[:, :1], training, self.query)
        return tf.concat([anchors, super().embed_rows(rows[:, 1:], training, network)], axis=1)

    def penalty(self, network: keras.Model) -> Tensor:
        """Returns the penalty on the weights of both networks."""
        return super().penalty(network) + super().penalty(self.query)


@register_method(
    "rll_equations",
    summary="RLL with equations 1 and 2 to the letter, which weigh examples by positive votes",
    max_classes=2,
)
@estimator
class PrintedRLL(RLL):
    """RLL whose confidence is the share of positive votes of every example; see `RLL`.

    Negative examples that all annotators agree on weigh nothing, or little by equation 2.

    References:
        RLL, section III-B, eqs. (1) and (2).
    """

    max_classes: ClassVar[int | None] = 2

    def _confidence(self, votes: Codes32, labels: Indices) -> Floats32:
        if self.confidence == "majority":
            return super()._confidence(votes, labels)
        alpha = 0.0
        beta = 0.0
        if self.confidence == "bayesian":
            alpha = self.prior_mass * float(labels.mean())
            beta = self.prior_mass - alpha
        confidence = (alpha + votes[:, 1]) / (alpha + beta + votes.sum(axis=1))
        return confidence.astype(np.float32)


@register_method(
    "rll_released",
    summary="RLL-Bayesian as its released code trains it, with a point of that code's grid",
    defaults=RELEASED,
    max_classes=2,
)
@estimator
class ReleasedRLL(DroppedEmbedding, RLL):
    """RLL as its authors' code trains it; see `RLL`.

    Groups have all pairs of positives, each with the same negatives in every pass; the anchors have
    a network of their own, and the other one makes the embedding; the Beta prior is the same for
    positive and negative labels; the epoch is chosen by the loss of validation groups.
    """

    max_classes: ClassVar[int | None] = 2

    steps_per_epoch: Annotated[
        int | None, whole(1), f"batches an epoch; by default {PASSES} passes over all pairs."
    ] = None  # type: ignore[assignment]
    monitor: Annotated[
        str,
        one_of("loss", "auc", "accuracy", "log_loss"),
        'the validation figure that chooses the epoch: the "loss" of validation groups, "auc",'
        ' "accuracy" or "log_loss".',
    ] = "loss"

    def _confidence(self, votes: Codes32, labels: Indices) -> Floats32:
        if self.confidence != "bayesian":
            return super()._confidence(votes, labels)
        return bayesian_confidence(votes, labels, (np.full(2, ALPHA), np.full(2, BETA)))

    def _steps(self, data: EmbeddingData) -> int:
        if self.steps_per_epoch is not None:
            return self.steps_per_epoch
        positives = int(data.labels.sum())
        return PASSES * max(1, positives * (positives - 1) // self.batch_size)

    def _model_and_batches(self, data: EmbeddingData) -> tuple[Network, Network]:
        model, _ = super()._model_and_batches(data)
        positives = int(data.labels.sum())
        return model, all_pairs(self.seed, positives, self.batch_size, self.k + 2)

    def _model_class(self) -> Callable[..., TupletModel]:
        return functools.partial(
            TwoTowerModel,
            make_tower=lambda shape: self._make_encoder(shape, self.seed + SECOND_SEED, "query"),
        )

    def _judge(self, model: Network, data: EmbeddingData) -> Callable[[], Mapping[str, float]]:
        # Deviation: RLL III-A. Paper: The released code chooses the epoch by the loss of
        # validation groups, whose positives are negatives by mistake, and adds the penalty to it.
        # Here: Validation AUC; `rll_released` has the loss of validation groups with positives,
        # without the penalty, and labels that count fully, as their votes are not known to `fit()`.
        # Why: Groups without a positive say nothing. Effect: Which epoch; sources.
        full = np.ones(len(data.validation), np.float32)
        validation_model = self._model(model.encoder, data.validation, data.validation_labels, full)
        validation_model.query = model.query
        return lambda: {"loss": validation_model.fixed_loss(4096)}
