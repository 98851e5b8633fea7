"""Trace regularisation as its source prints it."""

from __future__ import annotations

from typing import Annotated, Unpack

import keras
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Tensor
from neucrowd_tf.methods.crowd_layers.anno_reg import ConfusionHead
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import LayerOptions, stacked_identity
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields


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
        self, num_annotators: int, trace_weight: float = 0.01, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(num_annotators, "row", trace_weight, **kwargs)

    def _start(self, num_classes: int) -> Tensor:
        return stacked_identity(num_classes, 1.0, off_diagonal=-5.0)

    def _normalised(self, weights: Tensor) -> Tensor:
        positive = ops.softplus(weights)
        return positive / ops.sum(positive, axis=-1, keepdims=True)


@register_method(
    "trace_reg",
    summary="trace regularisation as its source prints it: matrices of softplus weights, nearly"
    " right at first",
    **layer_fields(),
)
@estimator
class TraceRegularised(CrowdLayerBase):
    """A classifier and confusion matrices, trained with a penalty on the mean trace.

    `AnnoReg` is DASC's version of it, with a softmax and another start.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Tanno et al. (2019), eq. 4 and the listing in its appendix.
    """

    trace_weight: Annotated[float, number(least=0), "lambda of eq. 4's mean trace."] = 0.01

    # Deviation: trace regularisation. Paper: One learning rate. Here: The matrices learn at 1e-2
    # (`annotator_learning_rate`). Why: Adam moves a weight by about its rate a step, and softplus
    # starts 6 below the diagonal: at 1e-3 they stay where they are. Effect: not measured.
    annotator_learning_rate: float | None = 1e-2

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return SoftplusConfusionHead(num_annotators, self.trace_weight, name="trace")
