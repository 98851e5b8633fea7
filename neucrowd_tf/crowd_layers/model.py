"""The Keras model that is trained on batches of instances, drawn by index inside the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.nn.steps import replicas, share_of, summed, take_step
from neucrowd_tf.training.tuplets import step_numbers

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
                length = size + tf.minimum(first, 0) if on_host else size  # no constant
                within = (step % steps) * size + tf.range(length, dtype=tf.int64)
                return (step // steps) * num_instances + within % num_instances

            # Another thread's element a step would cost more than all of this does.
            blocks = step_numbers(first_step, _STEPS_AT_ONCE).map(positions).unbatch()
            pipelines[first_step] = blocks if on_host else blocks.prefetch(tf.data.AUTOTUNE)
        return pipelines[first_step]

    return make, steps


def rows_variable(values: Any, name: str) -> tf.Variable:
    """Returns a variable that is no weight, whose first dimension may change."""
    tensor = tf.convert_to_tensor(values)
    return tf.Variable(tensor, trainable=False, shape=[None, *tensor.shape[1:]], name=name)


class InstanceModel(keras.Model):
    """A network trained on batches of instances that are drawn by index inside the step.

    A subclass sets `parts` (what is trained and whose Keras losses count) and implements
    `batch_loss`.

    Args:
        features: `[N, ...]`, or another model's variable of them, which is then shared.
        parts: the layers and models that are trained.
        augment: `augment(batch, seed)` or None; `seed` is a `[2]` tensor of its own for each step.

    Attributes:
        features: the variable `[N, ...]` of any number of instances, which another model may share.
        whole_batch: whether losses depend on a batch's other members: then each replica computes
            all of it, else a part.
        whole: raw features to probabilities, which shares the trained weights; what `save` saves.
    """

    whole_batch: bool = False

    def __init__(
        self, features: Any, parts: Sequence[Any], augment: Callable[[Any, Any], Any] | None = None
    ) -> None:
        super().__init__()
        self.parts = list(parts)
        self.augment = augment
        # Not a weight: it is data, neither saved nor checkpointed; a variable, so that a refit
        # brings its own, of as many instances as it has.
        if hasattr(features, "blocks"):  # each batch brings its features
            features = np.zeros((0, *features.shape[1:]), np.float32)
        self.features = (
            features if isinstance(features, tf.Variable) else rows_variable(features, "features")
        )
        self._draw_seed = tf.Variable(0, dtype=tf.int64, trainable=False, name="draw_seed")
        self._step_seed: Any = None
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.built = True

    def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:
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

    def draw(self, positions: Any) -> Any:
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

    def batch(self, element: Any) -> tuple[Any, Any]:
        """Returns the instances `[B]` and their features, augmented.

        What `batch_loss` draws is a function of `_step_seed`.

        Args:
            element: positions `[B]` of `position_batches`, or the step, features and instances of
                `DatasetFeatures`.
        """
        if isinstance(element, tuple):
            number, features, rows = element
        else:
            number, rows = tf.reduce_max(element), self.draw(element)
            features = tf.gather(self.features, rows)
        step = tf.cast(number % 2**31, tf.int32)
        self._step_seed = tf.stack([tf.cast(self._draw_seed, tf.int32), step])
        if self.augment is not None:
            features = self.augment(features, self._step_seed)
        return (rows, features) if self.whole_batch else share_of((rows, features))

    def batch_loss(self, rows: Any, features: Any) -> tuple[Any, Any]:
        """Returns the sum of a batch's losses and what it is divided by.

        Both are summed over replicas before dividing.
        """
        raise NotImplementedError

    def penalty(self) -> Any:
        """Returns the parts' weight penalties."""
        terms = [tf.cast(loss, tf.float32) for layer in self.parts for loss in layer.losses]
        return tf.add_n(terms) if terms else 0.0

    def train_step(self, data: Any) -> dict[str, Any]:
        rows, features = self.batch(data)
        count = replicas()
        with tf.GradientTape() as tape:
            total, size = self.batch_loss(rows, features)
            size = summed(size)
            # Deviation: the papers sum over annotations; the mean keeps the weight penalty's
            # share when pseudo-annotations are added. Replicas' gradients are summed, so each
            # replica adds its share.
            mean = tf.math.divide_no_nan(total, size)
            loss = self.optimizer.scale_loss(mean + self.penalty() / count)
        variables = [variable for layer in self.parts for variable in layer.trainable_variables]
        # A gathered weight's gradient has an entry a use; an optimizer's moments need their sum.
        gradients = [
            tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient
            for gradient in tape.gradient(loss, variables)
        ]
        for optimizer, group in self.optimizers(variables):
            chosen = [gradients[place] for place in group]
            if optimizer is not self.optimizer:  # which may scale losses otherwise
                ratio = optimizer.scale_loss(1.0) / self.optimizer.scale_loss(1.0)
                if not isinstance(ratio, float) or ratio != 1.0:
                    chosen = [None if each is None else each * ratio for each in chosen]
            take_step(optimizer, chosen, [variables[place] for place in group])
        self.loss_tracker.update_state(mean * count)
        return {"loss": self.loss_tracker.result()}

    def optimizers(self, variables: list[Any]) -> list[tuple[Any, list[int]]]:
        """Returns each optimizer and the places of the variables that it changes."""
        return [(self.optimizer, list(range(len(variables))))]
