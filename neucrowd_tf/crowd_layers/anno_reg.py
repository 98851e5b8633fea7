"""Anno-Reg: a confusion matrix for each annotator behind the classifier's softmax.

A penalty is put on the matrix's trace.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PRESETS, registered
from neucrowd_tf.declare import estimator, number


@registered(
    "anno_reg",
    "Anno-Reg: a classifier trained through a confusion matrix for each annotator",
    PRESETS["anno_reg"],
    imbalanced=True,
)
@estimator
class AnnoReg(AnnotatorEstimator):
    """A classifier and annotators' confusion matrices, trained end to end.

    A penalty is put on the matrices' trace.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: with "row" the stochastic matrices
            themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion; DASC, section 3.3.
    """

    normalisation: Annotated[
        Literal["row", "column"],
        '"row" makes each matrix a confusion matrix [true, observed]; "column" is eq. 10 as'
        " published.",
    ] = dataclasses.field(default="row", kw_only=False)
    trace_weight: Annotated[
        float, number(least=0), "lambda of eq. 11, on the mean trace over annotators."
    ] = 0.01
    initial: Annotated[
        float, number(least=0), "the matrices' logits are `initial` times the identity at first."
    ] = 2.0

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.confusion import ConfusionHead

        return ConfusionHead(
            num_annotators,
            self.normalisation,
            self.trace_weight,
            self.initial,
            name="annotator_confusion",
        )
