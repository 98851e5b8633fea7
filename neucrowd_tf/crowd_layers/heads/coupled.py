"""Coupled Confusion Correction's head: a crowd layer behind each of two classifiers."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    AnnotatorHead,
    Cells,
    of_annotators,
    product,
    stacked_identity,
)


@keras.saving.register_keras_serializable("neucrowd_tf")
class CoupledHead(AnnotatorHead):
    """Log answers from what two classifiers say, `[p [B, C], q [B, C]]`.

    They are the logarithm of the mean of `softmax(p W_k)` and `softmax(q V_k)`.

    References:
        Zhang et al. (2024), Coupled confusion correction: learning from crowds with sparse
        annotations.
    """

    log_probabilities = True
    first: Any
    second: Any

    def build(self, input_shape: Any) -> None:
        classes = int(input_shape[0][-1])
        self.annotator_weight("first", (classes, classes), stacked_identity(classes))
        self.annotator_weight("second", (classes, classes), stacked_identity(classes))

    @property
    def matrices(self) -> tuple[Any, Any]:
        """Both classifiers' matrices, `[R, C, C]` each."""
        return ops.convert_to_tensor(self.first), ops.convert_to_tensor(self.second)

    def member_cells(self, inputs: Any, cells: Cells, corrections: Any) -> tuple[Any, Any]:
        """Returns both members' logits `[K, C]` of K cells.

        `corrections` `[2, R, C, C]` are added to the matrices.
        """
        first, second = (
            product(ops.cast(p, "float32"), of_annotators(matrices + added, cells), cells)
            for p, matrices, added in zip(inputs, self.matrices, corrections, strict=True)
        )
        return first, second

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        first, second = (
            product(ops.cast(p, "float32"), of_annotators(matrices, cells), cells)
            for p, matrices in zip(inputs, self.matrices, strict=True)
        )
        return ops.logaddexp(ops.log_softmax(first), ops.log_softmax(second)) - ops.log(2.0)
