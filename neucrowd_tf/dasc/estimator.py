"""DASC: self-training of any crowd model on pseudo-annotations that balance the classes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.arguments import (
    Constraint,
    argument,
    estimator,
    fitted,
    flag,
    none,
    number,
    one_of,
    share,
    whole,
)
from neucrowd_tf.dasc.calibration import (
    Calibrated,
    drawn_labels,
    fit_temperatures,
    held_out_annotations,
)
from neucrowd_tf.dasc.confidence import pseudo_annotations
from neucrowd_tf.dasc.quality import round_scores
from neucrowd_tf.dasc.quotas import fill_lost_classes, generated_counts
from neucrowd_tf.dasc.selection import SELECTORS, Candidates, SelectionName
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.network_cache import ReusesNetworks
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import consensus_labels, hold_out

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.datasets import CrowdDataset

# Seeds of the rounds' fits lie this far apart; round 0 has the method's own seed, so that it is the
# base model's run where both have the same settings (on LabelMe only Weighted Doctor Net has).
_ROUND_SEEDS = 7919


@dataclasses.dataclass
class Rounds:
    """What the rounds of self-training on one set of instances leave, an entry each.

    Attributes:
        history: figures by name.
        selections: `[M, 3]` (instance, annotator, label) of each round that selected.
        models: fitted models, or snapshots of `last`.
        training: what each round's model was trained on.
        last: the last round's model.
        stopped: "rounds", "exhausted" or "validation"; empty while they go on.
    """

    history: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    selections: list[NDArray[np.int32]] = dataclasses.field(default_factory=list)
    models: list[Any] = dataclasses.field(default_factory=list)
    training: list[Annotations] = dataclasses.field(default_factory=list)
    last: Any = None
    stopped: str = ""

    @property
    def accuracies(self) -> list[float]:
        """Validation accuracy of each round; empty without validation data."""
        return [float(value) for value in self.history.get("val_accuracy", [])]


@estimator
class SelfTraining(ReusesNetworks, CrowdEstimator):
    """Self-training over a crowd model, which a subclass makes in `_crowd_model`.

    Each round fits the model anew on the observed and the selected pseudo-annotations, predicts the
    answers that annotators did not give, and selects some of them: with "dasc" the most confident
    of each class, fewer of classes that are predicted often.

    Attributes:
        estimator_: the fitted model of the round that was picked; `last_estimator_` that of the
            last round.
        best_round_: the picked round; 0 is the model before any pseudo-annotation.
        round_accuracy_: validation accuracy of each round (in the first pass, where validation data
            was held out).
        history_: lists with an entry each round: `lost` (classes that the crowd names and no
            pseudo-annotation had), `round`, `annotations` (in training),
            `imbalance_ratio` (R of these), `class_counts`, `selected` and `quota` (taken of each
            class after the round; the last round has none), `val_accuracy`.
        selections_: for each round that selected, `[M, 3]` int32 (instance, annotator, label);
            instances are rows of the training data, `rows_` gives their positions in what `fit` was
            given.
        annotations_: the picked round's training annotations, pseudo-annotations marked as
            generated.
        stopped_: "rounds", "exhausted" or "validation".
        temperatures_: `[R]` of annotators' answers, or None without `calibration`.
        confusion_matrices_: `[R, C true, C observed]`, the picked model's, where it has them.

    References:
        DASC, section 3.2.
    """

    requires_identities: ClassVar[bool] = True
    distributed: ClassVar[bool] = True

    selection: SelectionName = argument(
        "dasc",
        one_of(*SELECTORS),
        '"dasc" (eqs. 3 and 4), "confidence" (least entropy), "random", or "equal" (the same number'
        " of each class).",
    )
    quota: int = argument(
        1000,
        whole(1),
        "M, how many pseudo-annotations a round selects; where fewer are left, all of these.",
    )
    rounds: int = argument(
        5,
        whole(0),
        "how many times pseudo-annotations are selected and the model is refitted; rounds end early"
        " when every annotator's answer to every instance is there.",
    )
    counted: Literal["generated", "remaining"] = argument(
        "generated",
        one_of("generated", "remaining"),
        'N\'_c of eq. 4: "generated" counts the pseudo-annotations of all cells that nobody'
        ' labelled; "remaining" those not selected yet, which favours a class the more, the more of'
        " it was taken.",
    )
    per_instance: int | None = argument(
        None,
        none | whole(1),
        "at most so many pseudo-annotations of an instance join in a round, its most confident"
        " ones; the most confident cells may otherwise be those of few instances.",
    )
    filling: Literal["likely", "drawn"] = argument(
        "likely",
        one_of("likely", "drawn"),
        'a selected cell\'s label: the most "likely" one, or one "drawn" from what the model'
        " predicts, so that the next round learns the probabilities.",
    )
    calibration: float = argument(
        0.0,
        number(least=0, below=1),
        "the share of the annotations that a first fit leaves out, to find a temperature for each"
        " annotator's predicted answers; 0 takes these as they are.",
    )
    reselect: bool = argument(
        False,
        flag,
        "select anew from all unobserved answers in each round, instead of keeping selections for"
        " ever.",
    )
    pick: Literal["validation", "last"] = argument(
        "validation",
        one_of("validation", "last"),
        '"last" predicts with the last round, as the paper does; "validation" with the latest round'
        " whose validation accuracy is within `tolerance` standard errors of the best one: the last"
        " round too, unless an earlier one was clearly better.",
    )
    tolerance: float = argument(
        1.0, number(least=0), "in standard errors of the best accuracy; 0 takes the best round."
    )
    patience: int | None = argument(
        None,
        none | whole(1),
        "stop after so many rounds without a better validation accuracy; None goes on.",
    )
    validation_fraction: float = argument(
        0.2,
        share,
        "without validation data, this share of the instances is held out in a first pass that"
        " chooses the round (scored against their majority votes); a second pass goes as many"
        " rounds on all instances.",
    )
    seed: int = argument(
        0,
        whole(0),
        "draws everything that is random; each round's model is fitted with a seed derived from it,"
        " whatever seed the model itself was given.",
    )

    estimator_: Any = fitted()
    last_estimator_: Any = fitted()
    best_round_: int = fitted()
    round_accuracy_: list[float] = fitted()
    history_: dict[str, list[Any]] = fitted()
    selections_: list[NDArray[np.int32]] = fitted()
    annotations_: Annotations = fitted()
    stopped_: str = fitted()
    confusion_matrices_: NDArray[np.float32] | None = fitted()
    rows_: NDArray[np.int64] = fitted()
    n_iter_: int = fitted()
    temperatures_: NDArray[np.float64] | None = fitted()

    def _crowd_model(self) -> Any:
        """Returns a new, unfitted crowd model with `predict_annotators`."""
        raise NotImplementedError

    def _filling_model(self) -> Any:
        """Returns a new, unfitted model whose answers fill the empty cells in every round; None
        where each round's crowd model does.
        """
        return None

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        by_validation, rounds, first = self.pick == "validation", self.rounds, None
        validation = data.validation
        if by_validation and validation is None:
            labels = consensus_labels(data.annotations, self.seed)
            part, _ = hold_out(data, labels, self.validation_fraction, self.seed)
            first, validation = self._self_train(part, rounds, run.stage("choose")), part.validation
            rounds = len(first.models) - 1
        result = self._self_train(data, rounds, run)
        scored = result if first is None else first
        self.best_round_ = last = len(result.models) - 1
        if by_validation and validation is not None:
            # Deviation: "until expected performance reached" (algorithm 1) is made a rule on
            # validation accuracy.
            size = len(validation[1])
            self.best_round_ = min(latest_good(scored.accuracies, size, self.tolerance), last)
        self.round_accuracy_ = scored.accuracies
        self.history_, self.selections_ = result.history, result.selections
        self.stopped_ = "validation" if scored.stopped == "validation" else result.stopped
        self.last_estimator_, self._models = result.last, result.models
        self.estimator_ = result.last if self.best_round_ == last else self._model(self.best_round_)
        self.annotations_ = result.training[self.best_round_]
        self.confusion_matrices_ = getattr(self.estimator_, "confusion_matrices_", None)
        self.rows_, self.n_iter_ = data.rows, last
        run.flush()

    def _self_train(self, data: TrainingData, rounds: int, run: Run) -> Rounds:
        """Fits the model, predicts the answers that nobody gave, adds some of them and fits again.

        References:
            DASC, algorithm 1.
        """
        model, result = self._crowd_model(), Rounds()
        # What cannot be written to is standardised once for all rounds.
        data = dataclasses.replace(data, features=data.features.view())
        data.features.flags.writeable = False
        filling = self._filling_model()
        crowd = observed = data.annotations.observed()
        known = np.zeros(observed.shape, dtype=bool)
        known[observed.instances, observed.annotators] = True
        if hasattr(model, "annotations_expected"):
            most = self.quota * (1 if self.reselect else rounds)
            model.annotations_expected = observed.num_annotations + most
        kept = self._networks
        with model.reused(kept) if hasattr(model, "reused") else contextlib.nullcontext():
            self.temperatures_ = self._calibrate(model if filling is None else filling, data, run)
            if filling is not None:
                self._fit_model(filling, observed, data, 0, run.stage("filling"))
            for number in range(rounds + 1):
                self._fit_model(model, crowd, data, number, run)
                self._record(result, model, crowd, data, run)
                result.stopped = self._stopped(result, known, last=number == rounds)
                if result.stopped:
                    break
                fills = model if filling is None else filling
                selected, lost = self._select(fills, data.features, observed, known, number)
                result.history["lost"][-1] = lost
                result.selections.append(selected)
                result.history["selected"][-1] = len(selected)
                counts = np.bincount(selected[:, 2], minlength=observed.num_classes)
                result.history["quota"][-1] = counts.tolist()
                if self.reselect:
                    added = selected
                else:
                    known[selected[:, 0], selected[:, 1]] = True
                    added = np.concatenate(result.selections)
                crowd = observed.with_generated(*added.T)
                if not hasattr(model, "snapshot"):
                    model = clone(model)
        result.last = model
        return result

    def _calibrate(self, model: Any, data: TrainingData, run: Run) -> NDArray[np.float64] | None:
        """Returns a temperature for each annotator `[R]`, from a fit without some annotations; None
        where none are left out.
        """
        if not self.calibration:
            return None
        observed = data.annotations.observed()
        kept, held = held_out_annotations(observed, self.calibration, self.seed)
        self._fit_model(model, kept, data, 0, run.stage("calibration"))
        labels, annotators = observed.labels[held], observed.annotators[held]
        needed, places = np.unique(observed.instances[held], return_inverse=True)
        answers = model.predict_annotators(data.features[needed])[places, annotators]
        return fit_temperatures(answers, labels, annotators, observed.num_annotators)

    def _fit_model(
        self, model: Any, crowd: Annotations, data: TrainingData, number: int, run: Run
    ) -> None:
        """Fits a round's model with the round's seed."""
        if "seed" in model.get_params(deep=False):
            model.set_params(seed=(self.seed + _ROUND_SEEDS * number) % 2**31)
        model.fit(data.features, crowd, data.named_validation, run=run.stage(f"round-{number}"))

    def _record(
        self, result: Rounds, model: Any, crowd: Annotations, data: TrainingData, run: Run
    ) -> None:
        """Keeps what a round leaves: its model, its training annotations and its figures."""
        number = len(result.models)
        result.models.append(model.snapshot() if hasattr(model, "snapshot") else model)
        result.training.append(crowd)
        counts = np.bincount(crowd.labels, minlength=crowd.num_classes)
        figures: dict[str, Any] = {
            "round": number,
            "annotations": crowd.num_annotations,
            "imbalance_ratio": imbalance_ratio(counts),
        }
        if data.validation is not None:
            features, labels = data.validation
            right = model.predict_proba(features).argmax(axis=1) == labels
            figures["val_accuracy"] = float(right.mean())
        run.stage("rounds").scalars(number, figures)
        figures |= {"class_counts": counts.tolist(), "selected": 0, "quota": [0] * len(counts)}
        figures |= {"lost": []}
        for name, value in figures.items():
            result.history.setdefault(name, []).append(value)

    def _stopped(self, result: Rounds, known: NDArray[np.bool_], *, last: bool) -> str:
        """Returns why there is no further round, or nothing."""
        scores = result.accuracies
        if known.all():
            return "exhausted"
        if last:
            return "rounds"
        waited = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        return "validation" if self.patience is not None and waited >= self.patience else ""

    def _select(
        self,
        model: Any,
        features: NDArray[np.float32],
        observed: Annotations,
        known: NDArray[np.bool_],
        number: int,
    ) -> tuple[NDArray[np.int32], list[int]]:
        """Returns the round's selection `[M, 3]` (instance, annotator, label), and the classes
        that the crowd names and no pseudo-annotation had.
        """
        classes, annotators = observed.num_classes, known.shape[1]
        if self.temperatures_ is not None:
            model = Calibrated(model, self.temperatures_)
        labels, entropies = pseudo_annotations(model, features, annotators, classes)
        lost: list[int] = []
        if self.selection in ("dasc", "equal"):
            lost = fill_lost_classes(labels, entropies, observed)
        candidates = Candidates.of(labels, entropies, known, classes)
        if self.counted == "generated":
            generated = generated_counts(labels, observed)
            candidates = dataclasses.replace(candidates, generated=generated)
        rng = np.random.default_rng([self.seed, 0xDA5C, number])
        if self.per_instance is not None:
            candidates = candidates.capped(self.per_instance, annotators, rng)
        places = SELECTORS[self.selection](candidates, min(self.quota, len(candidates.cells)), rng)
        cells = np.divmod(candidates.cells[places], annotators)
        chosen = candidates.labels[places]
        if self.filling == "drawn":
            chosen = drawn_labels(model, features, cells, rng)
        return np.stack([*cells, chosen], axis=1).astype(np.int32), lost

    def _model(self, number: int) -> Any:
        """Returns the fitted model of one round, on its own."""
        model = self._models[number]
        return self.last_estimator_.from_snapshot(model) if isinstance(model, dict) else model

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
        if not hasattr(self, "_models"):
            raise RuntimeError(
                "staged_predict_proba: expected an estimator that was fitted in this process,"
                " received a loaded one"
            )
        viewer: Any = None
        for index, model in enumerate(self._models):
            if isinstance(model, dict):
                viewer = viewer.load_snapshot(model) if viewer is not None else self._model(index)
                model = viewer
            yield np.asarray(model.predict_proba(x))

    def evaluation(self, dataset: CrowdDataset) -> dict[str, Any]:
        """Returns how the rounds went, from the truth: see `round_scores`."""
        return round_scores(self, dataset)

    def inference_model(self) -> Any:
        return self.estimator_.inference_model()

    def __getstate__(self) -> dict[str, Any]:
        """Copies leave out the rounds' models and networks, as saved estimators do."""
        left = ("_models", "_networks", "_network")
        return {name: value for name, value in super().__getstate__().items() if name not in left}


@estimator
class DASC(SelfTraining):
    """Distribution-aware self-training over any crowd model; see `SelfTraining`.

    References:
        DASC, section 3.2.
    """

    estimator: Any = argument(
        None,
        none
        | Constraint(
            "an estimator with predict_annotators", lambda x: hasattr(x, "predict_annotators")
        ),
        "what is refitted each round: an estimator with `predict_annotators(features) -> [N, R,"
        " C]` (CrowdLayer, Anno-Reg, Weighted Doctor Net, or another); it is cloned, and its seed"
        " is set by `seed`. None is a `CrowdLayer()`.",
        positional=True,
    )

    def _crowd_model(self) -> Any:
        from neucrowd_tf.crowd_layers import CrowdLayer

        return CrowdLayer() if self.estimator is None else clone(self.estimator)


def latest_good(accuracies: list[float], size: int, tolerance: float) -> int:
    """Returns the latest round whose accuracy, on `size` instances, is within `tolerance` standard
    errors of the best.
    """
    scores = np.asarray(accuracies)
    best = scores.max()
    error = np.sqrt(best * (1.0 - best) / size)
    return int(np.flatnonzero(scores >= best - tolerance * error - 1e-12)[-1])
