"""auto: tries the project's methods on a user's own data, recommends one, and fits it."""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import t
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if

from neucrowd_tf import crowd_layers, crowding, dasc, iced, neucrowd, registry, rll, two_stage
from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.arguments import argument, estimator, fitted, many, text, whole
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.consensus import consensus_labels
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Whose methods may be asked for: they register when these are imported.
ROOMS = (crowd_layers, crowding, dasc, iced, neucrowd, rll, two_stage)
CANDIDATES = ("mv_lr", "ds_lr", "crowd_layer", "dasc_crowd_layer", "neucrowd", "iced")
BASELINE = "mv_lr"
# ICED balances classes: it is tried where the largest class is so many times the smallest.
IMBALANCED = 3.0
CONFIDENCE = 0.95


def paired_interval(
    first: ArrayLike, second: ArrayLike, folds: int, comparisons: int = 1
) -> tuple[float, float, float]:
    """Returns the mean difference of two methods' held-out results and the bounds of its interval.

    The variance of the mean is `s^2 / n (1 + k / (k - 1))`: s^2 that of the n single differences,
    and the second part the correction for training sets that overlap between k folds. It is the
    corrected resampled t-test with the variance of a fold's mean estimated from all n differences
    (s^2 k / n) rather than from k numbers.

    Args:
        first, second: `[n]` results by instance (1 for right, 0 for wrong).
        folds: k.
        comparisons: how many such intervals are to hold together (Bonferroni).

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    size = len(difference)
    middle = float(difference.mean())
    if size < 2:
        return middle, -np.inf, np.inf
    error = float(difference.std(ddof=1)) * np.sqrt((1 + folds / (folds - 1)) / size)
    half = float(t.ppf(1 - (1 - CONFIDENCE) / (2 * max(1, comparisons)), size - 1)) * error
    return middle, middle - half, middle + half


def _embeds(estimator: Auto) -> bool:
    return hasattr(estimator.estimator_, "transform")


@register_method(
    "auto",
    summary=(
        "tries majority vote, Dawid-Skene, CrowdLayer, DASC, NeuCrowd (and ICED) on held-out folds,"
        " recommends and fits one"
    ),
)
@estimator
class Auto(CrowdEstimator):
    """Chooses among methods by cross-validation inside the training data, and fits the chosen one
    on all of it.

    Held-out predictions are scored against consensus labels; the method with the highest accuracy
    is taken, the first of those that are equal. Methods that cannot run on the data are left out,
    with the reason.

    Attributes:
        recommendation_: `method` (the chosen one), `difference`, `low`, `high` (its held-out
            accuracy minus that of mv_lr, with an interval that holds for all methods together),
            `more_than_noise`, `text` (all this as a sentence), and `methods`, a row a method with
            `score` (accuracy), `balanced_accuracy`, `log_loss` and the comparison, or the `reason`
            it was left out.
        estimator_: the chosen method, fitted on everything.
        held_out_probas_: `[N, C]` what the chosen method predicts for each training instance when
            it is held out; NaN for the only instance of a class.
        consensus_: `[N]` class codes that were scored against.
        rows_: `[N]` positions of the training instances in what `fit` was given.
        seconds_: what each method's cross-validation took.
    """

    takes_texts: ClassVar[bool] = True  # each fold's methods make numbers of its own texts

    methods: Sequence[str] = argument(
        CANDIDATES,
        many(text, "methods' names", least=0),
        "the names to try, simple ones first; majority vote with logistic regression is always"
        " among them. ICED is tried where the imbalance ratio of the consensus is above 3.",
        positional=True,
    )
    folds: int = argument(3, whole(2), "of the cross-validation.")

    recommendation_: dict[str, Any] = fitted()
    estimator_: Any = fitted()
    held_out_probas_: NDArray[np.float64] = fitted()
    consensus_: NDArray[np.int64] = fitted()
    rows_: NDArray[np.int64] = fitted()
    seconds_: dict[str, float] = fitted()

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.consensus_ = consensus_labels(data.annotations, self.seed, weigh_annotators=True)
        self.rows_ = data.rows
        splits = self._splits()
        found: dict[str, NDArray[np.float64]] = {}
        reasons: dict[str, str] = {}
        self.seconds_ = {}
        for name in dict.fromkeys((BASELINE, *self.methods)):
            reason = self._unfit(registry.method(name), data.annotations)
            if reason is None:
                try:
                    held_out = functools.partial(self._held_out, name, data, splits, run)
                    arrays = run.cached(f"cv-{name}", held_out)
                    found[name] = arrays["probabilities"]
                    self.seconds_[name] = float(arrays["seconds"])
                except OSError:
                    raise
                # one method's failure is a reason to leave it out, not to recommend nothing
                except Exception as error:
                    if name == BASELINE:
                        raise
                    reason = " ".join(str(error).split()) or type(error).__name__
            if reason is not None:
                reasons[name] = reason
        self.recommendation_ = self._compare(found, reasons, len(splits))
        chosen = self.recommendation_["method"]
        self.held_out_probas_ = found[chosen]
        self.estimator_ = registry.method(chosen).make(seed=self.seed)
        self.estimator_.fit(
            data.features, data.annotations, self._validation(data), run=run.stage("final")
        )
        for name in ("confusion_matrices_", "annotator_accuracy_"):
            if getattr(self.estimator_, name, None) is not None:
                setattr(self, name, getattr(self.estimator_, name))

    def _validation(self, data: TrainingData) -> tuple[NDArray[Any], NDArray[Any]] | None:
        return (
            None
            if data.validation is None
            else (data.validation[0], self.classes_[data.validation[1]])
        )

    def _splits(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Returns the rows of stratified folds; the only instance of a class is trained on in all
        of them and never held out.
        """
        counts = np.bincount(self.consensus_)
        common = np.flatnonzero(counts[self.consensus_] >= 2)
        if len(common) < 4:
            raise DataError(
                "auto: expected at least 4 annotated instances of classes that occur again, to"
                f" hold some out, received {len(common)}"
            )
        single = np.setdiff1d(np.arange(len(self.consensus_)), common)
        splitter = StratifiedKFold(
            min(self.folds, int(counts[counts >= 2].min())), shuffle=True, random_state=self.seed
        )
        parts = splitter.split(common, self.consensus_[common])
        return [
            (np.sort(np.concatenate([common[train], single])), common[test])
            for train, test in parts
        ]

    def _unfit(self, method: registry.Method, annotations: Annotations) -> str | None:
        """Returns why a method is not tried, or None."""
        if method.requires_identities and not annotations.has_identities:
            return (
                "it needs to know which annotator gave which label, and the data holds vote counts"
                " only"
            )
        if method.max_classes is not None and annotations.num_classes > method.max_classes:
            return f"it handles at most {method.max_classes} classes"
        if method.uses_truth:
            return "it trains on the truth"
        ratio = statistics.imbalance_ratio(
            np.bincount(self.consensus_, minlength=annotations.num_classes)
        )
        if method.name == "iced" and ratio <= IMBALANCED:
            return (
                f"the largest class is {ratio:.1f} times the smallest, and balancing pays above"
                f" {IMBALANCED:.0f}"
            )
        return None

    def _held_out(
        self,
        name: str,
        data: TrainingData,
        splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
        run: Run,
    ) -> dict[str, NDArray[Any]]:
        """Returns `[N, C]` probabilities, each row from the fold that held it out; NaN where none
        did.
        """
        began = time.perf_counter()
        probabilities = np.full((len(data.features), len(self.classes_)), np.nan)
        for fold, (train, test) in enumerate(splits):
            stage = dataclasses.replace(
                run.stage("cv").stage(name).stage(f"fold-{fold}"), tensorboard=None
            )
            estimator = registry.method(name).make(seed=self.seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator.fit(
                    data.features[train], data.annotations[train], self._validation(data), run=stage
                )
            probabilities[test] = estimator.predict_proba(data.features[test])
        return {"probabilities": probabilities, "seconds": np.array(time.perf_counter() - began)}

    # ----------------------------------------------------------------- compare

    def _compare(
        self, found: dict[str, NDArray[np.float64]], reasons: dict[str, str], folds: int
    ) -> dict[str, Any]:
        from neucrowd_tf.metrics import classification_metrics

        scored = np.isfinite(found[BASELINE]).all(axis=1)
        truth = self.consensus_[scored]
        found = {name: probabilities[scored] for name, probabilities in found.items()}
        right = {
            name: probabilities.argmax(axis=1) == truth for name, probabilities in found.items()
        }
        rows: list[dict[str, Any]] = []
        for name, probabilities in found.items():
            metrics = classification_metrics(
                truth, probabilities / probabilities.sum(axis=1, keepdims=True), calibration=False
            )
            row = {
                "method": name,
                "score": metrics["accuracy"],
                "balanced_accuracy": metrics["balanced_accuracy"],
                "log_loss": metrics["log_loss"],
            }
            comparison: dict[str, Any] = dict.fromkeys(
                ("difference", "low", "high", "more_than_noise")
            )
            if name != BASELINE:
                difference, low, high = paired_interval(
                    right[name], right[BASELINE], folds, len(found) - 1
                )
                comparison = {
                    "difference": difference,
                    "low": low,
                    "high": high,
                    "more_than_noise": bool(low > 0),
                }
            rows.append(row | comparison)
        best = max(
            rows, key=lambda row: row["score"]
        )  # the first of equals, and simple methods come first
        chosen = {
            name: best[name] for name in ("method", "difference", "low", "high", "more_than_noise")
        }
        left_out = [
            {"method": name, "score": None, "reason": reason} for name, reason in reasons.items()
        ]
        return {**chosen, "text": _sentence(best, rows, folds), "methods": [*rows, *left_out]}

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(self.estimator_.predict_proba(features))

    @available_if(_embeds)
    def transform(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns the embedding `[M, h]`, where the chosen method has one."""
        return np.asarray(self.estimator_.transform(features))

    def inference_model(self) -> Any:
        return self.estimator_.inference_model()

    def text_layer(self) -> Any:
        return self.estimator_.text_layer()


def _sentence(best: dict[str, Any], rows: Sequence[dict[str, Any]], folds: int) -> str:
    others = len(rows) - 1
    head = (
        f"{best['method']} is recommended: in {folds}-fold cross-validation against consensus"
        f" labels its accuracy is {best['score']:.3f}"
    )
    if best["difference"] is None:
        rivals = (
            "nothing else could be tried"
            if not others
            else f"none of the other {others} is more accurate"
        )
        return f"{head}, and {rivals}. It is majority vote with logistic regression."
    points = [100 * float(best[name]) for name in ("difference", "low", "high")]
    noise = (
        "more than noise"
        if best["more_than_noise"]
        else f"no more than noise: the simpler {BASELINE} may serve as well"
    )
    compared = f"{others} comparisons together" if others > 1 else "one comparison"
    interval = f"95 % interval {points[1]:.1f} to {points[2]:.1f} points, for {compared}"
    return (
        f"{head}, {points[0]:.1f} points above majority vote with logistic regression ({interval}),"
        f" which is {noise}."
    )
