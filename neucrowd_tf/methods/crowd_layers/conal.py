"""CoNAL: common confusions, and each annotator's own."""

from __future__ import annotations

from typing import Annotated, ClassVar, Unpack

import keras
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Shape, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    HeadsUniform,
    LayerOptions,
    of_annotators,
    of_instances,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields


def unit(rows: Tensor) -> Tensor:
    """Returns rows of norm 1."""
    return rows / ops.sqrt(ops.maximum(ops.sum(ops.square(rows), axis=-1, keepdims=True), 1e-12))


@keras.saving.register_keras_serializable("neucrowd_tf")
class ConalHead(AnnotatorHead):
    """CoNAL's head: logits `w p W + (1 - w) p W_k` from `[p [B, C], x [B, d]]`.

    p are class probabilities and x features. A gate w of the instance and the annotator says how
    far the confusion is the common one.

    Args:
        num_annotators: R.
        embedding_size: e of the gate, the sigmoid of the product of both embeddings.
        weight: lambda, of how far each annotator's matrix is from the common one (more is better).
        seed: draws the embeddings.

    References:
        Chu, Ma and Wang (2021), Learning from crowds by modeling common confusions, eqs. 1 and 3,
        and the final loss.
    """

    matrix: Tensor
    annotator: Tensor
    common: Tensor
    instance: Tensor
    bias: Tensor

    def __init__(
        self,
        num_annotators: int,
        embedding_size: int = 20,
        weight: float = 1e-5,
        seed: int = 0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **kwargs)
        self.embedding_size = embedding_size
        self.weight = weight
        self.seed = seed

    def build(self, input_shape: Shape) -> None:
        classes = int(input_shape[0][-1])
        width = int(input_shape[1][-1])
        self.annotator_weight("matrix", (classes, classes), stacked_identity(classes, 2.0))
        # Of one annotator `[1, e]` each, with the fans of a dense layer of one-hot annotators.
        size = self.embedding_size
        self.annotator_weight("annotator", (1, size), HeadsUniform(self.seed + 1))
        self.shared_weight("common", (classes, classes), keras.initializers.Identity(2.0))
        self.shared_weight("instance", (width, size), keras.initializers.GlorotUniform(self.seed))
        self.shared_weight("bias", (size,), "zeros")

    def gates(self, features: Tensor, cells: Cells | None) -> Tensor:
        """Returns `[B, R, 1]`, or `[K, 1]` of cells: the share of the common confusion.

        References:
            Chu et al. (2021), eq. 3.
        """
        instances = unit(ops.matmul(features, self.instance) + self.bias)
        annotators = unit(of_annotators(self.annotator, cells)[:, 0])
        return ops.sigmoid(product(instances, annotators[:, :, None], cells))

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        """Returns the logits of all annotators or of cells.

        References:
            Chu et al. (2021), eq. 1.
        """
        p = inputs[0]
        share = self.gates(inputs[1], cells)
        common = of_instances(ops.matmul(p, self.common), cells)
        return share * common + (1.0 - share) * product(p, of_annotators(self.matrix, cells), cells)

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns `-lambda` times the distances of annotators' matrices from the common one.

        The distances are summed over annotators.
        """
        differences = ops.subtract(self.matrix, self.common)
        # A length has no gradient at 0, where all begin.
        lengths = ops.sqrt(ops.sum(ops.square(differences), axis=(1, 2)) + 1e-12)
        return -self.weight * ops.sum(lengths)


@register_method(
    "conal",
    summary="CoNAL: confusions that all annotators share, and each one's own, mixed by a gate",
    **layer_fields(),
)
@estimator
class CoNAL(CrowdLayerBase):
    """A classifier, a common confusion matrix and a matrix per annotator.

    A gate of instance and annotator decides which of the two matrices a label comes from.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Chu, Ma and Wang (2021), eqs. 1 and 3, and the final loss.
    """

    sees_instances: ClassVar[bool] = True

    embedding_size: Annotated[int, whole(1), "size of the gate's embeddings."] = 20
    distance_weight: Annotated[
        float,
        number(least=0),
        "lambda, reward for annotators' matrices that differ from the common one.",
    ] = 1e-5

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return ConalHead(num_annotators, self.embedding_size, self.distance_weight, name="conal")

    def _graph(self, base: keras.Model, standardised: Tensor, head: Layer) -> tuple[Tensor, Tensor]:
        probabilities = base(standardised)
        # Deviation: CoNAL 3. Paper: Two linear layers embed an instance, one after the other. Here:
        # One linear layer (`embedding_size`). Why: Two without anything between are one of low
        # rank. Effect: not measured.
        flat = keras.layers.Flatten()(standardised)  # Keras needs a layer between input and head
        return head([probabilities, flat]), probabilities
