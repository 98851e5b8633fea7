"""CrowdLayer's head: a matrix for each annotator."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    AnnotatorHead,
    Cells,
    LayerOptions,
    of_annotators,
    product,
    stacked_identity,
)


@keras.saving.register_keras_serializable("neucrowd_tf")
class CrowdConnection(AnnotatorHead):
    """The crowd layer: class probabilities `[B, C]` to logits `p W_k`, `[B, R, C]`.

    Args:
        num_annotators: R.
        initial: W_k is `initial` times the identity at first.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds ("MW"); DASC, eq. 8.
    """

    matrix: Any

    def __init__(
        self, num_annotators: int, initial: float = 1.0, **layer: Unpack[LayerOptions]
    ) -> None:
        super().__init__(num_annotators, **layer)
        self.initial = initial

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        start = stacked_identity(classes, self.initial)
        self.annotator_weight("matrix", (classes, classes), start)

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns the logits of all annotators or of cells.

        References:
            DASC, eq. 8.
        """
        return product(ops.cast(inputs, "float32"), of_annotators(self.matrix, cells), cells)
