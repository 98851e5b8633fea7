"""Two crowd layers that correct each other's matrices by the gradient through a virtual step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Codes32, Indices, Network, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import annotation_losses
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel, rows_variable


def correction(gain: Tensor, matrices: Tensor, rate: Tensor) -> Tensor:
    """Returns what is added to the matrices of each group, `[G, C, C]`.

    It has the gain's direction; its largest entry is `rate` times the largest of the matrices'.

    Args:
        gain: `[G, C, C]`, how much a correction lowers the meta set's loss, up to a factor.
        matrices: `[R, C, C]`.
        rate: the step's size.

    References:
        Zhang et al. (2024), the correction's update, as in the authors' code.
    """
    return tf.math.divide_no_nan(rate * tf.reduce_max(matrices) * gain, tf.reduce_max(tf.abs(gain)))


class CoupledModel(AnnotationModel):
    """Two classifiers behind one head with a matrix of each for every annotator, trained together.

    Args:
        network, head, features, gamma, augment: as of `AnnotationModel`; the network
            gives both classifiers' probabilities. The head is `ccc.CoupledHead`.
        members: each of the two classifiers on its own, from the same features.
        groups: G, the number of groups of annotators.
        rate: of the correction, see `correction`.
        meta_batch: instances of the meta set per step.
    """

    whole_batch = True

    def __init__(
        self,
        *args: Any,
        members: Sequence[keras.Model],
        groups: int,
        rate: float,
        meta_batch: int,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.members = list(members)
        self.groups = groups
        self.rate = rate
        self.meta_batch = meta_batch
        self._correcting = tf.Variable(False, trainable=False, name="correcting")
        self._groups = tf.Variable(
            tf.zeros([2, self.head.num_annotators], tf.int32), trainable=False, name="groups"
        )
        # Instances and labels of each member's meta set.
        self._meta = [rows_variable(tf.zeros([0, 2], tf.int32), f"meta_{i}") for i in range(2)]

    def stop_correcting(self) -> None:
        """Trains both as plain crowd layers from here on."""
        self._correcting.assign(False)

    def start_correcting(
        self, meta: Sequence[tuple[Indices, Indices]], groups: Sequence[Codes32]
    ) -> None:
        """Sets the meta set that corrects each member, and each member's groups of annotators.

        A meta set is instances and labels; groups are `[R]`.
        """
        for variable, columns in zip(self._meta, meta, strict=True):
            variable.assign(np.stack(columns, axis=1).astype(np.int32))
        self._groups.assign(np.stack(groups))
        self._correcting.assign(True)

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of both members' losses and of weights."""
        cells = self.gathered(rows)[1:]
        corrections = tf.cond(
            self._correcting,
            lambda: self.corrections(features, cells),
            lambda: tf.zeros((2, *self.head.first.shape)),
        )
        first, second = self._member_sums(features, cells, tf.stop_gradient(corrections))
        return first + second, tf.reduce_sum(cells[3])

    def _member_sums(
        self, features: Tensor, cells: Tensor, corrections: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the weighted sum of each member's losses."""
        within, annotators, labels, weights = cells
        inputs = self.network(features, training=True)
        matrices = []
        for member, added in zip(self.head.matrices, tf.unstack(corrections), strict=True):
            matrices.append(member + added)
        logits = self.head.member_logits(inputs, matrices, (within, annotators))
        first, second = (annotation_losses(labels, member, self.gamma) for member in logits)
        return tf.reduce_sum(weights * first), tf.reduce_sum(weights * second)

    def corrections(self, features: Tensor, cells: Tensor) -> Tensor:
        """Returns `[2, R, C, C]`: what each member's matrices are to be changed by in this step.

        A step with the correction V moves the weights by `-lr dL(V)/dw`, and the meta set's loss
        behind it by `-lr d/dV <dL(V)/dw, dM/dw>`; M's gradient is taken after the step with V = 0.

        References:
            Zhang et al. (2024), the virtual step and the meta step.
        """
        # Deviation: Coupled Confusion Correction. Paper: On images only the last layer's virtual
        # step depends on the correction. Here: That of all layers, as the authors have it on
        # LabelMe. Why: The gradient as written. Effect: not measured.
        classes = self.head.first.shape[-1]
        count = tf.math.divide_no_nan(1.0, tf.reduce_sum(cells[3]))
        members = itertools.chain(*(member.trainable_variables for member in self.members))
        base = [weight.value for weight in members]
        zero = tf.zeros((2, self.groups, classes, classes))
        with tf.GradientTape() as outer:
            outer.watch(zero)
            by_annotator = tf.gather(zero, self._groups, batch_dims=1)
            with tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(base)
                losses = self._member_sums(features, cells, by_annotator)
                loss = count * (losses[0] + losses[1])
            gradients = inner.gradient(loss, base, unconnected_gradients="zero")
            meta_gradients = self._meta_gradients(base, list(map(tf.stop_gradient, gradients)))
            products = []
            for gradient, meta in zip(gradients, meta_gradients, strict=True):
                products.append(tf.reduce_sum(gradient * tf.stop_gradient(meta)))
            agreement = tf.add_n(products)
        gain = outer.gradient(agreement, zero)
        added = []
        for step, matrices in zip(tf.unstack(gain), self.head.matrices, strict=True):
            added.append(correction(step, matrices, self.rate))
        return tf.gather(tf.stack(added), self._groups, batch_dims=1)

    def _meta_gradients(self, base: list[Network], gradients: list[Tensor]) -> list[Tensor]:
        """Returns the gradient of each member's loss on a batch of its meta set.

        It is taken after a plain step against `gradients`.
        """
        rate = keras.ops.cast(self.optimizer.learning_rate, "float32")
        stepped = (value - rate * gradient for value, gradient in zip(base, gradients, strict=True))
        collected: list[Tensor] = []
        for index, member in enumerate(self.members):
            weights = list(itertools.islice(stepped, len(member.trainable_variables)))
            meta = tf.convert_to_tensor(self._meta[index])
            seed = self._step_seed + tf.constant([0, index])
            order = tf.argsort(tf.random.stateless_uniform([tf.shape(meta)[0]], seed))
            rows, labels = tf.unstack(tf.gather(meta, order[: self.meta_batch]), axis=1)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(weights)
                probabilities, _ = member.stateless_call(
                    weights,
                    [tf.convert_to_tensor(x.value) for x in member.non_trainable_variables],
                    tf.gather(self.features.read_value(), rows),
                    training=True,
                )
                chosen = tf.gather(tf.cast(probabilities, tf.float32), labels, batch_dims=1)
                loss = -tf.reduce_mean(tf.math.log(tf.maximum(chosen, 1e-7)))
            collected += tape.gradient(loss, weights, unconnected_gradients="zero")
        return collected
