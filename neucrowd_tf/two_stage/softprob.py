"""SoftProb: logistic regression on every pair of an instance and a label that it was given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.linear import STRENGTHS, fit_logistic
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.linear_classifier import LinearClassifier


@register_method(
    "softprob",
    summary="logistic regression on every (instance, label) pair: a soft estimate of the truth",
    space={"weighting": ("votes", "shares")},
    paper=(
        "Raykar et al. (2010), Learning from crowds; NeuCrowd, section 4.2, and RLL, section IV-B"
        " (group 1)"
    ),
)
class SoftProb(LinearClassifier):
    """Logistic regression in which each label an instance was given is a training example of its
    own.

    Works on annotations and on vote counts alone, for any number of classes; copies of one instance
    are one weighted row for each class.

    Args:
        weighting: "votes" gives every label the same weight; "shares" every instance.
        Cs: inverse regularisation strengths, the strongest regularisation first. The one with the
            best log loss on the validation data is taken, or by cross-validation over instances
            where there is none.
        seed: draws folds.

    Attributes:
        head_: the fitted `LinearHead`.

    References:
        NeuCrowd, section 4.2; RLL, section IV-B, both after Raykar et al. (2010).
    """

    def __init__(
        self, *, weighting: str = "votes", Cs: Sequence[float] = STRENGTHS, seed: int = 0
    ) -> None:
        self.weighting = weighting
        self.Cs = Cs
        self.seed = seed

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.weighting not in ("votes", "shares"):
            raise UsageError(
                f"weighting: expected 'votes' or 'shares', received {self.weighting!r}"
            )
        x, validation = self._flat(data)
        weights = data.annotations.vote_counts().astype(np.float64)
        if self.weighting == "shares":
            weights /= weights.sum(axis=1, keepdims=True)
        rows, codes = np.nonzero(weights)
        self.head_ = fit_logistic(
            x[rows],
            codes,
            len(self.classes_),
            self.Cs,
            validation,
            weights[rows, codes],
            self.seed,
            groups=rows,
        )
