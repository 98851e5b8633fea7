"""The annotator matrices of trace regularisation as its source prints them."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import LayerOptions, StackedIdentity
from neucrowd_tf.crowd_layers.heads.confusion import ConfusionHead


@keras.saving.register_keras_serializable("neucrowd_tf")
class SharpIdentity(StackedIdentity):
    """`[R, C, C]`: 1 on the diagonals and -5 beside them."""

    def __init__(self) -> None:
        super().__init__(6.0)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        return super().__call__(shape, dtype) - 5.0

    def get_config(self) -> dict[str, Any]:
        return {}


@keras.saving.register_keras_serializable("neucrowd_tf")
class SoftplusConfusionHead(ConfusionHead):
    """Confusion matrices whose rows are softplus weights divided by their sum.

    They are nearly the identity at first, and their mean trace is penalised.

    Args:
        num_annotators: R.
        trace_weight: lambda of eq. 4.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion, eq. 4 and the listing in its appendix.
    """

    def __init__(
        self, num_annotators: int, trace_weight: float = 0.01, **layer: Unpack[LayerOptions]
    ) -> None:
        super().__init__(num_annotators, "row", trace_weight, **layer)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        self.matrix = self.annotator_weight("matrix", (classes, classes), SharpIdentity())

    def _normalised(self, weights: Any) -> Any:
        positive = ops.softplus(weights)
        return positive / ops.sum(positive, axis=-1, keepdims=True)
