"""Two stages: infer one label an instance from the crowd, then train a logistic regression on it as
if it were the truth.

The classifier is the same whatever the aggregator, so that `mv_lr`, `ds_lr` and `glad_lr` differ in
their labels alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf import aggregation
from neucrowd_tf.aggregation import Aggregator
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.linear import STRENGTHS, fit_logistic
from neucrowd_tf.training.run import Run
from neucrowd_tf.two_stage.linear_classifier import LinearClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAPER = "Hao, Ding, Liu: NeuCrowd, section 4.2 (group 1)"
AGGREGATORS = ("mv", "ds", "ds_one_coin", "glad")


def make_aggregator(name: str, seed: int, ties: str) -> Aggregator:
    """Returns an unfitted aggregator.

    Args:
        name: "mv" (majority vote), "ds" (Dawid and Skene), "ds_one_coin" (one accuracy an
            annotator) or "glad".
        seed, ties: for majority vote's ties.

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


@register_method(
    "glad_lr",
    summary="GLAD, then logistic regression",
    defaults={"aggregator": "glad"},
    requires_identities=True,
    space={"labels": ("hard", "soft")},
    paper=_PAPER,
)
@register_method(
    "ds_onecoin_lr",
    summary="Dawid and Skene's EM with one accuracy an annotator, then logistic regression",
    defaults={"aggregator": "ds_one_coin"},
    requires_identities=True,
    space={"labels": ("hard", "soft")},
    paper=_PAPER,
)
@register_method(
    "ds_lr",
    summary="Dawid and Skene's EM, then logistic regression",
    defaults={"aggregator": "ds"},
    requires_identities=True,
    space={"labels": ("hard", "soft"), "aggregator": ("ds", "ds_one_coin")},
    paper=_PAPER,
)
@register_method(
    "mv_lr",
    summary="majority vote, then logistic regression",
    defaults={"aggregator": "mv"},
    space={"ties": ("random", "first", "prior"), "labels": ("hard", "soft")},
    paper=_PAPER,
)
class TwoStageClassifier(LinearClassifier):
    """An aggregator's labels and a standardised logistic regression trained on them.

    Works without TensorFlow, except for `inference_model`.

    Args:
        aggregator: "mv" (majority vote), "ds" (Dawid and Skene), "ds_one_coin" or "glad"; or an
            unfitted aggregator.
        labels: "hard" trains on the most probable class; "soft" on each class weighted with its
            probability.
        ties: what decides between classes with equally many votes: "random", "first" or "prior"
            (majority vote alone).
        Cs: inverse regularisation strengths, the strongest regularisation first. The one with the
            best log loss on the validation data is taken, or by cross-validation where there is
            none.
        seed: draws ties and folds.

    Attributes:
        classes_: `[C]` class names.
        head_: the fitted `LinearHead`.
        labels_, probas_: `[N]` class codes and `[N, C]` probabilities that the aggregator gave to
            the training instances.
        confusion_matrices_: `[R, C true, C observed]`, the aggregator's, or None where it is not
            known who voted.
    """

    labels_: NDArray[np.int64]
    probas_: NDArray[np.float64]
    confusion_matrices_: NDArray[np.float64] | None

    def __init__(
        self,
        aggregator: str | Aggregator = "mv",
        *,
        labels: str = "hard",
        ties: str = "random",
        Cs: Sequence[float] = STRENGTHS,
        seed: int = 0,
    ) -> None:
        self.aggregator = aggregator
        self.labels = labels
        self.ties = ties
        self.Cs = Cs
        self.seed = seed

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.labels not in ("hard", "soft"):
            raise UsageError(f"labels: expected 'hard' or 'soft', received {self.labels!r}")
        if isinstance(self.aggregator, str):
            stage = make_aggregator(self.aggregator, self.seed, self.ties)
        else:
            from sklearn.base import clone

            stage = clone(self.aggregator)
        stage.fit(data.annotations)
        self.labels_, self.probas_ = stage.labels_, stage.probas_
        self.confusion_matrices_ = stage.errors_
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
