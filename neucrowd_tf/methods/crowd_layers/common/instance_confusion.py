"""Base of heads whose confusion matrices depend on the instance, too: annot-mix and MaDL."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Unpack

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import number, whole
from neucrowd_tf.declare.types import Shape, Tensor
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    HeadsUniform,
    LayerOptions,
    check_int,
)

EmbeddingSize = Annotated[int, whole(1), "size of the embeddings of instances and annotators."]
StartingAccuracy = Annotated[
    float, number(above=0, below=1), "accuracy with which annotators start."
]


def right_at_first(eta: float, num_classes: int) -> Tensor:
    """Returns an initialiser of biases `[C * C]` with which annotators are right with `eta`.

    They are `log(eta (C - 1) / (1 - eta))` times the identity, before the softmax over a row.

    Args:
        eta: probability of a right label, above 0 and below 1.
        num_classes: C.

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


def batch_norm(dtype: str) -> keras.layers.BatchNormalization:
    """Returns batch normalisation with the authors' constants, which are PyTorch's."""
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, dtype=dtype, synchronized=tf.distribute.has_strategy()
    )


class InstanceConfusion(AnnotatorHead):
    """Base of heads whose confusion matrices depend on the instance.

    They take `[p [B, C], h [B, d]]`, class probabilities and shared features, and give
    `log sum_c p_c P(y | c, h, annotator)`. A subclass joins the embeddings of an instance and an
    annotator in `_joined`; a dense layer turns the result into the matrix's logits.

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
    annotator: Tensor

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int,
        eta: float,
        seed: int,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **kwargs)
        check_int("num_classes", num_classes)
        self.num_classes = num_classes
        self.embedding_size = embedding_size
        self.eta = eta
        self.seed = seed
        self.instances = self._dense(embedding_size, "instances", 1)
        bias = right_at_first(eta, num_classes)
        self.output_layer = self._dense(num_classes**2, "confusion", 2, bias_initializer=bias)

    def _dense(self, width: int, name: str, draw: int, **options: object) -> keras.layers.Dense:
        return keras.layers.Dense(
            width,
            kernel_initializer=_weak(self.seed + draw),
            dtype=self.compute_dtype,
            name=name,
            **options,
        )

    def build(self, input_shape: Shape) -> None:
        self.annotator_weight("annotator", (1, self.embedding_size), HeadsUniform(self.seed))
        self.instances.build((None, int(input_shape[1][-1])))
        self.output_layer.build((None, self.embedding_size))

    def annotators(self) -> Tensor:
        """Returns `[R, e]` embeddings."""
        return self.annotator[:, 0]

    def _joined(self, instances: Tensor, annotators: Tensor) -> Tensor:
        """Returns `[K, e]` of K pairs of embeddings."""
        raise NotImplementedError

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        """Returns log answers of all annotators or of cells.

        In place of codes, cells may have embeddings `[K, e]` of annotators.
        """
        if cells is None:
            batch = ops.shape(inputs[0])[0]
            rows = ops.repeat(ops.arange(batch), self.num_annotators)
            codes = ops.tile(ops.arange(self.num_annotators), (batch,))
            answers = self.logits(inputs, (rows, codes))
            return ops.reshape(answers, (-1, self.num_annotators, self.num_classes))
        rows, annotators = cells
        probabilities, features = inputs
        if self.detached:
            features = ops.stop_gradient(features)
        instances = ops.take(self.instances(features), rows, axis=0)
        if not keras.backend.is_float_dtype(annotators.dtype):
            annotators = ops.take(self.annotators(), annotators, axis=0)
        matrices = self.output_layer(self._joined(instances, annotators))
        matrices = ops.reshape(matrices, (-1, self.num_classes, self.num_classes))
        log_p = ops.log(ops.maximum(ops.take(probabilities, rows, axis=0), 1e-30))
        return ops.logsumexp(log_p[:, :, None] + ops.log_softmax(matrices, axis=-1), axis=1)
