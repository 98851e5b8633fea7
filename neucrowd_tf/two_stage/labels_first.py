"""Two stages: labels from an aggregator, then a logistic regression.

The classifier is the same whatever the aggregator, so that `mv_lr`, `ds_lr` and `glad_lr` differ in
their labels alone.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf import aggregation
from neucrowd_tf.aggregation import Aggregator
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.arguments import Constraint, argument, estimator, fitted, one_of
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.linear import fit_logistic
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.linear_classifier import LinearClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

AGGREGATORS = ("mv", "ds", "ds_one_coin", "glad")
AGGREGATOR = one_of(*AGGREGATORS) | Constraint(
    "an aggregator", lambda value: isinstance(value, Aggregator)
)


def make_aggregator(name: str, seed: int, ties: str) -> Aggregator:
    """Returns an unfitted aggregator.

    Args:
        name: "mv" (majority vote), "ds" (Dawid and Skene), "ds_one_coin" (one accuracy an
            annotator) or "glad".
        seed: of the aggregator.
        ties: of majority vote.

    Raises:
        UsageError: another name.
    """
    if name == "mv":
        return aggregation.MajorityVote(ties=ties, seed=seed)  # type: ignore[arg-type]
    if name in ("ds", "ds_one_coin"):
        return aggregation.DawidSkene(one_coin=name == "ds_one_coin", seed=seed)
    if name == "glad":
        return aggregation.Glad(seed=seed)
    raise UsageError(f"aggregator: expected one of {', '.join(AGGREGATORS)}, received {name!r}")


@estimator
class LabelsFirst(CrowdEstimator):
    """Base of the estimators that infer labels first."""

    aggregator: str | Aggregator = argument(
        "mv",
        AGGREGATOR,
        '"mv" (majority vote), "ds" (Dawid and Skene), "ds_one_coin" (one accuracy an annotator) or'
        ' "glad"; or an unfitted aggregator.',
        positional=True,
    )
    ties: str = argument(
        "random",
        one_of("random", "first", "prior"),
        'what decides between classes with equally many votes: "random", "first" or "prior"'
        " (only for majority vote).",
    )

    labels_: NDArray[np.int64] = fitted()
    probas_: NDArray[np.float64] = fitted()
    confusion_matrices_: NDArray[np.float64] | None = fitted()

    def _infer(self, annotations: Annotations, needs: str = "") -> None:
        """Infers labels.

        Args:
            annotations: what the estimator is fitted to.
            needs: what needs to know who voted, where it is no majority vote.
        """
        stage: Aggregator = (
            make_aggregator(self.aggregator, self.seed, self.ties)
            if isinstance(self.aggregator, str)
            else clone(self.aggregator)
        )
        if needs and not isinstance(stage, aggregation.MajorityVote):
            annotations.require_identities(f"{type(stage).__name__} with {needs}")
        with warnings.catch_warnings():
            if isinstance(self.aggregator, str):  # labels settle long before its last digits
                warnings.simplefilter("ignore", ConvergenceWarning)
            stage.fit(annotations)
        self.labels_, self.probas_ = stage.labels_, stage.probas_
        self.confusion_matrices_ = stage.errors_


class TrueLabels(CrowdEstimator):
    """A method trained on true labels: those of one annotator, who is always right."""

    uses_truth: ClassVar[bool] = True

    def _fit(self, data: TrainingData, run: Run) -> None:
        if data.annotations.num_annotators != 1:
            raise UsageError(
                "gold labels: expected the true labels as those of one annotator, received"
                f" {data.annotations.num_annotators} annotators"
            )
        super()._fit(data, run)


@estimator
class TwoStageClassifier(LabelsFirst, LinearClassifier):
    """An aggregator's labels and a standardised logistic regression trained on them.

    Works without TensorFlow, except for `inference_model`.

    Attributes:
        classes_: `[C]` class names.
        head_: the fitted `LinearHead`.
        labels_, probas_: `[N]` class codes and `[N, C]` probabilities that the aggregator gave to
            the training instances.
        confusion_matrices_: `[R, C true, C observed]`, the aggregator's, or None where it is not
            known who voted.
    """

    labels: str = argument(
        "hard",
        one_of("hard", "soft"),
        '"hard" trains on the most probable class; "soft" on each class weighted with its'
        " probability.",
    )

    def _fit(self, data: TrainingData, run: Run) -> None:
        self._infer(data.annotations)
        x, validation = self._flat(data)
        num_classes = len(self.classes_)
        if self.labels == "hard":
            self.head_ = fit_logistic(
                x, self.labels_, num_classes, self.Cs, validation, seed=self.seed
            )
        else:
            rows = np.repeat(np.arange(len(x)), num_classes)
            codes = np.tile(np.arange(num_classes), len(x))
            self.head_ = fit_logistic(
                x[rows],
                codes,
                num_classes,
                self.Cs,
                validation,
                self.probas_.ravel(),
                self.seed,
                groups=rows,
            )


_SPACE: dict[str, tuple[Any, ...]] = {"labels": ("hard", "soft")}
for _name, _aggregator, _summary, _space in (
    (
        "mv_lr",
        "mv",
        "majority vote, then logistic regression",
        {"ties": ("random", "first", "prior"), **_SPACE},
    ),
    (
        "ds_lr",
        "ds",
        "Dawid and Skene's EM, then logistic regression",
        {**_SPACE, "aggregator": ("ds", "ds_one_coin")},
    ),
    (
        "ds_onecoin_lr",
        "ds_one_coin",
        "Dawid and Skene's EM with one accuracy per annotator, then logistic regression",
        _SPACE,
    ),
    ("glad_lr", "glad", "GLAD, then logistic regression", _SPACE),
):
    register_method(
        _name,
        summary=_summary,
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
class GoldLogistic(TrueLabels, TwoStageClassifier):
    """The classifier of `mv_lr` trained on true labels: an upper bound, never a crowd method.

    `fit` is given the truth as the annotations of one annotator who is always right.
    """
