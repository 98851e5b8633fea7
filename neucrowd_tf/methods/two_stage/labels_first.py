"""Two stages: labels from an aggregator, then a logistic regression.

The classifier is the same whatever the aggregator, so that `mv_lr`, `ds_lr` and `glad_lr` differ in
their labels alone.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.majority_vote import MajorityVote
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import Constraint, estimator, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Floats
from neucrowd_tf.errors import UsageError, quietly
from neucrowd_tf.methods.two_stage.logistic_classifier import LinearClassifier
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

AGGREGATORS: dict[str, Callable[..., Aggregator]] = {
    "mv": MajorityVote,
    "ds": DawidSkene,
    "ds_one_coin": functools.partial(DawidSkene, one_coin=True),
    "glad": Glad,
    "ordinal": OrdinalConsensus,
}


Labels = Annotated[
    str,
    one_of("hard", "soft"),
    '"hard" trains on the most probable class; "soft" on each class weighted with its probability.',
]


@estimator
class LabelsFirst(CrowdEstimator):
    """Base of the estimators that infer labels first."""

    aggregator: Annotated[
        str | Aggregator,
        one_of(*AGGREGATORS)
        | Constraint("an aggregator", lambda value: isinstance(value, Aggregator)),
        '"mv" (majority vote), "ds" (Dawid and Skene), "ds_one_coin" (one accuracy per'
        ' annotator), "glad" or "ordinal" (of ordered classes); or an unfitted aggregator.',
    ] = dataclasses.field(default="mv", kw_only=False)
    uses_truth: ClassVar[bool] = False  # trains on true labels, passed as those of one annotator

    def _check_crowd(self, crowd: Annotations) -> None:
        super()._check_crowd(crowd)
        if self.uses_truth and crowd.num_annotators != 1:
            raise UsageError(
                "gold labels: expected the true labels as those of one annotator, received"
                f" {crowd.num_annotators} annotators"
            )

    def _infer(self, annotations: Annotations) -> Floats:
        """Infers labels; returns the weight of each class in training, `[N, C]`.

        The weights are one-hot labels, or probabilities with `labels="soft"`, an argument that a
        subclass may declare (`Labels`).
        """
        if isinstance(self.aggregator, str):
            aggregator = AGGREGATORS[self.aggregator](seed=self.seed)
            with quietly():  # labels settle long before the last digits of the objective
                aggregator.fit(annotations)
        else:
            aggregator = clone(self.aggregator).fit(annotations)
        self.labels_ = aggregator.labels_
        self.probas_ = aggregator.probas_
        self.confusion_matrices_ = aggregator.errors_
        if getattr(self, "labels", "hard") == "soft":
            return self.probas_
        return np.eye(len(self.classes_))[self.labels_]


@estimator
class TwoStageClassifier(LabelsFirst, LinearClassifier):
    """An aggregator's labels and a standardised logistic regression trained on them.

    Works without TensorFlow, except for `inference_model`.

    Attributes:
        classes_: `[C]` class names.
        head_: the fitted `LinearHead`.
        labels_, probas_: `[N]` class codes and `[N, C]` probabilities that the aggregator gave to
            the training instances.
        confusion_matrices_: `[R, C true, C observed]`, the aggregator's; None for vote counts.

    Example:
        >>> model = TwoStageClassifier("ds").fit(features, annotations)  # doctest: +SKIP
        >>> model.predict_proba(new_features)  # doctest: +SKIP
    """

    takes_sparse: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True

    labels: Labels = "hard"

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.head_ = self._fit_head(data, self._infer(data.annotations))


_SPACE: dict[str, tuple[Any, ...]] = {"labels": ("hard", "soft")}
_EITHER = {**_SPACE, "aggregator": ("ds", "ds_one_coin")}
for _name, _aggregator, _stage, _space in (
    ("mv_lr", "mv", "majority vote", _SPACE),
    ("ds_lr", "ds", "Dawid and Skene's EM", _EITHER),
    (
        "ds_onecoin_lr",
        "ds_one_coin",
        "Dawid and Skene's EM with one accuracy per annotator",
        _SPACE,
    ),
    ("glad_lr", "glad", "GLAD", _SPACE),
):
    register_method(
        _name,
        summary=f"{_stage}, then logistic regression",
        defaults={"aggregator": _aggregator},
        requires_identities=_aggregator != "mv",
        space=_space,
    )(TwoStageClassifier)


@register_method(
    "gold_lr",
    summary="the true labels and logistic regression: an upper bound, not a crowd method",
    defaults={"aggregator": "mv"},
    uses_truth=True,
)
@estimator
class GoldLogistic(TwoStageClassifier):
    """The classifier of `mv_lr` trained on true labels: those of one annotator, always right."""

    uses_truth: ClassVar[bool] = True
