"""Weighted Doctor Net's head: a linear classifier for each annotator."""

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
)


@keras.saving.register_keras_serializable("neucrowd_tf")
class HeadsUniform(keras.initializers.Initializer):
    """Glorot's uniform initialiser for `[R, h, C]` kernels.

    The fans are those of one annotator's `[h, C]`.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        limit = (6.0 / (shape[-2] + shape[-1])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype or "float32", seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}


@keras.saving.register_keras_serializable("neucrowd_tf")
class DoctorHeads(AnnotatorHead):
    """A linear classifier for each annotator on shared features: `[B, h]` to logits `[B, R, C]`.

    Args:
        num_annotators: R.
        num_classes: C.
        l2: kernel penalty, `l2 * sum(kernel ** 2) / R`: what the penalty of one classifier would
            be, on average.
        seed: draws the kernels.

    References:
        DASC, eq. 5.
    """

    kernel: Any
    bias: Any

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        l2: float = 0.0,
        seed: int = 0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **layer)
        self.num_classes, self.l2, self.seed = num_classes, l2, seed

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = int(input_shape[-1])  # type: ignore[arg-type]
        shape = (width, self.num_classes)
        self.annotator_weight("kernel", shape, HeadsUniform(self.seed))
        self.annotator_weight("bias", (self.num_classes,), "zeros")

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns the logits of all annotators or of cells.

        References:
            DASC, eq. 5.
        """
        x, kernels = ops.cast(inputs, "float32"), of_annotators(self.kernel, cells)
        return product(x, kernels, cells) + of_annotators(self.bias, cells)

    def penalty(self, inputs: Any) -> Any:
        """Returns the kernels' mean penalty."""
        if not self.l2:
            return 0.0
        squares = ops.square(ops.convert_to_tensor(self.kernel))
        return self.l2 * ops.sum(squares) / self.num_annotators
