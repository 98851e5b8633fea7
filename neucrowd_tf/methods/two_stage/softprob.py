"""SoftProb: logistic regression on every pair of an instance and a label that it was given."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neucrowd_tf.declare.declarations import estimator
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.methods.two_stage.logistic_classifier import LinearClassifier
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run


@register_method(
    "softprob",
    summary="logistic regression on every (instance, label) pair: a soft estimate of the truth",
)
@estimator
class SoftProb(LinearClassifier):
    """Logistic regression in which each annotation is a training example.

    Works on annotations and on vote counts alone, for any number of classes; copies of one instance
    are one weighted row for each class.

    Attributes:
        head_: the fitted `LinearHead`.

    References:
        NeuCrowd, section 4.2; RLL, section IV-B, both after Raykar et al. (2010).
    """

    takes_sparse: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.head_ = self._fit_head(data, data.annotations.vote_counts().astype(np.float64))
