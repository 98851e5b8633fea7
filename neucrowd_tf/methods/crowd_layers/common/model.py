"""The Keras models that are trained on batches of instances, drawn by index inside the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats32, KerasOptimizer, Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import annotation_losses
from neucrowd_tf.nn.steps import replicas, share_of, summed, take_step
from neucrowd_tf.training.batches import step_numbers
from neucrowd_tf.training.features import ALIGNMENT, ArrayFeatures, in_blocks

_STEPS_AT_ONCE = 64
# TensorFlow's `index_shuffle` puts this before its seed.
_PADDING = 498247692
_BYTES_AT_ONCE = 1 << 23  # of features that are read for several steps
_BYTES_CHANGED = 1 << 21  # at a time; TensorFlow's pool keeps the memory of a few such blocks


class InstanceBatches:
    """The batches of N instances, which serve every fit on as many: making them costs about 80 ms.

    An element is a step's seeds `[2]` and its instances `[B]`. The instances of an epoch are a
    permutation of 0..N-1, a function of (seed, epoch). It is drawn on the host, because other
    devices have no kernel for it. Features that are not in memory are read into the element, as its
    second of three parts.

    An epoch has ceil(N / batch_size) steps of one size. If they do not divide N, the epoch's first
    instances fill the last batch. Without replicas the element's type does not have B, so that a
    step traced for one number of instances serves others.

    Args:
        num_instances: N.
        batch_size: B, at most.
        replicas: that share a batch.
        features: `[N, ...]`, if they are not in memory.

    Attributes:
        steps: of an epoch.
    """

    def __init__(
        self,
        num_instances: int,
        batch_size: int,
        replicas: int = 1,
        features: ArrayFeatures | None = None,
    ) -> None:
        self.steps = -(-num_instances // batch_size)
        self._num_instances = num_instances
        self._size = -(-num_instances // self.steps)
        self._on_host = replicas == 1 and not tf.config.list_logical_devices("GPU")
        self._features = features
        self._pipelines: dict[int, tf.data.Dataset] = {}
        with tf.device("CPU:0"):
            self._seed = tf.Variable(0, dtype=tf.int64, trainable=False, name="draw_seed")

    def make(self, first_step: int, seed: int) -> tf.data.Dataset:
        """Returns the pipeline from a step on; an earlier one draws by this seed from now on."""
        self._seed.assign(seed % 2**31)
        if first_step not in self._pipelines:
            at_once = _STEPS_AT_ONCE
            if self._features is not None:
                bytes_of_step = 4 * self._size * math.prod(self._features.shape[1:])
                at_once = max(1, min(at_once, _BYTES_AT_ONCE // bytes_of_step))
            # One element per step from another thread would cost more than all of this.
            blocks = step_numbers(first_step, at_once).map(self._block(at_once))
            if self._features is not None:
                blocks = blocks.prefetch(1)
            elements = blocks.unbatch()
            if not self._on_host:
                elements = elements.prefetch(tf.data.AUTOTUNE)
            self._pipelines[first_step] = elements
        return self._pipelines[first_step]

    def _block(self, at_once: int) -> Callable[[Tensor], tuple[Tensor, ...]]:
        """Returns a function from a step to the elements of the steps from there on."""
        total = self._num_instances
        features = self._features

        @tf.autograph.experimental.do_not_convert
        def block(first: Tensor) -> tuple[Tensor, ...]:
            step = (first + tf.range(at_once, dtype=tf.int64))[:, None]
            length = self._size
            if self._on_host:
                length += tf.minimum(first, 0)  # no constant
            positions = (step % self.steps) * self._size + tf.range(length, dtype=tf.int64)
            positions %= total
            epoch = step // self.steps
            seed = tf.fill(tf.shape(epoch), tf.cast(self._seed, tf.uint32))
            padding = tf.fill(tf.shape(epoch), tf.constant(_PADDING, tf.uint32))
            triples = tf.concat([padding, seed, tf.cast(epoch, tf.uint32)], axis=1)
            # What `index_shuffle` calls, which takes one seed only.
            rows = tf.raw_ops.RandomIndexShuffle(
                index=tf.reshape(tf.cast(positions, tf.int32), [-1]),
                seed=tf.repeat(triples, length, axis=0),
                max_index=total - 1,
                rounds=4,
            )
            rows = tf.ensure_shape(tf.reshape(rows, tf.shape(positions)), positions.shape)
            number = (epoch * total + tf.reduce_max(positions, axis=1, keepdims=True)) % 2**31
            seeds = tf.concat([tf.cast(seed, tf.int32), tf.cast(number, tf.int32)], axis=1)
            if features is None:
                return seeds, rows
            values = tf.numpy_function(features.take, [tf.reshape(rows, [-1])], tf.float32)
            values.set_shape([None, *features.shape[1:]])
            shape = tf.concat([tf.shape(rows), features.shape[1:]], axis=0)
            return seeds, tf.reshape(values, shape), rows

        return block


def rows_variable(values: Tensor, name: str) -> tf.Variable:
    """Returns a variable that is no weight, whose first dimension may change."""
    tensor = tf.convert_to_tensor(values)
    return tf.Variable(tensor, trainable=False, shape=[None, *tensor.shape[1:]], name=name)


def _as_tensor(values: Array) -> Tensor:
    """Returns an array as a tensor, without a copy if its memory is aligned.

    Such memory is free as soon as no tensor needs it; TensorFlow's pool keeps what it has held.
    """
    if values.ctypes.data % ALIGNMENT:  # TensorFlow would end the process
        return tf.convert_to_tensor(values)
    return tf.experimental.dlpack.from_dlpack(values.__dlpack__())


class InstanceModel(keras.Model):
    """A network trained on batches of instances that are drawn by index inside the step.

    A subclass sets `parts` (what is trained and whose Keras losses count) and implements
    `batch_loss`.

    Args:
        features: `[N, ...]`, whose shape is taken (see `set_features`), or another model's variable
            of them, which is then shared.
        trained: the layers and models that are trained.
        augment: `augment(batch, seed)` or None; `seed` is a `[2]` tensor of its own for each step.

    Attributes:
        features: the variable `[N, ...]` of any number of instances, which another model may share.
        draw_seed: chooses the batches of all epochs.
        whole_batch: whether losses depend on a batch's other members: then each replica computes
            all of it, else a part.
        whole: raw features to probabilities, which shares the trained weights; what `save` saves.
    """

    whole_batch: bool = False

    def __init__(
        self,
        features: Tensor,
        trained: Sequence[Tensor],
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.trained = list(trained)
        self.augment = augment
        # Not a weight: data, neither saved nor checkpointed. It is a variable, so that a refit can
        # set its own, of any number of instances.
        if isinstance(features, tf.Variable):
            self.features = features
        else:
            self.features = rows_variable(tf.zeros((0, *features.shape[1:])), "features")
        self.draw_seed = 0
        self._step_seed: Tensor = None
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.built = True

    def set_features(self, features: Floats32, change: Callable[[Tensor], Tensor]) -> None:
        """Sets `change(features)`, block by block, so that there is one copy of them.

        Args:
            features: `[N, ...]`.
            change: returns a block in the form that the trained network takes.
        """
        self.free_features()
        rows = max(1, _BYTES_CHANGED // max(1, 4 * math.prod(features.shape[1:])))
        self.features.assign(_as_tensor(in_blocks(change, features, rows)))

    def free_features(self) -> None:
        """Frees the memory of features that no fit needs any more."""
        self.features.assign(tf.zeros((0, *self.features.shape[1:])))

    def save(self, filepath: object, overwrite: bool = True, **options: object) -> None:
        """Saves the network that predicts: raw features to probabilities."""
        vars(self)["whole"].save(filepath, overwrite=overwrite, **options)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker]

    def reset_metrics(self) -> None:
        """Resets the loss; Keras' own takes three times as long, a twentieth of a small epoch."""
        for variable in self.loss_tracker.variables:
            variable.value.assign(0.0, read_value=False)

    def batch(self, element: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the instances `[B]` and their features, augmented.

        What `batch_loss` draws is a function of `_step_seed`.

        Args:
            element: the step's seeds, the features if they are not in memory, and the instances.
        """
        self._step_seed, *values, rows = element
        if values:
            features = values[0]
        else:
            features = tf.gather(self.features.read_value(), rows)
        if self.augment is not None:
            features = self.augment(features, self._step_seed)
        if self.whole_batch:
            return rows, features
        return share_of((rows, features))

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of a batch's losses and what it is divided by.

        Both are summed over replicas before dividing.
        """
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """Returns the parts' weight penalties."""
        terms: list[Tensor] = []
        for layer in self.trained:
            terms += [tf.cast(loss, tf.float32) for loss in layer.losses]
        return tf.add_n(terms) if terms else 0.0

    def train_step(self, data: Tensor) -> dict[str, Tensor]:
        rows, features = self.batch(data)
        count = replicas()
        with tf.GradientTape() as tape:
            total, size = self.batch_loss(rows, features)
            size = summed(size)
            # Deviation: DASC eqs. 6 and 9. Paper: A sum over annotations. Here: The mean over a
            # batch's annotations. Why: The weight penalty keeps its share when pseudo-annotations
            # are added. Effect: claim dasc_half_l2.
            mean = tf.math.divide_no_nan(total, size)
            loss = self.optimizer.scale_loss(mean + self.penalty() / count)
        variables: list[Tensor] = []
        for layer in self.trained:
            variables += layer.trainable_variables
        # A gathered weight's gradient has one entry per use; an optimizer's moments need their sum.
        gradients = [
            tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
            for gradient in tape.gradient(loss, variables)
        ]
        for optimizer, group in self.optimizers(variables):
            chosen = [gradients[index] for index in group]
            if optimizer is not self.optimizer:  # which may scale losses otherwise
                ratio = optimizer.scale_loss(1.0) / self.optimizer.scale_loss(1.0)
                if not isinstance(ratio, float) or ratio != 1.0:
                    chosen = [None if grad is None else grad * ratio for grad in chosen]
            take_step(optimizer, chosen, [variables[index] for index in group])
        self.loss_tracker.update_state(mean * count)
        return {"loss": self.loss_tracker.result()}

    def optimizers(self, variables: list[Tensor]) -> list[tuple[KerasOptimizer, list[int]]]:
        """Returns each optimizer and the places of the variables that it changes."""
        return [(self.optimizer, list(range(len(variables))))]


class TargetModel(InstanceModel):
    """A classifier trained with cross-entropy against targets `[N, C]`.

    Args:
        classifier: features to probabilities `[B, C]`.
        features: `[N, ...]`.
        num_classes: C.
        augment: as of `InstanceModel`.
    """

    def __init__(
        self,
        classifier: keras.Model,
        features: Tensor,
        num_classes: int,
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(features, [classifier], augment)
        self.classifier = classifier
        self._targets = rows_variable(tf.zeros((0, num_classes)), "targets")

    def set_targets(self, targets: Array) -> None:
        """Sets what is predicted: `[N, C]`, whose rows sum to the weight of their instance."""
        self._targets.assign(targets.astype("float32"))

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.cross_entropy(features, tf.gather(self._targets, rows))

    def cross_entropy(self, features: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of cross-entropies against targets `[B, C]`, and the targets' sum."""
        probabilities = tf.cast(self.classifier(features, training=True), tf.float32)
        losses = -tf.reduce_sum(targets * tf.math.log(tf.maximum(probabilities, 1e-7)), axis=1)
        return tf.reduce_sum(losses), tf.reduce_sum(targets)


class AnnotationModel(InstanceModel):
    """A network and an annotator head, trained on the observed and generated annotations.

    Args:
        network: what is trained below the head; its outputs are the head's inputs.
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
        head: Layer,
        features: Floats32,
        *,
        few_cells: bool = True,
        gamma: float = 0.0,
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        # In this order a seed draws their weights.
        trained = [network, head] if few_cells else [head, network]
        super().__init__(features, trained, augment)
        self.network = network
        self.head = head
        self.few_cells = few_cells
        self.gamma = gamma
        self.annotator_optimizer: keras.optimizers.Optimizer | None = None
        self.whole_batch = self.whole_batch or getattr(head, "whole_batch", False)
        self._first = rows_variable(tf.zeros([1], tf.int32), "first")
        # Their number differs between rounds of self-training.
        self._given = rows_variable(tf.zeros([0, 2], tf.int32), "given")
        self._strengths = rows_variable(tf.zeros([0]), "strengths")

    def set_annotations(self, annotations: Annotations, strengths: Array) -> None:
        """Sets what is trained on, without tracing anything anew.

        Args:
            annotations: N instances by R annotators.
            strengths: `[A]` weight of each annotation.
        """
        order = np.lexsort((annotations.annotators, annotations.instances))
        counts = np.bincount(annotations.instances, minlength=annotations.num_instances)
        self._first.assign(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        pairs = np.stack([annotations.annotators[order], annotations.labels[order]], axis=1)
        self._given.assign(pairs.astype(np.int32))
        self._strengths.assign(strengths[order].astype(np.float32))

    def gathered(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
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

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        if self.few_cells:
            logits = self.head(inputs, (within, annotators))
        else:
            logits = self.head(inputs)
            cells = tf.stack([within, annotators], axis=1)
            shape = tf.shape(logits)[:2]
            labels = tf.tensor_scatter_nd_update(tf.fill(shape, -1), cells, labels)
            weights = tf.scatter_nd(cells, weights, shape)
        return tf.reduce_sum(weights * self.losses_of(labels, logits)), tf.reduce_sum(weights)

    def losses_of(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the loss of each annotation; see `annotation_losses`."""
        losses = annotation_losses(
            labels, logits, self.gamma, log_probabilities=self.head.log_probabilities
        )
        return tf.cast(losses, tf.float32)

    def set_annotator_optimizer(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Gives the head's weights an optimizer of their own; the compiled one keeps the rest."""
        variables = self.trainable_variables
        self.annotator_optimizer = optimizer
        for part, places in self.optimizers(variables):
            part.build([variables[place] for place in places])

    def optimizers(self, variables: list[Tensor]) -> list[tuple[KerasOptimizer, list[int]]]:
        if self.annotator_optimizer is None:
            return super().optimizers(variables)
        head = set(map(id, self.head.trainable_variables))
        others: list[int] = []
        of_head: list[int] = []
        for index, variable in enumerate(variables):
            group = of_head if id(variable) in head else others
            group.append(index)
        return [(self.optimizer, others), (self.annotator_optimizer, of_head)]
