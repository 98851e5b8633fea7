"""ICED's networks - feature extractor, classifier, decoder - and the model that trains them.

One call of the compiled step trains for a whole epoch. It has three loops inside the graph, over
the batches of the auto-encoder, of the classifier and of the decoder alone. Variables that are set
before the epoch say how many batches each has, and which rows. So the warm-up, the auto-encoder and
every round run the same compiled function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats32, Indices, Integers, Network, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.embedding_networks import KERNEL_STRIDE, build_encoder, embedding_model
from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.features import in_blocks
from neucrowd_tf.training.learner import Learner
from neucrowd_tf.training.networks import DenseEncoder, ICEDEncoder
from neucrowd_tf.training.state import user_network

Networks = tuple[keras.Model, keras.Model, keras.Model]

ROWS_AT_ONCE = 4096
# The networks' seeds are this far apart, so that no two of their layers draw the same numbers.
_DECODER = 7919
_CLASSIFIER = 104729


class ICEDModel(Learner):
    """Trains on the real instances and on synthetic ones that change from round to round."""

    def __init__(
        self,
        encoder: keras.Model,
        classifier: keras.Model,
        decoder: keras.Model,
        features: Floats32,
        num_classes: int,
        *,
        batch_size: int,
        make_optimizer: Callable[[], keras.optimizers.Optimizer],
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, ...] -> [None, h]` (the paper's feature extractor).
            classifier: `[None, h] -> [None, C]` logits (its fully connected layer).
            decoder: `[None, h] -> [None, ...]`.
            features: `[N, ...]` as the encoder takes them.
            num_classes: C.
            batch_size: rows a step.
            make_optimizer: returns a new optimizer; each of the three trainings has its own.
        """
        super().__init__()
        self.encoder = encoder
        self.classifier = classifier
        self.decoder = decoder
        self.num_instances = len(features)
        self.batch_size = batch_size
        self._instances = tf.constant(features)

        # Shapes are open, so that new values do not mean a new trace. They are set before each
        # epoch and therefore are no part of a checkpoint.
        def variable(*shape: int, dtype: type = np.float32) -> tf.Variable:
            zeros: Array = np.zeros((1, *shape), dtype)
            return tf.Variable(zeros, shape=(None, *shape), trainable=False)

        self._synthetic = variable(*features.shape[1:])
        self._targets = variable(num_classes)
        self._orders = [variable(dtype=np.int32) for _ in range(3)]
        self._steps = tf.Variable(np.zeros(3, np.int32), trainable=False)
        self.autoencoder_optimizer = make_optimizer()
        self.decoder_optimizer = make_optimizer()
        self.classifier_optimizer = make_optimizer()
        for optimizer, networks in (
            (self.autoencoder_optimizer, [encoder, decoder]),
            (self.decoder_optimizer, [decoder]),
            (self.classifier_optimizer, [encoder, classifier]),
        ):
            optimizer.build(_trainable(networks))
        batch = [tf.TensorSpec([None, *decoder.input_shape[1:]], tf.float32)]
        self._decode = tf.function(self._decode_batch, input_signature=batch, autograph=False)
        self.optimizer = self.classifier_optimizer
        self._trained = tf.function(self._train, autograph=False, reduce_retracing=True)

    @property
    def networks(self) -> Sequence[keras.Model]:
        """Feature extractor, classifier and decoder."""
        return self.encoder, self.classifier, self.decoder

    # ----------------------------------------------------------------- what an epoch consists of

    def set_epoch(
        self,
        *,
        autoencoder: Integers | tuple[()] = (),
        classifier: Integers | tuple[()] = (),
        decoder: Integers | tuple[()] = (),
    ) -> None:
        """Sets which rows the next epoch's batches take, in their order.

        Args:
            autoencoder, classifier, decoder: rows for each of the three trainings; their number is
                a multiple of the batch size.
        """
        orders = (autoencoder, classifier, decoder)
        for variable, order in zip(self._orders, orders, strict=True):
            variable.assign(np.asarray(order, dtype=np.int32))
        self._steps.assign([len(order) // self.batch_size for order in orders])

    def set_rows(self, targets: Array, synthetic: Floats32 | None = None) -> None:
        """Sets the targets of the real and then the synthetic rows, and the synthetic features.

        Args:
            targets: `[N + S, C]` class probabilities, times the row's weight where it is not one.
            synthetic: `[S, ...]`; None keeps the earlier ones, which no row then names.
        """
        self._targets.assign(np.asarray(targets, dtype=np.float32))
        if synthetic is not None and len(synthetic):
            self._synthetic.assign(synthetic)

    # ----------------------------------------------------------------- one compiled epoch

    def train_epoch(self, epoch: int) -> Mapping[str, Tensor]:
        """Trains for an epoch, on the rows that were set for it."""
        return self._trained()  # type: ignore[no-any-return]

    def _train(self) -> dict[str, Tensor]:
        reconstruction = self._loop(
            0, self._autoencoder_loss, self.autoencoder_optimizer, [self.encoder, self.decoder]
        )
        loss = self._loop(
            1, self._classifier_loss, self.classifier_optimizer, [self.encoder, self.classifier]
        )
        decoding = self._loop(2, self._decoder_loss, self.decoder_optimizer, [self.decoder])
        return {"loss": loss, "reconstruction": reconstruction + decoding}

    def _loop(
        self,
        training: int,
        loss_of: Callable[[Tensor], Tensor],
        optimizer: keras.optimizers.Optimizer,
        networks: list[keras.Model],
    ) -> Tensor:
        """Takes all steps of one training; returns the mean loss, 0 without any step.

        Args:
            training: 0 for the auto-encoder, 1 for the classifier, 2 for the decoder alone.
            loss_of: from rows `[batch]` to their mean loss.
            optimizer: of this training.
            networks: whose weights it changes.
        """
        variables = _trainable(networks)
        order = self._orders[training]
        steps = self._steps[training]
        size = self.batch_size

        def body(step: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
            rows = order[step * size : (step + 1) * size]
            with tf.GradientTape() as tape:
                loss = loss_of(rows)
                terms = [loss]
                for network in networks:
                    terms += network.losses
                penalised = optimizer.scale_loss(tf.add_n(terms))
            take_step(optimizer, tape.gradient(penalised, variables), variables)
            return step + 1, total + loss

        start = tf.zeros((), tf.int32), tf.zeros((), tf.float32)
        _, total = tf.while_loop(lambda step, _: step < steps, body, start, parallel_iterations=1)
        return tf.math.divide_no_nan(total, tf.cast(steps, tf.float32))

    def _gather(self, rows: Tensor) -> Tensor:
        """Returns the features of rows `[batch]`: real instances below N, synthetic ones from N."""
        real = tf.gather(self._instances, tf.minimum(rows, self.num_instances - 1))
        synthetic = tf.gather(self._synthetic, tf.maximum(rows - self.num_instances, 0))
        is_real = tf.reshape(rows < self.num_instances, [-1] + [1] * (len(real.shape) - 1))
        return tf.where(is_real, real, synthetic)

    def _autoencoder_loss(self, rows: Tensor) -> Tensor:
        x = tf.gather(self._instances, rows)
        return _error(x, self.decoder(self.encoder(x, training=True), training=True))

    def _decoder_loss(self, rows: Tensor) -> Tensor:
        x = tf.gather(self._instances, rows)
        z = tf.stop_gradient(self.encoder(x, training=False))
        return _error(x, self.decoder(z, training=True))

    def _classifier_loss(self, rows: Tensor) -> Tensor:
        z = self.encoder(self._gather(rows), training=True)
        logits = tf.cast(self.classifier(z, training=True), tf.float32)
        targets = tf.gather(self._targets, rows)
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, logits))

    # ----------------------------------------------------------------- use

    @tf.function(autograph=False)
    def _outputs(self, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encoder(self._instances[start:stop], training=False)
        logits = self.classifier(z, training=False)
        return tf.cast(z, tf.float32), tf.nn.softmax(tf.cast(logits, tf.float32))

    def outputs(self) -> tuple[Floats32, Floats32]:
        """Returns embeddings and class probabilities of the real instances, with dropout off.

        Returns:
            `[N, h]` and `[N, C]`.
        """
        blocks = [
            self._outputs(tf.constant(start), tf.constant(start + ROWS_AT_ONCE))
            for start in range(0, self.num_instances, ROWS_AT_ONCE)
        ]
        embeddings, probabilities = map(np.concatenate, zip(*blocks, strict=True))
        return embeddings, probabilities

    def _decode_batch(self, embeddings: Tensor) -> Tensor:
        return tf.cast(self.decoder(embeddings, training=False), tf.float32)

    def decode(self, embeddings: Floats32) -> Floats32:
        """Returns rows of the input space `[S, ...]` for embeddings `[S, h]`."""
        return in_blocks(self._decode, embeddings, ROWS_AT_ONCE)


def _trainable(networks: Sequence[keras.Model]) -> list[Tensor]:
    variables: list[Tensor] = []
    for network in networks:
        variables += network.trainable_variables
    return variables


def _error(x: Tensor, reconstructed: Tensor) -> Tensor:
    return tf.reduce_mean(tf.square(tf.cast(x, tf.float32) - tf.cast(reconstructed, tf.float32)))


def epoch_order(
    rows: Integers, batch_size: int, rng: np.random.Generator, passes: int = 1
) -> Indices:
    """Returns shuffled passes over rows, one after the other, each in whole batches.

    A pass is filled up to whole batches with rows of further shuffles.

    Args:
        rows: at least one.
        batch_size: rows per batch.
        rng: draws the shuffles.
        passes: at least one.
    """
    full = math.ceil(len(rows) / batch_size) * batch_size
    shuffles_per_pass = math.ceil(full / len(rows))
    shuffles = [rng.permutation(rows) for _ in range(passes * shuffles_per_pass)]
    return np.reshape(shuffles, (passes, -1))[:, :full].ravel()


# --------------------------------------------------------------------- the networks


def default_encoder(
    input_shape: tuple[int, ...], config: DenseEncoder, seed: int = 0
) -> keras.Model:
    """Returns the default feature extractor: fully connected layers, of flattened images too.

    References:
        ICED, figure 1 and section 2.2 (the feature extractor G).
    """
    dense = build_encoder(config, math.prod(input_shape), seed)
    if len(input_shape) == 1:
        return dense
    inputs = keras.Input(input_shape, name="features")
    return keras.Model(inputs, dense(keras.layers.Flatten()(inputs)), name="encoder")


def default_decoder(
    output_shape: tuple[int, ...], hidden_units: Sequence[int], *, activation: str, seed: int
) -> keras.Model:
    """Returns the mirror of `default_encoder`, from embeddings to inputs, with a linear output.

    References:
        ICED, section 2.4 (the decoder Q).
    """
    inputs = keras.Input((hidden_units[-1],), name="embedding")
    x = inputs
    for index, width in enumerate(hidden_units[-2::-1]):
        x = keras.layers.Dense(width, activation, kernel_initializer=_glorot(seed, index))(x)
    x = keras.layers.Dense(math.prod(output_shape), kernel_initializer=_glorot(seed, 99))(x)
    if len(output_shape) > 1:
        x = keras.layers.Reshape(output_shape)(x)
    return keras.Model(inputs, x, name="decoder")


def _glorot(seed: int, index: int) -> keras.initializers.Initializer:
    return keras.initializers.GlorotUniform(seed * KERNEL_STRIDE + index)


def build_networks(
    shape: tuple[int, ...],
    num_classes: int,
    encoder: Network,
    *,
    seed: int,
    pretrained: bool = False,
) -> Networks:
    """Returns feature extractor, classifier and decoder.

    Args:
        shape: of an instance, as the encoder takes it.
        num_classes: C.
        encoder: the configuration of an encoder, or the user's network, which is copied.
        seed: draws their weights.
        pretrained: whether the user's encoder keeps its trainable weights.

    Raises:
        DataError: the user's encoder does not make a vector of each instance.

    References:
        ICED, section 2.2 and figure 1.
    """
    config = ICEDEncoder()  # the decoder's, if the encoder is the user's
    if callable(encoder):
        encoder = user_network(encoder, seed, shape, pretrained=pretrained)
        if tuple(encoder.input_shape[1:]) != shape or len(encoder.output_shape) != 2:
            raise DataError(
                f"encoder: expected a network from {shape} to a vector, received one from"
                f" {encoder.input_shape[1:]} to {encoder.output_shape[1:]}"
            )
    else:
        config = encoder
        encoder = default_encoder(shape, encoder, seed)
    units = (*config.hidden_units[:-1], int(encoder.output_shape[-1]))
    decoder = default_decoder(shape, units, activation=config.activation, seed=seed + _DECODER)
    kernel = _glorot(seed, _CLASSIFIER)
    logits = keras.layers.Dense(num_classes, kernel_initializer=kernel, name="logits")
    classifier = keras.Sequential([keras.Input((units[-1],)), logits], name="classifier")
    return encoder, classifier, decoder


def prediction_model(model: ICEDModel, mean: Floats32, scale: Floats32) -> keras.Model:
    """Returns raw features -> standardise -> embed -> classify as one Keras model.

    It shares the weights of `model`; `mean` and `scale` are those of each column, `[d]`.
    """
    softmax = keras.layers.Activation("softmax", dtype="float32", name="probabilities")

    def classify(embedding: Tensor) -> Tensor:
        return softmax(model.classifier(embedding))

    shape = model.encoder.input_shape[1:]
    return embedding_model(shape, (mean, scale), model.encoder, classify, "iced")
