"""CrowdLayer's head: a matrix, weights or biases for each annotator."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    Cells,
    GatheringHead,
    LayerOptions,
    StackedIdentity,
    check_choice,
    of_annotators,
    of_instances,
    product,
)

Connection = Literal["MW", "VW", "VB", "VW+B", "SW"]


@keras.saving.register_keras_serializable("neucrowd_tf")
class CrowdConnection(GatheringHead):
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

    matrix: Any = None
    vector: Any = None
    bias: Any = None

    def __init__(
        self,
        num_annotators: int,
        connection: Connection = "MW",
        initial: float = 1.0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        check_choice("connection", connection, Connection)
        super().__init__(num_annotators, **layer)
        self.connection, self.initial = connection, initial

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        if self.connection == "MW":
            self.annotator_weight("matrix", (classes, classes), StackedIdentity(self.initial))
        if self.connection in ("VW", "VW+B", "SW"):
            size = 1 if self.connection == "SW" else classes
            self.annotator_weight("vector", (size,), "ones")
        if self.connection in ("VB", "VW+B"):
            self.annotator_weight("bias", (classes,), "zeros")

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns the logits of all annotators or of cells.

        References:
            DASC, eq. 8.
        """
        p = ops.cast(inputs, "float32")
        if self.connection == "MW":
            return product(p, of_annotators(self.matrix, cells), cells)
        logits = of_instances(p, cells)
        if self.vector is not None:
            logits = logits * of_annotators(self.vector, cells)
        return logits if self.bias is None else logits + of_annotators(self.bias, cells)
