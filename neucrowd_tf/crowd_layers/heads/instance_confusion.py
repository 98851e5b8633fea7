"""Heads whose confusion matrices depend on the instance, too: annot-mix and MaDL."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.crowd_layers.bases import feature_extractor, output_layer
from neucrowd_tf.crowd_layers.heads.base import AnnotatorHead, Cells, LayerOptions
from neucrowd_tf.crowd_layers.heads.doctors import HeadsUniform


def right_at_first(eta: float, num_classes: int) -> Any:
    """Returns an initialiser of biases `[C * C]` with which annotators are right with `eta`.

    They are `log(eta (C - 1) / (1 - eta))` times the identity, before the softmax over a row.

    References:
        Herde, Huseljic and Sick (2023), eq. 19.
    """
    height = math.log(eta * (num_classes - 1) / (1.0 - eta))
    return keras.initializers.Constant((height * np.eye(num_classes)).ravel().tolist())


def _weak(seed: int) -> keras.initializers.Initializer:
    """Returns a uniform initialiser within 1 / sqrt(inputs), as the authors' layers have.

    Larger weights drown the prior, and classes swap.
    """
    return keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed=seed)


def _batch_norm() -> keras.layers.BatchNormalization:
    """Returns batch normalisation with the authors' constants, which are PyTorch's."""
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, dtype="float32", synchronized=tf.distribute.has_strategy()
    )


class InstanceConfusion(AnnotatorHead):
    """Base of heads whose confusion matrices depend on the instance.

    They take `[p [B, C], h [B, d]]`, class probabilities and shared features, and give log answers
    `log sum_c p_c P(y | c, h, annotator)`. A subclass turns embedded pairs into what the matrices'
    logits are made of in `_joined`.

    Args:
        num_annotators: R.
        num_classes: C.
        embedding_size: e, of instances and annotators.
        eta: how often an annotator is right at first.
        seed: draws the weights.

    Attributes:
        detached: whether the shared features learn nothing from the matrices.
    """

    detached: ClassVar[bool] = False
    annotator: Any

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int,
        eta: float,
        seed: int,
        **layer: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **layer)
        self.num_classes, self.embedding_size = num_classes, embedding_size
        self.eta, self.seed = eta, seed
        self.instances = self._dense(embedding_size, "instances", 1)
        self.output_layer = keras.layers.Dense(
            num_classes**2,
            kernel_initializer=_weak(seed + 2),
            bias_initializer=right_at_first(eta, num_classes),
            dtype=layer.get("dtype", "float32"),
            name="confusion",
        )

    def _dense(self, width: int, name: str, draw: int) -> keras.layers.Dense:
        maker = _weak(self.seed + draw)
        return keras.layers.Dense(width, kernel_initializer=maker, dtype="float32", name=name)

    def build(self, input_shape: Any) -> None:
        self.annotator_weight("annotator", (1, self.embedding_size), HeadsUniform(self.seed))
        self.instances.build((None, int(input_shape[1][-1])))
        self.output_layer.build((None, self.embedding_size))

    def annotators(self) -> Any:
        """Returns `[R, e]` embeddings."""
        return ops.convert_to_tensor(self.annotator)[:, 0]

    def _joined(self, instances: Any, annotators: Any) -> Any:
        """Returns `[K, e]` of K pairs of embeddings."""
        raise NotImplementedError

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns log answers of all annotators or of cells.

        In place of codes, cells may have embeddings `[K, e]` of annotators.
        """
        if cells is None:
            batch = ops.shape(inputs[0])[0]
            rows = ops.repeat(ops.arange(batch), self.num_annotators)
            codes = ops.tile(ops.arange(self.num_annotators), (batch,))
            answers = self.logits(inputs, (rows, codes))
            return ops.reshape(answers, (-1, self.num_annotators, self.num_classes))
        rows, who = cells
        features = ops.cast(inputs[1], "float32")
        embedded = self.instances(ops.stop_gradient(features) if self.detached else features)
        if not keras.backend.is_float_dtype(who.dtype):
            who = ops.take(self.annotators(), who, axis=0)
        matrices = self.output_layer(self._joined(ops.take(embedded, rows, axis=0), who))
        matrices = ops.reshape(matrices, (-1, self.num_classes, self.num_classes))
        p = ops.take(ops.cast(inputs[0], "float32"), rows, axis=0)
        p = ops.log(ops.maximum(p, 1e-30))
        return ops.logsumexp(p[:, :, None] + ops.log_softmax(matrices, axis=-1), axis=1)


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotMixHead(InstanceConfusion):
    """annot-mix: both embeddings side by side, half of them dropped, a layer with batch norm.

    Args:
        num_annotators, num_classes, embedding_size, eta, seed: see `InstanceConfusion`.

    References:
        Herde, Luehrs, Huseljic and Sick (2024), Annot-mix: learning with noisy class labels from
        multiple annotators via a mixup extension, section 3.
    """

    detached = True

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int = 128,
        eta: float = 0.9,
        seed: int = 0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, num_classes, embedding_size, eta, seed, **layer)
        self.dropped = keras.layers.Dropout(0.5, seed=seed + 3)
        self.hidden = self._dense(embedding_size, "hidden", 4)
        self.normalised = _batch_norm()

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.hidden.build((None, 2 * self.embedding_size))
        self.normalised.build((None, self.embedding_size))

    def _joined(self, instances: Any, annotators: Any) -> Any:
        both = self.dropped(ops.concatenate([instances, annotators], axis=1))
        return ops.relu(self.normalised(self.hidden(both)))


