"""The Keras models that are trained on batches of instances, drawn by index inside the step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats32, KerasOptimizer, Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import annotation_losses
from neucrowd_tf.nn.steps import replicas, share_of, summed, take_step
from neucrowd_tf.training.batches import step_numbers

_STEPS_AT_ONCE = 64


def position_batches(
    num_instances: int, batch_size: int, replicas: int = 1
) -> tuple[Callable[[int], tf.data.Dataset], int]:
    """Returns the pipeline's maker and the steps of an epoch.

    An element is `[B]` positions, N of them an epoch: which instance a position stands for is a
    permutation that the model draws for each epoch, so one pipeline serves every round of a method
    (making one costs about 80 ms).

    An epoch has ceil(N / batch_size) steps of one size; where they do not divide N, the few
    positions left over stand for the epoch's first instances once more. Without replicas the
    element's type does not say B, so that what is traced for one number of instances serves others.
    """
    steps = -(-num_instances // batch_size)
    size = -(-num_instances // steps)
    pipelines: dict[int, tf.data.Dataset] = {}
    on_host = replicas == 1 and not tf.config.list_logical_devices("GPU")

    def make(first_step: int) -> tf.data.Dataset:
        if first_step not in pipelines:

            @tf.autograph.experimental.do_not_convert
            def positions(first: tf.Tensor) -> tf.Tensor:
                step = (first + tf.range(_STEPS_AT_ONCE, dtype=tf.int64))[:, None]
                # no constant
                if on_host:
                    length = size + tf.minimum(first, 0)
                else:
                    length = size
                within = (step % steps) * size + tf.range(length, dtype=tf.int64)
                return (step // steps) * num_instances + within % num_instances

            # Another thread's element a step would cost more than all of this does.
            blocks = step_numbers(first_step, _STEPS_AT_ONCE).map(positions).unbatch()
            if on_host:
                pipelines[first_step] = blocks
            else:
                pipelines[first_step] = blocks.prefetch(tf.data.AUTOTUNE)
        return pipelines[first_step]

    return make, steps


def rows_variable(values: Tensor, name: str) -> tf.Variable:
    """Returns a variable that is no weight, whose first dimension may change."""
    tensor = tf.convert_to_tensor(values)
    return tf.Variable(tensor, trainable=False, shape=[None, *tensor.shape[1:]], name=name)


class InstanceModel(keras.Model):
    """A network trained on batches of instances that are drawn by index inside the step.

    A subclass sets `parts` (what is trained and whose Keras losses count) and implements
    `batch_loss`.

    Args:
        features: `[N, ...]`, or another model's variable of them, which is then shared.
        trained: the layers and models that are trained.
        augment: `augment(batch, seed)` or None; `seed` is a `[2]` tensor of its own for each step.

    Attributes:
        features: the variable `[N, ...]` of any number of instances, which another model may share.
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
        # Not a weight: it is data, neither saved nor checkpointed; a variable, so that a refit
        # brings its own, of as many instances as it has.
        if hasattr(features, "blocks"):  # each batch brings its features
            features = np.zeros((0, *features.shape[1:]), np.float32)
        if isinstance(features, tf.Variable):
            self.features = features
        else:
            self.features = rows_variable(features, "features")
        self._draw_seed = tf.Variable(0, dtype=tf.int64, trainable=False, name="draw_seed")
        self._step_seed: Tensor = None
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.built = True

    def save(self, filepath: object, overwrite: bool = True, **options: object) -> None:
        """Saves the network that predicts: raw features to probabilities."""
        vars(self)["whole"].save(filepath, overwrite=overwrite, **options)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker]

    def reset_metrics(self) -> None:
        """As Keras' own, which takes three times as long: of a small fit's epoch a twentieth."""
        for variable in self.loss_tracker.variables:
            variable.value.assign(0.0, read_value=False)

    def set_draw_seed(self, seed: int) -> None:
        """Chooses the permutations of all epochs."""
        self._draw_seed.assign(seed % 2**31)

    def draw(self, positions: Tensor) -> Tensor:
        """Returns the instances `[B]` at these positions.

        They are a permutation of 0..N-1 for each epoch, a function of (seed, epoch).
        """
        # A batch lies within one epoch.
        if tf.distribute.has_strategy():
            size = tf.shape(self.features, out_type=tf.int64)[0]
        else:  # without reading, and so copying, all features in each step
            size = tf.raw_ops.VariableShape(input=self.features.handle, out_type=tf.int64)[0]
        epoch = tf.reduce_max(positions) // size
        seed = tf.stack([tf.cast(self._draw_seed, tf.uint32), tf.cast(epoch, tf.uint32)])
        within = tf.cast(positions % size, tf.int32)
        return tf.random.experimental.index_shuffle(within, seed, tf.cast(size - 1, tf.int32))

    def batch(self, element: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the instances `[B]` and their features, augmented.

        What `batch_loss` draws is a function of `_step_seed`.

        Args:
            element: positions `[B]` of `position_batches`, or the step, features and instances of
                `DatasetFeatures`.
        """
        if isinstance(element, tuple):
            number, features, rows = element
        else:
            number = tf.reduce_max(element)
            rows = self.draw(element)
            features = tf.gather(self.features, rows)
        step = tf.cast(number % 2**31, tf.int32)
        self._step_seed = tf.stack([tf.cast(self._draw_seed, tf.int32), step])
        if self.augment is not None:
            features = self.augment(features, self._step_seed)
        if self.whole_batch:
            return (rows, features)
        return share_of((rows, features))

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of a batch's losses and what it is divided by.

        Both are summed over replicas before dividing.
        """
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """Returns the parts' weight penalties."""
        losses = itertools.chain.from_iterable(layer.losses for layer in self.trained)
        terms = [tf.cast(loss, tf.float32) for loss in losses]
        if terms:
            return tf.add_n(terms)
        return 0.0

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
        # A gathered weight's gradient has an entry a use; an optimizer's moments need their sum.
        gradients = [
            tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
            for gradient in tape.gradient(loss, variables)
        ]
        for optimizer, group in self.optimizers(variables):
            chosen = [gradients[index] for index in group]
            if optimizer is not self.optimizer:  # which may scale losses otherwise
                ratio = optimizer.scale_loss(1.0) / self.optimizer.scale_loss(1.0)
                if not isinstance(ratio, float) or ratio != 1.0:
                    chosen = [None if each is None else each * ratio for each in chosen]
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
        head: Layer,
        features: Floats32,
        *,
        few_cells: bool = True,
        gamma: float = 0.0,
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        # In this order a seed draws their weights.
        if few_cells:
            trained = [network, head]
        else:
            trained = [head, network]
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
        heads = self.head.trainable_variables
        optimizer.build(heads)
        others = set(map(id, self.trainable_variables)) - {*map(id, heads)}
        self.optimizer.build([each for each in self.trainable_variables if id(each) in others])
        self.annotator_optimizer = optimizer

    def optimizers(self, variables: list[Tensor]) -> list[tuple[KerasOptimizer, list[int]]]:
        if self.annotator_optimizer is None:
            return super().optimizers(variables)
        heads = set(map(id, self.head.trainable_variables))
        of_head = [index for index, each in enumerate(variables) if id(each) in heads]
        others = [index for index, each in enumerate(variables) if id(each) not in heads]
        return [(self.optimizer, others), (self.annotator_optimizer, of_head)]
