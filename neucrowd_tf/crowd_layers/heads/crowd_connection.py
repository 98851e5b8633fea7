"""CrowdLayer's head: a matrix, weights or biases for each annotator."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    AnnotatorHead,
    LayerOptions,
    StackedIdentity,
    annotator_product,
    cell_product,
)

Connection = Literal["MW", "VW", "VB", "VW+B", "SW"]


@keras.saving.register_keras_serializable("neucrowd_tf")
class CrowdConnection(AnnotatorHead):
    """The crowd layer: class probabilities `[B, C]` to each annotator's logits `[B, R, C]`.

    Args:
        num_annotators: R.
        connection: "MW", a matrix for each annotator, `p W_k`; "VW", a weight for each class,
            `p * w_k`; "VB", a bias for each class, `p + b_k`; "VW+B", both; or "SW",
            one weight, `p w_k`.
        initial: W_k is `initial` times the identity at first.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds; DASC, eq. 8 ("MW").
    """

    def __init__(
        self,
        num_annotators: int,
        connection: Connection = "MW",
        initial: float = 1.0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        if connection not in get_args(Connection):
            raise ValueError(
                f"connection: expected one of {', '.join(get_args(Connection))}, received"
                f" {connection!r}"
            )
        super().__init__(num_annotators, **layer)
        self.connection, self.initial = connection, initial
        self.matrix: Any = None
        self.vector: Any = None
        self.bias: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        if self.connection == "MW":
            self.matrix = self.annotator_weight(
                "matrix", (classes, classes), StackedIdentity(self.initial)
            )
        if self.connection in ("VW", "VW+B", "SW"):
            size = 1 if self.connection == "SW" else classes
            self.vector = self.annotator_weight("vector", (size,), "ones")
        if self.connection in ("VB", "VW+B"):
            self.bias = self.annotator_weight("bias", (classes,), "zeros")

    def call(self, probabilities: Any) -> Any:
        """Returns the logits.

        References:
            DASC, eq. 8.
        """
        p = ops.cast(probabilities, "float32")
        if self.connection == "MW":
            return annotator_product(p, self.matrix)
        logits = p[:, None, :]
        if self.vector is not None:
            logits = logits * self.vector[None]
        return logits if self.bias is None else logits + self.bias[None]

    def cells(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        p = ops.cast(inputs, "float32")
        if self.connection == "MW":
            return cell_product(p, rows, ops.take(self.matrix, annotators, axis=0))
        logits = ops.take(p, rows, axis=0)
        if self.vector is not None:
            logits = logits * ops.take(self.vector, annotators, axis=0)
        return logits if self.bias is None else logits + ops.take(self.bias, annotators, axis=0)