@keras.saving.register_keras_serializable("neucrowd_tf")
class MaDLHead(InstanceConfusion):
    """MaDL: both embeddings and their outer product, and two layers with batch norm.

    The annotator's embedding is added to what comes out. Annotators who are alike count less.

    Args:
        num_annotators, num_classes, embedding_size, eta, seed: see `InstanceConfusion`.
        alpha, beta: shape and rate of the Gamma prior of the kernel's bandwidth.

    References:
        Herde, Huseljic and Sick (2023), Multi-annotator deep learning: a modular probabilistic
        framework for classification, sections 4.1 to 4.3.
    """

    product: Any
    bandwidth: Any

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int = 16,
        eta: float = 0.8,
        alpha: float = 1.25,
        beta: float = 0.25,
        seed: int = 0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, num_classes, embedding_size, eta, seed, **layer)
        self.alpha, self.beta = alpha, beta
        self.first = self._dense(128, "first", 4)
        self.second = self._dense(embedding_size, "second", 5)
        self.norms = [_batch_norm() for _ in range(2)]

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        e = self.embedding_size
        self.shared_weight("product", (e, e, e), HeadsUniform(self.seed + 3))
        mode = max(0.0, (self.alpha - 1.0) / self.beta)  # of the prior
        self.shared_weight("bandwidth", (), keras.initializers.Constant(mode))
        self.first.build((None, 3 * e))
        self.second.build((None, 128))
        for norm, width in zip(self.norms, (128, e), strict=True):
            norm.build((None, width))

    def _joined(self, instances: Any, annotators: Any) -> Any:
        both = instances + annotators
        product = ops.einsum("ke,km,pem->kp", both, both, self.product)
        x = self.first(ops.concatenate([annotators, instances, product], axis=1))
        x = self.second(ops.relu(self.norms[0](x)))
        return ops.relu(self.norms[1](x) + annotators)

    def annotator_weights(self) -> Any:
        """Returns `[R]`, R in sum: the inverse of how many an annotator is like.

        References:
            Herde et al. (2023), eqs. 21 to 23.
        """
        embedded = ops.stop_gradient(self.annotators())
        apart = ops.sum(ops.square(embedded[:, None] - embedded[None]), axis=-1)
        likeness = ops.exp(-ops.maximum(self.bandwidth, 1e-5) * apart)
        inverse = 1.0 / ops.sum(likeness, axis=0)
        return self.num_annotators * inverse / ops.sum(inverse)

    def penalty(self, inputs: Any) -> Any:
        """Returns minus the prior's log density of the bandwidth.

        References:
            Herde et al. (2023), eq. 25.
        """
        gamma = ops.maximum(ops.convert_to_tensor(self.bandwidth), 1e-3)
        constant = self.alpha * math.log(self.beta) - math.lgamma(self.alpha)
        return self.beta * gamma - (self.alpha - 1.0) * ops.log(gamma) - constant


def shared_features(base: keras.Model, inputs: Any) -> tuple[Any, Any]:
    """Returns a classifier's probabilities and the features before its last dense layer.

    Both come from one pass if the base is a plain graph.
    """
    features = feature_extractor(base)(inputs)
    last = output_layer(base)
    probabilities = last(features) if isinstance(last, keras.layers.Dense) else base(inputs)
    return probabilities, features
