"""Anno-Reg: a confusion matrix for each annotator behind the classifier's softmax.

A penalty is put on the matrix's trace.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, Unpack

import keras
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    LayerOptions,
    check_choice,
    of_annotators,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields

Normalisation = Literal["row", "column"]


@keras.saving.register_keras_serializable("neucrowd_tf")
class ConfusionHead(AnnotatorHead):
    """Anno-Reg: a softmax makes each annotator's matrix stochastic, and its trace is penalised.

    Args:
        num_annotators: R.
        normalisation: "row" makes each W_k a confusion matrix [true, observed], so `p W_k` is a
            distribution by itself; "column" is eq. 10 as published, inside eq. 8's softmax.
        trace_weight: lambda of eq. 11, on the mean trace over annotators.
        initial: W_k is `initial` times the identity at first; near 0 training fails outright.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion; DASC, eqs. 10 and 11.
    """

    matrix: Tensor

    def __init__(
        self,
        num_annotators: int,
        normalisation: Normalisation = "row",
        trace_weight: float = 0.01,
        initial: float = 2.0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        check_choice("normalisation", normalisation, Normalisation)
        super().__init__(num_annotators, **kwargs)
        self.normalisation = normalisation
        self.trace_weight = trace_weight
        self.initial = initial

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        self.annotator_weight("matrix", (classes, classes), self._start(classes))

    def _start(self, num_classes: int) -> Tensor:
        return stacked_identity(num_classes, self.initial)

    def matrices(self) -> Tensor:
        """Returns the stochastic matrices `[R, C true, C observed]`.

        References:
            DASC, eq. 10.
        """
        return self._normalised(self.matrix)

    def _normalised(self, weights: Tensor) -> Tensor:
        # Deviation: DASC eq. 10. Paper: Softmax over each column of W, then eq. 8. Here: Softmax
        # over each row, and f(x) W is the annotator's distribution itself. Why: Rows make W the
        # confusion matrix that the text speaks of. Effect: claims dasc_columns and
        # dasc_columns_music.
        return ops.softmax(weights, axis=-1 if self.normalisation == "row" else -2)

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        matrices = self._normalised(of_annotators(self.matrix, cells))
        products = product(inputs, matrices, cells)
        if self.normalisation == "column":
            return products
        # Rows of p and of W_k sum to one, so the logarithm is a logit whose softmax is the product
        # itself.
        return ops.log(ops.maximum(products, 1e-12))

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns lambda times the mean trace.

        References:
            DASC, eq. 11.
        """
        # Deviation: DASC eq. 11. Paper: A sum of traces, with weight 0.1 for CIFAR10-H and none
        # published elsewhere. Here: The mean over annotators, times 0.01. Why: The weight does not
        # depend on the number of annotators. Effect: not measured.
        return self.trace_weight * ops.mean(ops.trace(self.matrices(), axis1=-2, axis2=-1))


@register_method(
    "anno_reg",
    summary="Anno-Reg: a classifier trained through a confusion matrix for each annotator",
    **layer_fields("anno_reg"),
)
@estimator
class AnnoReg(CrowdLayerBase):
    """A classifier and annotators' confusion matrices, trained end to end.

    A penalty is put on the matrices' trace.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: with "row" the stochastic matrices
            themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion; DASC, section 3.3.
    """

    normalisation: Annotated[
        Normalisation,
        one_of("row", "column"),
        '"row" makes each matrix a confusion matrix [true, observed]; "column" is eq. 10 as'
        " published.",
    ] = dataclasses.field(default="row", kw_only=False)
    trace_weight: Annotated[
        float, number(least=0), "lambda, weight of the mean trace over annotators (eq. 11)."
    ] = 0.01
    initial: Annotated[
        float, number(least=0), "the matrices' logits start as this times the identity."
    ] = 2.0

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return ConfusionHead(
            num_annotators,
            self.normalisation,
            self.trace_weight,
            self.initial,
            name="annotator_confusion",
        )
