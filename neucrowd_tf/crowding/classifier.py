"""DL-CL, the classifier that the game begins with: trained through a crowd layer, and, as the
control of CrowdInG's gain, trained on in the same way.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from neucrowd_tf.crowd_layers import CrowdLayer
from neucrowd_tf.crowd_layers.layers import Standardise
from neucrowd_tf.crowding.crowd import (
    Counter,
    batch_positions,
    batches_of,
    entropy,
    gradients,
    passes_over,
    shuffled,
)
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.standardise import in_blocks
from neucrowd_tf.training.state import read_variables, reset_optimizer, write_variables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PretrainedClassifier:
    """DL-CL, whose compiled network is kept for the fits of one shape of data.

    Attributes:
        estimator: the crowd-layer classifier.

    References:
        CrowdInG, section 3.3.3 (the classifier is pre-trained).
    """

    def __init__(self, estimator: CrowdLayer) -> None:
        self.estimator = estimator
        self._kept = contextlib.ExitStack()
        self._kept.enter_context(estimator.reused())  # for as long as this object lives

    def fit(self, data: TrainingData, seed: int, run: Run) -> None:
        """Trains the classifier from fresh weights."""
        self.estimator.set_params(seed=seed).fit(data.features, data.annotations, run=run)

    @functools.cached_property
    def inference(self) -> keras.Model:
        """Raw features to {"probabilities"}."""
        return self.estimator.inference_model()

    @property
    def base(self) -> keras.Model:
        """Standardised features to probabilities."""
        return self.estimator.model_.get_layer("base")

    @property
    def standardise(self) -> Any:
        """The layer that holds the features' mean and scale."""
        return self.estimator.model_.get_layer("standardise")

    def standardised(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns features as the classifier and the other networks take them."""
        return in_blocks(self.standardise, features)


def averaged_classifier(
    base: keras.Model, feature_shape: tuple[int, ...], square_root: bool
) -> tuple[keras.Model, Standardise, keras.Model]:
    """Returns a copy of a classifier, the layer that standardises what it takes, and both as a
    model from raw features to {"probabilities"}.
    """
    averaged = keras.models.clone_model(base)
    standardise = Standardise(square_root, name="standardise")
    inputs = keras.Input(feature_shape, name="features")
    outputs = keras.layers.Activation("linear", dtype="float32", name="probabilities")(
        averaged(standardise(inputs))
    )
    inference = keras.Model(inputs, {"probabilities": outputs}, name="crowding")
    return averaged, standardise, inference


def move_average(averaged: keras.Model, present: keras.Model, share: float) -> None:
    """Moves an averaged model's weights towards the present ones.

    Args:
        averaged: keeps this `share` of itself; with none it becomes the present one.
        present: of the same layers.
    """
    for mean, now in zip(averaged.trainable_variables, present.trainable_variables, strict=True):
        mean.assign(share * mean + (1.0 - share) * now)


class ContinuedClassifier(keras.Model):
    """DL-CL in further epochs, each of which has the steps of an epoch's classifier turn; what
    predicts is the running average of its weights. A step is an epoch.

    Args:
        classifier: DL-CL, fitted.
        feature_shape: of an instance.
        batch_size: instances in a batch.
        passes: inner passes of the classifier's turn.
        threshold: t; the turn has the batches of the other instances, which here are drawn from
            all of them.
        averaging: the share of itself that the average keeps each epoch.
    """

    def __init__(
        self,
        classifier: PretrainedClassifier,
        feature_shape: tuple[int, ...],
        *,
        batch_size: int,
        passes: int,
        threshold: float,
        averaging: float,
    ) -> None:
        super().__init__()
        self.pretrained = classifier
        self.trained = classifier.estimator.network.model
        self.base, self.counter = classifier.base, Counter()
        self.averaged, self.standardise, self.inference = averaged_classifier(
            self.base, feature_shape, classifier.estimator._square_root
        )
        self.batch_size, self.passes = batch_size, passes
        self.threshold, self.averaging = threshold, averaging
        self._seed = tf.Variable(0, dtype=tf.int32, trainable=False)
        self.built = True
        optimizer = FusedAdam()
        optimizer.build(self.trained.trained_variables)
        self.compile(
            optimizer=optimizer, steps_per_execution=1, jit_compile=False, auto_scale_loss=False
        )

    def restart(self, data: TrainingData, learning_rate: float, seed: int) -> None:
        """Takes over what DL-CL has become in its latest fit on the same data."""
        write_variables(self.averaged.variables, read_variables(self.base.variables))
        write_variables(
            self.standardise.variables, read_variables(self.pretrained.standardise.variables)
        )
        reset_optimizer(self.optimizer)
        self.optimizer.learning_rate.assign(learning_rate)
        self._seed.assign(seed % 2**31)

    def train_step(self, data: Any) -> dict[str, Any]:
        epoch, model = tf.cast(tf.reshape(data, []), tf.int32), self.trained
        size, batch, variables = model.num_instances, self.batch_size, model.trained_variables
        sure = min(max(round(self.threshold * size), 1), size - 1)
        steps = self.passes * -(-(size - sure) // batch)
        features = tf.convert_to_tensor(model.features)
        count = batches_of(size, batch)

        def step(_: Any, number: Any) -> Any:
            # A permutation of all instances for each pass over them.
            seed = tf.stack([tf.convert_to_tensor(self._seed), epoch * steps + number // count])
            rows = shuffled(batch_positions(number % count, batch, size), size, seed)
            with tf.GradientTape() as tape:
                total, weight = model.batch_loss(rows, tf.gather(features, rows))
                mean = tf.math.divide_no_nan(total, weight)
                loss = mean + model.penalty()
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return tf.reshape(mean / steps, [1])

        loss = passes_over(1, steps, 1, step)[0]
        move_average(self.averaged, self.base, self.averaging)
        latent = tf.cast(self.base(features, training=False), tf.float32)
        return {
            "loss": loss,
            "classifier_loss": loss,
            "classifier_entropy": tf.reduce_mean(entropy(latent)),
            "predicted_class_entropy": entropy(tf.reduce_mean(latent, axis=0)),
        }
