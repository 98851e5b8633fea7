"""Trace regularisation as its source prints it."""

from __future__ import annotations

from typing import Annotated, Any

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator, number


@registered(
    "trace_reg",
    "trace regularisation as its source prints it: matrices of softplus weights, nearly right at"
    " first",
)
@estimator
class TraceRegularised(AnnotatorEstimator):
    """A classifier and confusion matrices, trained with a penalty on the mean trace.

    `AnnoReg` is DASC's version of it, with a softmax and another start.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Tanno et al. (2019), eq. 4 and the listing in its appendix.
    """

    trace_weight: Annotated[float, number(least=0), "lambda of eq. 4, on the mean trace."] = 0.01

    # Deviation: the source has one rate. Adam moves a weight by about its rate a step, and softplus
    # starts 6 below the diagonal: at 1e-3 several thousand steps leave the matrices where they are.
    annotator_learning_rate: float | None = 1e-2

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.softplus_confusion import SoftplusConfusionHead

        return SoftplusConfusionHead(num_annotators, self.trace_weight, name="trace")


SelfTrainedTraceRegularised = self_trained("trace_reg", TraceRegularised, "trace regularisation")
