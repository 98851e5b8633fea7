"""UnionNet: the labels of all annotators as one."""

from __future__ import annotations

from typing import Annotated, Literal, Unpack

import keras
from keras import ops

from neucrowd_tf.declare.declarations import estimator, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    LayerOptions,
    check_choice,
    of_annotators,
    of_instances,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields

Variant = Literal["A", "B"]

_EPSILON = 1e-5


@keras.saving.register_keras_serializable("neucrowd_tf")
class UnionHead(AnnotatorHead):
    """The labels of all annotators as one vector, with one transition matrix to it.

    The vector has R C entries. Outputs are log-probabilities that sum to one over annotators and
    labels together; their softmax over labels is what an annotator would answer.

    Args:
        num_annotators: R.
        variant: "A" takes the softmax of `p T`; "B" that of T for each true class, `p softmax(T)`.

    References:
        Wei et al. (2022), Deep learning from multiple noisy annotators as a union, eqs. 2, 6 and 7.
    """

    log_probabilities = True
    matrix: Tensor

    def __init__(
        self, num_annotators: int, variant: Variant = "B", **kwargs: Unpack[LayerOptions]
    ) -> None:
        check_choice("variant", variant, Variant)
        super().__init__(num_annotators, **kwargs)
        self.variant = variant

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        # The identity but for a little.
        start = stacked_identity(classes, 1.0 - _EPSILON, _EPSILON / max(classes - 1, 1))
        self.annotator_weight("matrix", (classes, classes), start)

    def transition(self) -> Tensor:
        """Returns variant B's matrices `[R, C true, C observed]`.

        Those of a true class sum to one over annotators and labels.
        """
        total = ops.logsumexp(self.matrix, axis=(0, 2), keepdims=True)
        return ops.exp(self.matrix - total)

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        if self.variant == "B":
            matrices = of_annotators(self.transition(), cells)
            return ops.log(ops.maximum(product(inputs, matrices, cells), 1e-30))
        scores = product(inputs, self.matrix, None)
        total = ops.logsumexp(scores, axis=(1, 2))
        if cells is not None:
            scores = product(inputs, of_annotators(self.matrix, cells), cells)
        return scores - of_instances(total[:, None], cells)


@register_method(
    "unionnet_b",
    summary="UnionNet: a distribution over all annotators' labels together, a class's share of it",
    **layer_fields(),
)
@register_method(
    "unionnet_a",
    summary="UnionNet: a distribution over all annotators' labels together, one softmax of scores",
    defaults={"variant": "A"},
    **layer_fields(),
)
@estimator
class UnionNet(CrowdLayerBase):
    """A classifier and one transition matrix to the labels of all annotators together.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's part of the union, each row a
            distribution.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Wei et al. (2022), section IV, eqs. 2, 6 and 7.
    """

    variant: Annotated[
        Variant,
        one_of("A", "B"),
        '"A" takes the softmax of the matrix times the class probabilities, "B" a softmax of the'
        " matrix for each true class.",
    ] = "B"

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return UnionHead(num_annotators, self.variant, name="union")
