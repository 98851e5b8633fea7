"""DASC: self-training of any crowd model on pseudo-annotations that balance the classes (algorithm
1).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.dasc.confidence import pseudo_annotations
from neucrowd_tf.dasc.selection import SELECTORS, Candidates, SelectionName
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.arguments import check_number, check_whole
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import hold_out

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.datasets import CrowdDataset

# Seeds of the rounds' fits lie this far apart; round 0 has the method's own seed, so that it is the
# base model's run.
_ROUND_SEEDS = 7919


@dataclasses.dataclass
class _Rounds:
    """What the rounds on one set of instances leave."""

    history: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    selections: list[NDArray[np.int32]] = dataclasses.field(default_factory=list)
    stages: list[Any] = dataclasses.field(default_factory=list)
    training: list[Annotations] = dataclasses.field(default_factory=list)
    last: Any = None
    stopped: str = "rounds"

    def log(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)

    def picked(self, size: int, tolerance: float) -> int:
        """Returns the latest round whose validation accuracy, of `size` instances, is within
        `tolerance` standard errors of the best.
        """
        scores = np.asarray(self.history["val_accuracy"])
        best = scores.max()
        return int(
            np.flatnonzero(
                scores >= best - tolerance * np.sqrt(best * (1.0 - best) / size) - 1e-12
            )[-1]
        )


class DASC(CrowdEstimator):
    """Distribution-aware self-training over a crowd model.

    Each round fits the model anew on the observed and the selected pseudo-annotations, predicts the
    answers that annotators did not give, and selects some of them: with "dasc" the most confident
    of each class, fewer of classes that are predicted often.

    Args:
        estimator: what is refitted each round: an estimator with `predict_annotators(features) ->
            [N, R, C]` (CrowdLayer, Anno-Reg, Weighted Doctor Net, or another); it is cloned. None
            is a `CrowdLayer()`.
        selection: "dasc" (eqs. 3 and 4), "confidence" (least entropy), "random", or "equal" (the
            same number of each class).
        quota: M, how many pseudo-annotations a round selects; where fewer are left, all of these.
        rounds: how many times pseudo-annotations are selected and the model is refitted; rounds end
            early when every annotator's answer to every instance is there.
        reselect: select anew from all unobserved answers in each round, instead of keeping
            selections for ever.
        pick: "last" predicts with the last round, as the paper does; "validation" with the latest
            round whose validation accuracy is within `tolerance` standard errors of the best one:
            the last round too, unless an earlier one was clearly better.
        tolerance: in standard errors of the best accuracy; 0 takes the best round itself.
        patience: stop after so many rounds without a better validation accuracy; None goes on.
        validation_fraction: without validation data, this share of the instances is held out in a
            first pass that chooses the round (scored against their majority votes); a second pass
            goes as many rounds on all instances.
        seed: draws everything that is random.

    Attributes:
        estimator_: the fitted model of the round that was picked; `last_estimator_` that of the
            last round.
        best_round_: the picked round; 0 is the model before any pseudo-annotation.
        round_accuracy_: validation accuracy of each round (in the first pass, where validation data
            was held out).
        history_: lists with an entry each round: `round`, `annotations` (in training),
            `imbalance_ratio` (R of these), `class_counts`, `selected` and `quota` (taken of each
            class after the round; the last round has none), `val_accuracy`.
        selections_: for each round that selected, `[M, 3]` int32 (instance, annotator, label);
            instances are rows of the training data, `rows_` gives their positions in what `fit` was
            given.
        annotations_: the picked round's training annotations, pseudo-annotations marked as
            generated.
        stopped_: "rounds", "exhausted" or "validation".
        confusion_matrices_: `[R, C true, C observed]`, the picked model's, where it has them.

    References:
        DASC, section 3.2 and algorithm 1.
    """

    requires_identities: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        selection: SelectionName = "dasc",
        *,
        quota: int = 1000,
        rounds: int = 5,
        reselect: bool = False,
        pick: Literal["validation", "last"] = "validation",
        tolerance: float = 1.0,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.selection = selection
        self.quota = quota
        self.rounds = rounds
        self.reselect = reselect
        self.pick = pick
        self.tolerance = tolerance
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.seed = seed

    # ----------------------------------------------------------------- fit

    def _check_arguments(self) -> None:
        if self.selection not in SELECTORS:
            raise UsageError(
                f"selection: expected one of {', '.join(SELECTORS)}, received {self.selection!r}"
            )
        check_whole("quota", self.quota)
        check_whole("rounds", self.rounds, 0)
        check_whole("patience", self.patience, optional=True)
        check_whole("seed", self.seed, 0)
        check_number("tolerance", self.tolerance, least=0)
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        if self.pick not in ("validation", "last"):
            raise UsageError(f"pick: expected 'validation' or 'last', received {self.pick!r}")

    def _base(self) -> Any:
        if self.estimator is None:
            from neucrowd_tf.crowd_layers import CrowdLayer

            return CrowdLayer()
        if not hasattr(self.estimator, "predict_annotators"):
            raise TypeError(
                "estimator: expected one with predict_annotators, received"
                f" {type(self.estimator).__name__}"
            )
        return clone(self.estimator)

    def _fit(self, data: TrainingData, run: Run) -> None:
        self._check_arguments()
        rounds, chosen, judged = self.rounds, None, data.validation
        if self.pick == "validation" and data.validation is None:
            from neucrowd_tf.aggregation import MajorityVote

            consensus = np.asarray(
                MajorityVote(seed=self.seed).fit(data.annotations).labels_, dtype=np.int64
            )
            part, _ = hold_out(data, consensus, self.validation_fraction, self.seed)
            chosen, judged = self._go(part, rounds, run.stage("choose")), part.validation
            rounds = len(chosen.history["round"]) - 1
        result = self._go(data, rounds, run)
        judge = result if chosen is None else chosen
        self.round_accuracy_ = [float(value) for value in judge.history.get("val_accuracy", [])]
        last = len(result.stages) - 1
        self.best_round_ = last
        if self.pick == "validation" and judged is not None:
            # Deviation: "until expected performance reached" (algorithm 1) is made a rule on
            # validation accuracy.
            self.best_round_ = min(judge.picked(len(judged[1]), self.tolerance), last)
        self.history_, self.selections_ = result.history, result.selections
        self.stopped_ = "validation" if judge.stopped == "validation" else result.stopped
        self.last_estimator_ = result.last
        self._stages = result.stages
        self.estimator_ = result.last if self.best_round_ == last else self._stage(self.best_round_)
        self.annotations_ = result.training[self.best_round_]
        self.confusion_matrices_ = getattr(self.estimator_, "confusion_matrices_", None)
        self.rows_, self.n_iter_ = data.rows, last
        run.flush()

    def _go(self, data: TrainingData, rounds: int, run: Run) -> _Rounds:
        """Fits, selects and refits (algorithm 1)."""
        estimator = self._base()
        observed = data.annotations.observed()
        pair = (
            None
            if data.validation is None
            else (data.validation[0], self.classes_[data.validation[1]])
        )
        result, crowd = _Rounds(), observed
        taken = np.zeros(observed.shape, dtype=bool)
        taken[observed.instances, observed.annotators] = True
        reuse = estimator.reused() if hasattr(estimator, "reused") else contextlib.nullcontext()
        with reuse:
            for number in range(rounds + 1):
                if "seed" in estimator.get_params(deep=False):
                    estimator.set_params(seed=(self.seed + _ROUND_SEEDS * number) % 2**31)
                estimator.fit(data.features, crowd, pair, run=run.stage(f"round-{number}"))
                self._record(result, number, estimator, crowd, data, run)
                if (
                    self._exhausted(result, taken)
                    or number == rounds
                    or self._patience_over(result)
                ):
                    break
                chosen = self._select(estimator, data.features, taken, observed.num_classes, number)
                result.selections.append(chosen)
                result.history["selected"][-1] = len(chosen)
                result.history["quota"][-1] = np.bincount(
                    chosen[:, 2], minlength=observed.num_classes
                ).tolist()
                keep = chosen if self.reselect else np.concatenate(result.selections)
                crowd = observed.with_generated(keep[:, 0], keep[:, 1], keep[:, 2])
                if not self.reselect:
                    taken[chosen[:, 0], chosen[:, 1]] = True
                if not hasattr(estimator, "_snapshot"):
                    estimator = clone(estimator)
        result.last = estimator
        return result

    def _record(
        self,
        result: _Rounds,
        number: int,
        estimator: Any,
        crowd: Annotations,
        data: TrainingData,
        run: Run,
    ) -> None:
        """Keeps what the round leaves: its model, its training annotations and its figures."""
        result.stages.append(
            estimator._snapshot() if hasattr(estimator, "_snapshot") else estimator
        )
        result.training.append(crowd)
        counts = np.bincount(crowd.labels, minlength=crowd.num_classes)
        values: dict[str, Any] = {
            "round": number,
            "annotations": crowd.num_annotations,
            "imbalance_ratio": imbalance_ratio(counts),
        }
        if data.validation is not None:
            values["val_accuracy"] = float(
                (
                    estimator.predict_proba(data.validation[0]).argmax(axis=1) == data.validation[1]
                ).mean()
            )
        result.log(
            {
                **values,
                "class_counts": counts.tolist(),
                "selected": 0,
                "quota": [0] * crowd.num_classes,
            }
        )
        run.stage("rounds").scalars(number, values)

    @staticmethod
    def _exhausted(result: _Rounds, taken: NDArray[np.bool_]) -> bool:
        if not taken.all():
            return False
        result.stopped = "exhausted"
        return True

    def _patience_over(self, result: _Rounds) -> bool:
        scores = result.history.get("val_accuracy", [])
        if (
            self.patience is None
            or not scores
            or len(scores) - 1 - int(np.argmax(scores)) < self.patience
        ):
            return False
        result.stopped = "validation"
        return True

    def _select(
        self,
        estimator: Any,
        features: NDArray[np.float32],
        taken: NDArray[np.bool_],
        num_classes: int,
        number: int,
    ) -> NDArray[np.int32]:
        """Returns the round's selection `[M, 3]` (instance, annotator, label)."""
        labels, entropies = pseudo_annotations(estimator, features, taken.shape[1], num_classes)
        candidates = Candidates.of(labels, entropies, taken, num_classes)
        rng = np.random.default_rng([self.seed, 0xDA5C, number])
        chosen = SELECTORS[self.selection](candidates, min(self.quota, len(candidates.cells)), rng)
        instances, annotators = np.divmod(candidates.cells[chosen], taken.shape[1])
        return np.stack([instances, annotators, candidates.labels[chosen]], axis=1).astype(np.int32)

    def _stage(self, number: int) -> Any:
        """Returns the fitted model of one round, on its own."""
        stage = self._stages[number]
        return self.last_estimator_._from_snapshot(stage) if isinstance(stage, dict) else stage

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(self.estimator_.predict_proba(features))

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns how likely each annotator gives each label, `[M, R, C]`, by the picked model."""
        return np.asarray(self.estimator_.predict_annotators(features), dtype=np.float32)

    def staged_predict_proba(self, features: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yields class probabilities `[M, C]` by the model of each round, from round 0 on.

        Raises:
            RuntimeError: the estimator was loaded from a folder, which holds the picked and the
                last round alone.
        """
        x = self._check_fitted(features)
        if not hasattr(self, "_stages"):
            raise RuntimeError(
                "staged_predict_proba: expected an estimator that was fitted in this process,"
                " received a loaded one"
            )
        viewer: Any = None
        for stage in self._stages:
            if not isinstance(stage, dict):
                yield np.asarray(stage.predict_proba(x))
                continue
            viewer = (
                self.last_estimator_._from_snapshot(stage)
                if viewer is None
                else viewer._load_snapshot(stage)
            )
            yield np.asarray(viewer.predict_proba(x))

    def evaluation(self, dataset: CrowdDataset) -> dict[str, Any]:
        """Returns how the rounds went, from the truth: see `round_scores`."""
        from neucrowd_tf.dasc.quality import round_scores

        return round_scores(self, dataset)

    def inference_model(self) -> Any:
        return self.estimator_.inference_model()

    def __getstate__(self) -> dict[str, Any]:
        """Copies leave out the rounds' models, as saved estimators do."""
        return {name: value for name, value in super().__getstate__().items() if name != "_stages"}
