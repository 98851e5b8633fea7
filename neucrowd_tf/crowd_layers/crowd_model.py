"""The Keras model that trains a classifier through an annotator head, on single annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowd_layers.losses import annotation_losses
from neucrowd_tf.crowd_layers.model import InstanceModel, rows_variable

if TYPE_CHECKING:
    from numpy.typing import NDArray


class AnnotationModel(InstanceModel):
    """A network and an annotator head, trained on the annotations that there are.

    Args:
        network: what is trained below the head; it gives what the head takes.
        head: the annotator head.
        features: `[N, ...]`.
        few_cells: whether a step gathers the head's weights for the annotators of its instances'
            annotations, so that time and memory grow with labels and not with instances times
            annotators; else one product serves all annotators, which is quicker if a good part of
            the cells has a label.
        gamma: of the focal loss; 0 is cross-entropy.
        augment: as of `InstanceModel`.
    """

    def __init__(
        self,
        network: keras.Model,
        head: Any,
        features: NDArray[np.float32],
        *,
        few_cells: bool = True,
        gamma: float = 0.0,
        augment: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        # In this order a seed draws their weights.
        parts = [network, head] if few_cells else [head, network]
        super().__init__(features, parts, augment)
        self.network, self.head, self.few_cells, self.gamma = network, head, few_cells, gamma
        self.annotator_optimizer: keras.optimizers.Optimizer | None = None
        self.whole_batch = self.whole_batch or getattr(head, "whole_batch", False)
        self._first = rows_variable(tf.zeros([1], tf.int32), "first")
        # Their number differs between rounds of self-training.
        self._given = rows_variable(tf.zeros([0, 2], tf.int32), "given")
        self._strengths = rows_variable(tf.zeros([0]), "strengths")

    def set_annotations(self, annotations: Annotations, strengths: NDArray[Any]) -> None:
        """Sets what is trained on, without tracing anything anew.

        Args:
            annotations: N instances by R annotators.
            strengths: `[A]` weight of each annotation.
        """
        order = np.argsort(annotations.instances, kind="stable")
        counts = np.bincount(annotations.instances, minlength=annotations.num_instances)
        self._first.assign(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        pairs = np.stack([annotations.annotators[order], annotations.labels[order]], axis=1)
        self._given.assign(pairs.astype(np.int32))
        self._strengths.assign(strengths[order].astype(np.float32))

    def gathered(self, rows: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Returns the annotations of a batch's instances.

        These are, `[K]` each, their places among all of them, positions in the batch, annotators,
        labels and weights.
        """
        starts = tf.gather(self._first, rows)
        counts = tf.gather(self._first, rows + 1) - starts
        ends = tf.cumsum(counts)
        numbers = tf.range(tf.reduce_sum(counts))
        within = tf.searchsorted(ends, numbers, side="right")
        places = numbers + tf.gather(starts - ends + counts, within)
        annotators, labels = tf.unstack(tf.gather(self._given, places), axis=1)
        return places, within, annotators, labels, tf.gather(self._strengths, places)

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        if self.few_cells:
            logits = self.head(inputs, (within, annotators))
        else:
            logits = self.head(inputs)
            cells, shape = tf.stack([within, annotators], axis=1), tf.shape(logits)[:2]
            labels = tf.tensor_scatter_nd_update(tf.fill(shape, -1), cells, labels)
            weights = tf.scatter_nd(cells, weights, shape)
        return tf.reduce_sum(weights * self.losses_of(labels, logits)), tf.reduce_sum(weights)

    def losses_of(self, labels: Any, logits: Any) -> Any:
        """Returns the loss of each annotation; see `annotation_losses`."""
        return annotation_losses(
            labels, logits, self.gamma, log_probabilities=self.head.log_probabilities
        )

    def set_annotator_optimizer(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Gives the head's weights an optimizer of their own; the compiled one keeps the rest."""
        heads = self.head.trainable_variables
        optimizer.build(heads)
        others = {id(variable) for variable in self.trainable_variables} - {*map(id, heads)}
        self.optimizer.build([each for each in self.trainable_variables if id(each) in others])
        self.annotator_optimizer = optimizer

    def optimizers(self, variables: list[Any]) -> list[tuple[Any, list[int]]]:
        if self.annotator_optimizer is None:
            return super().optimizers(variables)
        heads = {id(variable) for variable in self.head.trainable_variables}
        of_head = [place for place, each in enumerate(variables) if id(each) in heads]
        others = [place for place, each in enumerate(variables) if id(each) not in heads]
        return [(self.optimizer, others), (self.annotator_optimizer, of_head)]
