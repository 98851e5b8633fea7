"""The annotator matrices of trace regularisation as its source prints them."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import LayerOptions, stacked_identity
from neucrowd_tf.crowd_layers.heads.confusion import ConfusionHead


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

    def _start(self, num_classes: int) -> Any:
        return stacked_identity(num_classes, 1.0, beside=-5.0)

    def _normalised(self, weights: Any) -> Any:
        positive = ops.softplus(weights)
        return positive / ops.sum(positive, axis=-1, keepdims=True)
