"""MaDL: confusions of instance and annotator, and annotators who are alike."""

from __future__ import annotations

import math
from typing import ClassVar, Unpack

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import estimator
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Fields, Layer, Shape, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import HeadsUniform, LayerOptions
from neucrowd_tf.methods.crowd_layers.common.instance_confusion import (
    EmbeddingSize,
    InstanceConfusion,
    StartingAccuracy,
    batch_norm,
)
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import INSTANCE_PRESETS, layer_fields
from neucrowd_tf.training.estimator import TrainingData


@keras.saving.register_keras_serializable("neucrowd_tf")
class MaDLHead(InstanceConfusion):
    """MaDL: both embeddings and their outer product, and two layers with batch norm.

    The annotator's embedding is added to the result. Annotators who are alike count less.

    Args:
        num_annotators, num_classes, embedding_size, eta, seed: see `InstanceConfusion`.
        alpha, beta: shape and rate of the Gamma prior of the kernel's bandwidth.

    References:
        Herde, Huseljic and Sick (2023), Multi-annotator deep learning: a modular probabilistic
        framework for classification, sections 4.1 to 4.3.
    """

    product: Tensor
    bandwidth: Tensor

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int = 16,
        eta: float = 0.8,
        alpha: float = 1.25,
        beta: float = 0.25,
        seed: int = 0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, num_classes, embedding_size, eta, seed, **kwargs)
        self.alpha = alpha
        self.beta = beta
        self.first = self._dense(128, "first", 4)
        self.second = self._dense(embedding_size, "second", 5)
        self.norms = [batch_norm(self.compute_dtype) for _ in range(2)]

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        e = self.embedding_size
        self.shared_weight("product", (e, e, e), HeadsUniform(self.seed + 3))
        mode = max(0.0, (self.alpha - 1.0) / self.beta)  # of the prior
        self.shared_weight("bandwidth", (), keras.initializers.Constant(mode))
        self.first.build((None, 3 * e))
        self.second.build((None, 128))
        self.norms[0].build((None, 128))
        self.norms[1].build((None, e))

    def _joined(self, instances: Tensor, annotators: Tensor) -> Tensor:
        both = instances + annotators
        product = ops.einsum("ke,km,pem->kp", both, both, self.product)
        x = self.first(ops.concatenate([annotators, instances, product], axis=1))
        x = self.second(ops.relu(self.norms[0](x)))
        return ops.relu(self.norms[1](x) + annotators)

    def annotator_weights(self) -> Tensor:
        """Returns weights `[R]` that sum to R: the inverse of how many annotators one is like.

        References:
            Herde et al. (2023), eqs. 21 to 23.
        """
        embedded = ops.stop_gradient(self.annotators())
        distances = ops.sum(ops.square(embedded[:, None] - embedded[None]), axis=-1)
        likeness = ops.exp(-ops.maximum(self.bandwidth, 1e-5) * distances)
        inverse = 1.0 / ops.sum(likeness, axis=0)
        return self.num_annotators * inverse / ops.sum(inverse)

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns minus the prior's log density of the bandwidth.

        References:
            Herde et al. (2023), eq. 25.
        """
        gamma = ops.maximum(self.bandwidth, 1e-3)
        constant = self.alpha * math.log(self.beta) - math.lgamma(self.alpha)
        return self.beta * gamma - (self.alpha - 1.0) * ops.log(gamma) - constant


class MaDLModel(AnnotationModel):
    """MaDL: annotations of similar annotators count less."""

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns two sums: of the weighted losses, and of the weights.

        References:
            Herde et al. (2023), eqs. 25 and 26.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        answers = self.head(inputs, (within, annotators), training=True)
        losses = self.losses_of(labels, answers)
        losses *= tf.gather(self.head.annotator_weights(), annotators)
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


@register_method(
    "madl",
    summary="MaDL: confusions of instance and annotator; similar annotators count less",
    **layer_fields(presets=INSTANCE_PRESETS),
)
@estimator
class MaDL(CrowdLayerBase):
    """Classifier behind a confusion matrix per instance and annotator, weighted by similarity.

    Annotators whose embeddings are close to others' count less. The base ends in a dense layer; the
    layers before it represent the instance.

    Attributes:
        annotator_weights_: `[R]`, how much an annotator's labels count; R in sum.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Herde et al. (2023), section 4.
    """

    sees_instances: ClassVar[bool] = True
    shares_features: ClassVar[bool] = True

    embedding_size: EmbeddingSize = 16
    eta: StartingAccuracy = 0.8

    # Deviation: annot-mix, MaDL. Paper: One learning rate. Here: The annotators' network learns at
    # 1e-4 (`annotator_learning_rate`); on LabelMe and Music, whose features are fixed, at the
    # classifier's 1e-3 as in the paper. Why: Where features are not fixed, matrices that see the
    # instance learn its labels before the classifier does, and classes swap. Effect: not measured.
    annotator_learning_rate: float | None = 1e-4

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return MaDLHead(num_annotators, num_classes, self.embedding_size, self.eta, name="madl")

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        return MaDLModel, {}

    def _finish(self, network: CompiledNetwork, data: TrainingData) -> None:
        super()._finish(network, data)
        weights = network.model.head.annotator_weights()
        self.annotator_weights_ = np.asarray(weights, dtype=np.float32)
