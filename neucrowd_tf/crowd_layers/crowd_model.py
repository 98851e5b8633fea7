"""The Keras models that train a classifier through an annotator head.

One trains on a matrix of labels, the other on single annotations, if few of the cells have one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowd_layers.losses import annotation_losses
from neucrowd_tf.crowd_layers.model import InstanceModel, rows_variable
from neucrowd_tf.training.state import reset_optimizer

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CrowdModel(InstanceModel):
    """A network and an annotator head, trained on the annotations that there are.

    Args:
        network: what is trained.
        head: the annotator head, whose `penalty()` is added to the loss.
        features: `[N, ...]`.
        num_classes: C.
        gamma: of the focal loss; 0 is cross-entropy.
        augment: as of `InstanceModel`.
    """

    def __init__(
        self,
        network: keras.Model,
        head: Any,
        features: NDArray[np.float32],
        num_classes: int,
        *,
        gamma: float = 0.0,
        augment: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(features, [network, *self._further_parts(head)], augment)
        self.network, self.head, self.gamma = network, head, gamma
        self.num_classes = num_classes
        self.annotator_optimizer: keras.optimizers.Optimizer | None = None
        self._weights = tf.Variable(tf.ones([num_classes]), trainable=False, name="class_weights")

    def _further_parts(self, head: Any) -> list[Any]:
        """Returns what is trained beside the network."""
        return []

    def set_annotations(
        self,
        annotations: Annotations,
        weights: NDArray[np.float32],
        copies: NDArray[np.uint8] | None = None,
    ) -> None:
        """Sets what is trained on, without tracing anything anew.

        Args:
            annotations: N instances by R annotators.
            weights: `[C]` weight of an annotation of each class.
            copies: `[A]` how often each annotation counts; None counts each once.
        """
        raise NotImplementedError

    def losses_of(self, labels: Any, logits: Any) -> Any:
        """Returns the loss of each annotation; see `annotation_losses`."""
        return annotation_losses(
            labels, logits, self.gamma, log_probabilities=self.head.log_probabilities
        )

    def penalty(self) -> Any:
        return super().penalty() + self.head.penalty()

    def set_annotator_optimizer(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Gives the head's weights an optimizer of their own; the compiled one keeps the rest."""
        optimizer.build(self.head.trainable_variables)
        self.annotator_optimizer = optimizer

    def reset_annotator_optimizer(self) -> None:
        """Forgets that optimizer's moments, where there is one."""
        reset_optimizer(self.annotator_optimizer)

    def optimizers(self, variables: list[Any]) -> list[tuple[Any, list[int]]]:
        if self.annotator_optimizer is None:
            return super().optimizers(variables)
        heads = {id(variable) for variable in self.head.trainable_variables}
        of_head = [place for place, each in enumerate(variables) if id(each) in heads]
        others = [place for place, each in enumerate(variables) if id(each) not in heads]
        return [(self.optimizer, others), (self.annotator_optimizer, of_head)]


class MatrixModel(CrowdModel):
    """Trains on the matrix `[N, R]` of labels.

    One product serves all annotators, which is quickest if a good part of the cells has a label.

    Args:
        arguments: of `CrowdModel`; `network` gives logits `[B, R, C]`, through the head.
        weighted: whether annotations have copies (oversampling).
        options: of `CrowdModel`.
    """

    def __init__(self, *arguments: Any, weighted: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.head.penalised = "batch"  # when the network is called; the others once a step
        # What processes of a strategy send each other as they make a variable has no int8.
        small = self.num_classes <= 127 and not tf.distribute.has_strategy()
        shape = (0, self.head.num_annotators)
        self._labels = rows_variable(tf.zeros(shape, tf.int8 if small else tf.int32), "labels")
        self._copies = rows_variable(tf.zeros(shape, tf.uint8), "copies") if weighted else None

    def set_annotations(
        self,
        annotations: Annotations,
        weights: NDArray[np.float32],
        copies: NDArray[np.uint8] | None = None,
    ) -> None:
        self._labels.assign(annotations.to_dense(self._labels.dtype.as_numpy_dtype))
        self._weights.assign(weights)
        if self._copies is not None and copies is not None:
            matrix = np.ones(annotations.shape, dtype=np.uint8)
            matrix[annotations.instances, annotations.annotators] = copies
            self._copies.assign(matrix)

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        labels = tf.cast(tf.gather(self._labels, rows), tf.int32)
        losses = self.losses_of(labels, self.network(features, training=True))
        weights = tf.where(labels >= 0, tf.gather(self._weights, tf.maximum(labels, 0)), 0.0)
        if self._copies is not None:
            weights = weights * tf.cast(tf.gather(self._copies, rows), tf.float32)
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


class AnnotationModel(CrowdModel):
    """Trains on single annotations.

    A step gathers the head's weights for the annotators of its instances' annotations. So time and
    memory grow with labels, not with instances times annotators.

    Args:
        arguments: of `CrowdModel`; `network` gives what the head takes.
        options: of `CrowdModel`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.head.penalised = "none"
        self._batch_penalty: Any = 0.0
        self._first = rows_variable(tf.zeros([1], tf.int32), "first")
        # Their number differs between rounds of self-training.
        self._given = rows_variable(tf.zeros([0, 2], tf.int32), "given")
        self._strengths = rows_variable(tf.zeros([0]), "strengths")

    def _further_parts(self, head: Any) -> list[Any]:
        return [head]

    def set_annotations(
        self,
        annotations: Annotations,
        weights: NDArray[np.float32],
        copies: NDArray[np.uint8] | None = None,
    ) -> None:
        order = np.argsort(annotations.instances, kind="stable")
        counts = np.bincount(annotations.instances, minlength=annotations.num_instances)
        self._first.assign(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        pairs = np.stack([annotations.annotators[order], annotations.labels[order]], axis=1)
        self._given.assign(pairs.astype(np.int32))
        counted = np.ones(len(order)) if copies is None else copies[order]
        self._strengths.assign((weights[pairs[:, 1]] * counted).astype(np.float32))

    def gathered(self, rows: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Returns the annotations of a batch's instances.

        These are, `[K]` each, their places among all of them, positions in the batch, annotators,
        labels and weights.
        """
        starts = tf.gather(self._first, rows)
        counts = tf.gather(self._first, rows + 1) - starts
        ends = tf.cumsum(counts)
        numbers = tf.range(ends[-1])
        within = tf.searchsorted(ends, numbers, side="right")
        places = numbers + tf.gather(starts - ends + counts, within)
        annotators, labels = tf.unstack(tf.gather(self._given, places), axis=1)
        return places, within, annotators, labels, tf.gather(self._strengths, places)

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        losses = self.losses_of(labels, self.head.cells(inputs, within, annotators))
        self._batch_penalty = self.head.batch_penalty(inputs)
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)

    def penalty(self) -> Any:
        return super().penalty() + self._batch_penalty
