"""DASC: self-training of any crowd model on pseudo-annotations that balance the classes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.declare.declarations import (
    SEED,
    Constraint,
    check_arguments,
    estimator,
    fitted,
    none,
    one_of,
    whole,
)
from neucrowd_tf.declare.types import Array, Codes32, Fields, Floats32, Mask, Network
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.dasc.quality import QUALITY, selection_quality
from neucrowd_tf.methods.dasc.quotas import fill_lost_classes, generated_counts
from neucrowd_tf.methods.dasc.selection import (
    SELECTORS,
    Candidates,
    PredictsAnnotators,
    pseudo_annotations,
)
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.reuse import UNSET, NetworkCache, reused
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import hold_out

if TYPE_CHECKING:
    from neucrowd_tf.datasets import CrowdDataset, Split

# Seeds of the rounds' fits lie this far apart; round 0 has the method's own seed, so that it is the
# base model's run if both have the same settings (on LabelMe only Weighted Doctor Net has them).
ROUND_SEEDS = 7919


@dataclasses.dataclass
class Rounds:
    """The results of the rounds of self-training, one entry per round.

    Attributes:
        history: figures by name.
        selections: `[M, 3]` (instance, annotator, label) of each round that selected.
        models: fitted models, or snapshots of `last`.
        last: the last round's model.
    """

    history: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    selections: list[Codes32] = dataclasses.field(default_factory=list)
    models: list[Network] = dataclasses.field(default_factory=list)
    last: Network = None

    def add(self, selected: Codes32, **figures: object) -> None:
        """Adds the selection `[M, 3]` after the latest round, and figures about it."""
        self.selections.append(selected)
        by_annotator = np.bincount(selected[:, 1]) / max(1, len(selected))
        figures |= {"selected": len(selected), "concentration": float(by_annotator @ by_annotator)}
        for name, value in figures.items():
            self.history[name][-1] = value

    @property
    def accuracies(self) -> list[float]:
        """Validation accuracy of each round; empty without validation data."""
        return self.history.get("val_accuracy", [])


@estimator
class DASC(CrowdEstimator):
    """Distribution-aware self-training over any crowd model.

    Each round fits the model again on the observed and the selected pseudo-annotations, predicts
    the labels that annotators did not give, and selects some of them: with "dasc" the most
    confident of each class, fewer of classes that are predicted often.

    Without validation data, a first pass holds out a fifth of the instances to choose the round by
    their majority votes. A second pass runs as many rounds on all instances.

    Attributes:
        estimator_: the fitted model of the round that was picked; `last_estimator_` that of the
            last round.
        best_round_: the picked round; 0 is the model before any pseudo-annotation.
        round_accuracy_: validation accuracy of each round, in the first pass if validation data
            was held out.
        history_: lists with one entry per round: `round`, `annotations` (in training),
            `imbalance_ratio` (R of these), `class_counts` and `val_accuracy`. Also of the selection
            after the round (the last has none): `selected`, `quota` (taken of each class), `lost`
            (classes that annotators use and no pseudo-annotation had), `exhausted` (classes of
            which all candidates were taken), and `concentration` (the probability that two of its
            pseudo-annotations are of one annotator).
        selections_: for each round that selected, `[M, 3]` int32 (instance, annotator, label).
            Instances are positions in the training data; `rows_` has the positions of these in the
            features passed to `fit`.
        confusion_matrices_: `[R, C true, C observed]` of the picked model, None if it has none.

    References:
        DASC, section 3.2.
    """

    requires_identities: ClassVar[bool] = True
    distributed: ClassVar[bool] = True
    # Arguments that a registered variant's layer does not take: all rounds have the same rate and
    # number of epochs, and the choice among them is fixed.
    fixed: ClassVar[Collection[str]] = ("patience", "min_delta", "schedule", "validation_fraction")

    estimator: Annotated[
        Any,
        none
        | Constraint(
            "an estimator with predict_annotators", lambda x: hasattr(x, "predict_annotators")
        ),
        "estimator whose clones are fitted in each round. It needs `predict_annotators(features)"
        " -> [N, R, C]`, as CrowdLayer, Anno-Reg and Weighted Doctor Net have. None is a"
        " `CrowdLayer()`.",
    ] = dataclasses.field(default=None, kw_only=False)

    selection: Annotated[
        str,
        one_of(*SELECTORS),
        '"dasc" (eqs. 3 and 4), "confidence" (least entropy), "random", or "equal" (the same number'
        " of each class).",
    ] = "dasc"
    quota: Annotated[
        int, whole(1), "M, the number of pseudo-annotations per round, or all if fewer are left."
    ] = 1000
    hand_on: Annotated[
        bool, "whether other classes get what an exhausted class cannot fill; False takes fewer."
    ] = True
    rounds: Annotated[
        int,
        whole(0),
        "number of times that pseudo-annotations are selected and the model is refitted. Rounds"
        " end early when every annotator has a label for every instance.",
    ] = 5
    pick: Annotated[
        Literal["validation", "last"],
        '"last" predicts with the last round. "validation" predicts with the latest'
        " round whose validation accuracy is within a standard error of the best one.",
    ] = "validation"
    seed: Annotated[
        int,
        SEED,
        "seed of all random draws. Each round's model is fitted with a seed derived from it, not"
        " with its own.",
    ] = 0

    confusion_matrices_: Floats32 | None = fitted()

    # The network that rounds share, within `reused()` with other fits; left out of copies.
    _networks = _network = UNSET

    def reused(self, cache: NetworkCache | None = None) -> AbstractContextManager[None]:
        """Lets fits share one compiled network; see `neucrowd_tf.training.reuse.reused`."""
        return reused(self, cache)

    def _crowd_model(self) -> Network:
        """Returns a new, unfitted crowd model with `predict_annotators`."""
        if self.estimator is None:
            return CrowdLayer()
        return clone(self.estimator)

    def _check_together(self) -> None:
        model = self._crowd_model()
        if isinstance(model, CrowdEstimator):
            check_arguments(model)
            model._check_together()
            if not model.learns_from_generated:
                raise UsageError(
                    f"estimator: {type(model).__name__} leaves out labels that a method made up, so"
                    " that DASC's rounds would not change it. Use a crowd layer."
                )

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        by_validation = self.pick == "validation"
        rounds = self.rounds
        first_pass = None
        validation = data.validation
        if by_validation and validation is None:
            split, _ = hold_out(data, self.seed)
            first_pass = self._self_train(split, rounds, run.stage("choose"))
            validation = split.validation
            rounds = len(first_pass.models) - 1
        result = self._self_train(data, rounds, run)
        self.round_accuracy_ = (first_pass or result).accuracies
        last = len(result.models) - 1
        self.best_round_ = last
        if by_validation and validation is not None:
            # Deviation: DASC algorithm 1. Paper: "until expected performance reached". Here: A
            # number of rounds, or all cells filled; the last round predicts unless an earlier one
            # was better on validation data by more than a standard error. Why: Guards against the
            # collapse that self-training can bring, without test labels. Effect:
            # results/dasc_table2.csv (accuracy beside last_round_accuracy).
            self.best_round_ = min(latest_good(self.round_accuracy_, len(validation[1])), last)
        self.history_ = result.history
        self.selections_ = result.selections
        self.last_estimator_ = result.last
        self._models = result.models
        if self.best_round_ == last:
            self.estimator_ = result.last
        else:
            self.estimator_ = self._model(self.best_round_)
        self.confusion_matrices_ = getattr(self.estimator_, "confusion_matrices_", None)
        self.rows_ = data.rows
        self.n_iter_ = last

    def _self_train(self, data: TrainingData, rounds: int, run: Run) -> Rounds:
        """Fits the model, predicts the missing labels, adds some of them and fits again.

        References:
            DASC, algorithm 1.
        """
        model = self._crowd_model()
        result = Rounds()
        # Read-only features are standardised once for all rounds.
        data = dataclasses.replace(data, features=data.features.view())
        data.features.flags.writeable = False
        observed = data.annotations.observed()
        crowd = observed
        taken = observed.cells()
        if hasattr(model, "annotations_expected"):
            model.annotations_expected = observed.num_annotations + self.quota * rounds
        with model.reused(self._networks) if hasattr(model, "reused") else contextlib.nullcontext():
            for number in range(rounds + 1):
                if "seed" in model.get_params(deep=False):
                    model.set_params(seed=(self.seed + ROUND_SEEDS * number) % 2**31)
                stage = run.stage(f"round-{number}")
                model.fit(data.features, crowd, data.named_validation, run=stage)
                self._record(result, model, crowd, data, run)
                if number == rounds or taken.all():
                    break
                selected, figures = self._select(model, data.features, observed, taken, number)
                result.add(selected, **figures)
                taken[selected[:, 0], selected[:, 1]] = True
                crowd = observed.with_generated(*np.concatenate(result.selections).T)
                if not hasattr(model, "snapshot"):
                    model = clone(model)
        result.last = model
        return result

    def _record(
        self, result: Rounds, model: Network, crowd: Annotations, data: TrainingData, run: Run
    ) -> None:
        """Adds a round's model and figures; those of the selection after it are empty so far."""
        number = len(result.models)
        result.models.append(model.snapshot() if hasattr(model, "snapshot") else model)
        counts = np.bincount(crowd.labels, minlength=crowd.num_classes)
        figures: Fields = {
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
        figures |= {"lost": [], "exhausted": [], "concentration": 0.0}
        for name, value in figures.items():
            result.history.setdefault(name, []).append(value)

    def _select(
        self,
        model: PredictsAnnotators,
        features: Floats32,
        observed: Annotations,
        taken: Mask,
        number: int,
    ) -> tuple[Codes32, dict[str, list[int]]]:
        """Returns the round's selection, and its figures by class.

        Returns:
            `[M, 3]` (instance, annotator, label), and `lost`, `exhausted` and `quota` of the
            history.
        """
        annotators = observed.num_annotators
        classes = observed.num_classes
        cells = observed.cells()
        labels, entropies = pseudo_annotations(model, features, annotators, classes)
        lost: list[int] = []
        if self.selection in ("dasc", "equal"):
            lost = fill_lost_classes(labels, entropies, cells, observed.vote_counts())
        free = np.flatnonzero(~taken)
        candidates = Candidates(
            cells=free,
            labels=labels.ravel()[free],
            entropies=entropies.ravel()[free],
            generated=generated_counts(labels, cells, classes),
            hand_on=self.hand_on,
        )
        rng = np.random.default_rng([self.seed, 0xDA5C, number])
        picks = SELECTORS[self.selection](candidates, min(self.quota, len(free)), rng)
        chosen = candidates.labels[picks]
        available = candidates.available
        quota = np.bincount(chosen, minlength=classes)
        exhausted = np.flatnonzero((available > 0) & (quota == available)).tolist()
        figures = {"lost": lost, "exhausted": exhausted, "quota": quota.tolist()}
        selected = np.stack([*np.divmod(free[picks], annotators), chosen], axis=1)
        return selected.astype(np.int32), figures

    def _model(self, number: int) -> Network:
        """Returns the fitted model of one round, on its own."""
        model = self._models[number]
        if isinstance(model, dict):
            return self.last_estimator_.from_snapshot(model)
        return model

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: Floats32) -> Array:
        return np.asarray(self.estimator_.predict_proba(features))

    def predict_annotators(self, features: ArrayLike) -> Floats32:
        """Returns the probabilities `[M, R, C]` of each annotator's label, by the picked model."""
        x = self._check_fitted(features)
        return np.asarray(self.estimator_.predict_annotators(x), dtype=np.float32)

    def staged_predict_proba(self, features: ArrayLike) -> Iterator[Array]:
        """Yields class probabilities `[M, C]` by the model of each round, from round 0 on.

        Args:
            features: `[M, ...]` raw features.

        Raises:
            RuntimeError: the estimator was loaded from a folder, which has only the picked and the
                last round.
        """
        x = self._check_fitted(features)
        if not hasattr(self, "_models"):
            raise RuntimeError(
                "staged_predict_proba: expected an estimator that was fitted in this process,"
                " received a loaded one. Fit it again: files have the picked and the last round."
            )
        viewer: Network = None  # one network serves all rounds
        for number, model in enumerate(self._models):
            if isinstance(model, dict):
                viewer = self._model(number) if viewer is None else viewer.load_snapshot(model)
                model = viewer
            yield np.asarray(model.predict_proba(x))

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Scores each round of a fit that was made in this process.

        Args:
            dataset: with test instances; without true labels of the training instances, selections
                are not scored.

        Returns:
            `rounds`, a dict of lists with an entry per round: `annotations` (in training),
                `imbalance_ratio`, `val_accuracy` and `test_accuracy`. Also of the selection that
                the round trained on (round 0 has none): `pseudo_accuracy`, `precision_majority`,
                `recall_minority`, `concentration`, the number of `exhausted` classes and the number
                of labels `selected` of each class;
            `best_round`; `start_accuracy` and `last_round_accuracy`, on the test split;
            `start_right` and `last_round_right`, the bits of the right predictions of labelled test
            instances in these rounds; the figures of the last selection again.
        """
        crowd = dataset.annotations
        truth = dataset.truth
        counts = np.bincount(crowd.observed().labels, minlength=dataset.num_classes)
        if truth is None:
            truth = np.full(crowd.num_instances, -1)
        quality = selection_quality(self.selections_, truth[self.rows_], counts)
        test_accuracies, test_figures = accuracy_by_round(self, dataset.test)
        history = self.history_
        rounds: dict[str, list[Any]] = {}
        for name in ("round", "annotations", "imbalance_ratio"):
            rounds[name] = list(history[name])
        rounds |= {"val_accuracy": list(self.round_accuracy_), "test_accuracy": test_accuracies}
        # A selection stands beside the round that trains on it; the last round has none after it.
        for name in QUALITY:
            rounds[name] = [None, *(scores[name] for scores in quality)]
        rounds["concentration"] = [None, *history["concentration"][:-1]]
        rounds["exhausted"] = [None, *map(len, history["exhausted"][:-1])]
        figures: Fields = {"best_round": self.best_round_}
        for name in (*QUALITY, "concentration", "exhausted"):
            figures[name] = rounds[name][-1]
        rounds["selected"] = [None, *history["quota"][:-1]]
        return figures | {"rounds": rounds} | test_figures

    def _inference_model(self) -> Network:
        """Returns the Keras model of the picked round; see `CrowdEstimator.inference_model`."""
        return self.estimator_.inference_model()


def accuracy_by_round(model: DASC, test: Split) -> tuple[list[float], Fields]:
    """Returns each round's accuracy on labelled test instances, and figures for `evaluation`."""
    labelled = np.flatnonzero(test.labels >= 0)
    if not len(labelled):
        return [], {}
    by_round = []
    for probabilities in model.staged_predict_proba(test.features[labelled]):
        by_round.append(probabilities.argmax(axis=1) == test.labels[labelled])
    accuracies = [float(right.mean()) for right in by_round]
    figures: Fields = {}
    for name, place in (("start", 0), ("last_round", -1)):
        figures[f"{name}_accuracy"] = accuracies[place]
        # As hexadecimal digits, since other rounds' predictions are not in predictions.csv.
        figures[f"{name}_right"] = np.packbits(by_round[place]).tobytes().hex()
    return accuracies, figures


def latest_good(accuracies: list[float], size: int) -> int:
    """Returns the latest round whose accuracy is within a standard error of the best one.

    Args:
        accuracies: of each round.
        size: instances that they were measured on.
    """
    scores = np.asarray(accuracies)
    best = scores.max()
    error = np.sqrt(best * (1.0 - best) / size)
    return int(np.flatnonzero(scores >= best - error - 1e-12)[-1])
