"""auto: compares methods on a user's data and fits the average of the better ones."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from neucrowd_tf.aggregation import base
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice import pooling, search
from neucrowd_tf.choice.average import Average, mean_logits
from neucrowd_tf.choice.candidates import (
    BASELINE,
    BUDGET,
    IMAGE_BUDGET,
    affordable,
    named,
    self_trained,
)
from neucrowd_tf.choice.evidence import Evidence, label_log_likelihood, weighed_consensus
from neucrowd_tf.choice.ranking import Ranked, rank
from neucrowd_tf.choice.recommendation import judged_predictions, recommend
from neucrowd_tf.declare import Constraint, estimator, fitted, many, number, text, whole
from neucrowd_tf.errors import DataError
from neucrowd_tf.registration import register_method
from neucrowd_tf.texts import ENCODER, fitted_encoder
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

QUICK = (0.01,)
FITS = 3  # of a candidate, at most
_GOLD = Constraint(
    'labels by item, such as {"item 3": "yes"} (of a CSV: `read_gold`, or the flag --gold)',
    lambda value: isinstance(value, Mapping),
)


@register_method(
    "auto",
    summary="tries two-stage methods, crowd layers, DASC, RLL, ICED and NeuCrowd on held-out folds,"
    " and fits the average of the better ones",
)
@estimator
class Auto(CrowdEstimator):
    """Compares methods by cross-validation and fits the average of the better ones.

    The crowd's labels seldom show which of two methods is better, because the criterion has the
    crowd's mistakes too. In a study (`results/choice.csv`) no criterion's first choice was safe on
    every dataset, so the geometric mean of the better candidates is fitted. Candidates are ranked
    by the mean of their ranks in two criteria: the determinant of the table of predicted classes
    and labels (Kong 2020), and the likelihood of single labels under annotators' matrices from
    other instances. Three quarters of the weight are shared evenly by the better ones, and a
    quarter makes the labels of held-out instances likely. Gold labels exclude candidates that are
    clearly worse by them, from 30 labels on. From 200 on they alone rank. In the weights they are
    certain. Validation instances are trained on too, held out by folds like the others: their true
    labels are gold labels, and those of one more annotator.

    Settings follow from the data (see `candidates`). Probabilities are calibrated by a temperature
    that is fitted to held-out predictions. Methods that cannot run on the data are left out, with
    the reason.

    Attributes:
        recommendation_: `method` ("average" or a candidate), `members` of the average and their
            `weights`, `accuracy` (expected, of held-out predictions; value, low and high of an 80%
            interval), `difference`, `low`, `high` (from the accuracy of mv_lr, 95%),
            `better_than_majority_vote` ("yes", "no" or "unclear"), `better_than_commonest_class`,
            `gold_labels` (how many were used), `text` (all this in words), `temperature`, `target`,
            `fits` (by member), `representations` (of texts), and `methods`, one row per method with
            its `score` (agreement with the consensus), or the `reason` why it was left out.
        estimator_: the fitted `Average`.
        held_out_probas_: `[N, C]` predictions for each training instance by folds that held it out;
            NaN for the only instance of a class.
        consensus_: `[N]` class codes of the consensus.
        rows_: `[N]` positions of the training instances in the arguments of `fit`.
        representations_: the mean log likelihood of a held-out label by representation ("tfidf",
            "encoder"); empty except for texts with an encoder.
        encoder_: the encoder whose vectors the members take, if they do.
        seconds_: duration of each method's cross-validation.

    Example:
        >>> from neucrowd_tf.choice import Auto
        >>> model = Auto(methods=("mv_lr", "ds_lr")).fit(features, annotations)  # doctest: +SKIP
        >>> print(model.recommendation_["text"])  # doctest: +SKIP

    References:
        Kong (2020), Dominantly truthful multi-task peer prediction with a constant number of tasks;
        Guo et al. (2017), On calibration of modern neural networks (temperature).
    """

    takes_texts: ClassVar[bool] = True  # each fold converts its texts
    distributed: ClassVar[bool] = True

    methods: Annotated[
        Sequence[str] | None,
        many(text, "methods' names", least=0),
        "candidates or names of methods to try; None chooses those that suit the data and the"
        " budget. Majority vote with logistic regression is always tried.",
    ] = dataclasses.field(default=None, kw_only=False)
    folds: Annotated[int, whole(2), "number of folds of the cross-validation."] = 3
    target: Annotated[
        Literal["as_trained", "balanced"],
        'class frequencies of new items: as in training, or equal ("balanced"): classes then'
        " count equally in the choice, and probabilities are divided by their shares.",
    ] = "as_trained"
    gold: Annotated[
        Mapping[Any, Any] | None,
        _GOLD,
        "true labels by item, for choice and calibration. Labels of other items are left out.",
    ] = None
    encoder: Annotated[
        Any,
        ENCODER,
        "makes vectors of texts, which are used if they make held-out labels more likely than"
        " TF-IDF does; or of images.",
    ] = None
    budget: Annotated[
        float | None,
        number(above=0),
        "predicted seconds of all cores together for the candidates. The least useful for their"
        f" cost are left out, and the better ones are fitted up to {FITS} times. None is"
        f" {BUDGET:g}, and {IMAGE_BUDGET:g} for images.",
    ] = None
    jobs: Annotated[
        int | None, whole(1), "number of candidates that run at once; None runs one per core."
    ] = None

    recommendation_: dict[str, Any] = fitted()
    estimator_: Any = fitted()
    held_out_probas_: NDArray[np.float64] = fitted()
    consensus_: NDArray[np.int64] = fitted()
    rows_: NDArray[np.int64] = fitted()
    representations_: dict[str, float] = fitted()
    encoder_: Any = fitted()
    seconds_: dict[str, float] = fitted()

    # ----------------------------------------------------------------- fit

    def _check(self, *arguments: Any) -> TrainingData:
        data = super()._check(*arguments)
        if hasattr(self, "encoder_"):  # of an earlier fit
            del self.encoder_
        if self.encoder is not None:
            self.encoder_ = fitted_encoder(self.encoder, data.features)
        return data

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.rows_ = data.rows
        size, num_annotators = data.annotations.shape
        codes = gold_codes(self.gold, data.annotations)
        if data.validation is not None:
            true = data.validation_kind == "truth"
            held = data.validation[1]
            codes = np.concatenate([codes, held if true else np.full_like(held, -1)])
            data = with_validation(data, data.validation)
        self.consensus_ = weighed_consensus(data.annotations, self.seed)
        splits = self._splits()
        task = functools.partial(
            search.Task,
            splits=splits,
            seed=self.seed,
            folder=run.checkpoints,
            owner=run.owner,
            consensus=self.consensus_,
        )
        data = self._represented(data, task)
        crowd, balanced = data.annotations, self.target == "balanced"
        tried, reasons, left = affordable(
            data.features, crowd, self.budget, balanced=balanced, methods=self.methods
        )
        tasks = {one.name: task(one, data.features, crowd) for one in tried}
        shown = run.progress is not False
        predicted = self._search(tasks, reasons, shown)
        scored = np.isfinite(predicted[BASELINE]).all(axis=1)
        evidence = Evidence.of(crowd[scored], self.consensus_[scored], self.seed, codes[scored])
        rules: Any = {"balanced": balanced, "unlike": self_trained(crowd, predicted)}

        def judged() -> tuple[dict[str, NDArray[np.float64]], Ranked, list[float]]:
            held_out = {name: probabilities[scored] for name, probabilities in predicted.items()}
            ranked = rank(held_out, evidence, **rules)
            return held_out, ranked, pooling.weigh(held_out, ranked, evidence, **rules)

        _, ranked, weights = judged()
        heaviest = [
            ranked.members[place] for place in np.argsort(np.negative(weights), kind="stable")
        ]
        repeats = self._repeat(tasks, heaviest, left, predicted, shown)
        held_out, ranked, weights = judged()
        fit = pooling.calibrate(held_out, ranked, weights, evidence)
        self.held_out_probas_ = np.full_like(predicted[BASELINE], np.nan)
        self.held_out_probas_[scored] = fit.probabilities
        fits = [one for name in ranked.members for one in (tasks[name], *repeats.get(name, ()))]
        sizes = [1 + len(repeats.get(name, ())) for name in ranked.members]
        action = "fitting on all rows" if shown else ""
        fitted = search.outcomes(search.fitted, fits, self.jobs, action)
        self.estimator_ = Average.of(
            [one.estimator for one in fitted.values()],
            fit.temperature,
            fit.shift,
            np.repeat(np.divide(weights, sizes), sizes),
        )
        judgement = judged_predictions(
            crowd, np.flatnonzero(scored), fit, held_out[BASELINE], codes, balanced=balanced
        )
        self.recommendation_ = recommend(
            held_out, ranked, weights, fit, evidence, judgement, reasons, self.target
        )
        self.recommendation_["fits"] = dict(zip(ranked.members, sizes, strict=True))
        if self.representations_:
            chosen = "the encoder's vectors" if hasattr(self, "encoder_") else "TF-IDF"
            self.recommendation_["representations"] = self.representations_
            self.recommendation_["text"] += f" Texts are represented by {chosen}."
        for member in self.estimator_.members_:
            for name in ("confusion_matrices_", "annotator_accuracy_"):
                if not hasattr(self, name) and getattr(member, name, None) is not None:
                    setattr(self, name, getattr(member, name)[:num_annotators])
        self.consensus_ = self.consensus_[:size]
        self.held_out_probas_ = self.held_out_probas_[:size]

    def _represented(self, data: TrainingData, task: Callable[..., search.Task]) -> TrainingData:
        """Returns data with the encoder's vectors, those of texts if held-out labels prefer them.

        The baseline is fitted to TF-IDF and to the vectors.
        """
        self.representations_ = {}
        if not hasattr(self, "encoder_"):
            return data
        encoded = dataclasses.replace(data, features=self.encoder_.transform(data.features))
        if self.encoder_.takes == "images":
            return encoded
        tasks = []
        for name, one in (("tfidf", data), ("encoder", encoded)):
            candidate = named(BASELINE, one.features, one.annotations)
            renamed = dataclasses.replace(candidate, name=name)
            tasks.append(task(renamed, one.features, one.annotations))
        likelihoods = {}
        for name, outcome in search.outcomes(search.held_out, tasks, self.jobs).items():
            if outcome.probabilities is not None:
                scored = np.isfinite(outcome.probabilities).all(axis=1)
                crowd, consensus = data.annotations[scored], self.consensus_[scored]
                evidence = Evidence.of(crowd, consensus, self.seed)
                likelihoods[name] = label_log_likelihood(outcome.probabilities[scored], evidence)
        self.representations_ = likelihoods
        if likelihoods.get("tfidf", -np.inf) >= likelihoods.get("encoder", -np.inf):
            del self.encoder_
            return data
        return encoded

    def _repeat(
        self,
        tasks: Mapping[str, search.Task],
        members: Sequence[str],
        left: float,
        predicted: dict[str, NDArray[np.float64]],
        shown: bool,
    ) -> dict[str, list[search.Task]]:
        """Fits the better networks with other seeds too, as far as the budget goes.

        Held-out predictions of these candidates become the geometric mean of their fits.

        Args:
            tasks: the first fits.
            members: candidates, those of the largest weight first.
            left: predicted seconds.
            predicted: held-out predictions by candidate; changed.
            shown: whether to show progress.

        Returns:
            the further tasks of each candidate.
        """
        repeats: dict[str, list[search.Task]] = {}
        for name in members:
            seconds = tasks[name].candidate.seconds
            count = min(FITS - 1, int(left / seconds))
            if count > 0 and "Cs" not in tasks[name].candidate.hparams:  # regressions draw nothing
                repeats[name] = [tasks[name].again(number) for number in range(1, count + 1)]
                left -= count * seconds
        further = [one for several in repeats.values() for one in several]
        action = "fitting again" if shown else ""
        outcomes = search.outcomes(search.held_out, further, self.jobs, action)
        for name, several in repeats.items():
            completed = {one.name: outcomes[one.name].probabilities for one in several}
            repeats[name] = [one for one in several if completed[one.name] is not None]
            more = [
                probabilities for probabilities in completed.values() if probabilities is not None
            ]
            predicted[name] = np.exp(mean_logits([predicted[name], *more]))
        return repeats

    def _splits(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Returns the training and held-out rows of stratified folds.

        The only instance of a class is in all training rows and never held out.
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
        folds = list(splitter.split(common, self.consensus_[common]))
        # With a row or two less, one compiled network serves all folds.
        least = min(len(train) for train, _ in folds)
        rng = np.random.default_rng([self.seed, 0xF01D])
        return [
            (
                np.sort(np.concatenate([common[rng.permutation(train)[:least]], single])),
                common[test],
            )
            for train, test in folds
        ]

    def _search(
        self, tasks: dict[str, search.Task], reasons: dict[str, str], shown: bool
    ) -> dict[str, NDArray[np.float64]]:
        """Returns held-out predictions by candidate.

        `tasks` get the regularisation strengths that were chosen, `reasons` the failures.
        """
        # A quick regression shows what is hopeless before anything expensive is tried.
        base = tasks[BASELINE]
        quick = dataclasses.replace(base.candidate, name="quick", hparams={"Cs": QUICK})
        first = dataclasses.replace(base, candidate=quick, splits=base.splits[:1])
        (quickly,) = search.outcomes(search.held_out, [first]).values()
        agreed = None
        if quickly.probabilities is not None:
            agreed = np.nan_to_num(quickly.probabilities).argmax(axis=1) == self.consensus_
        compared = [
            one if name == BASELINE else dataclasses.replace(one, agreement=agreed)
            for name, one in tasks.items()
        ]
        action = "candidate" if shown and len(tasks) > 1 else ""
        outcomes = search.outcomes(search.held_out, compared, self.jobs, action)
        if outcomes[BASELINE].probabilities is None:
            raise outcomes[BASELINE].error or RuntimeError(outcomes[BASELINE].reason)
        for name, one in outcomes.items():
            chosen = tasks[name].candidate.with_strength(one.strength)
            tasks[name] = dataclasses.replace(tasks[name], candidate=chosen)
        self.seconds_ = {name: one.seconds for name, one in outcomes.items()}
        reasons |= {name: one.reason for name, one in outcomes.items() if one.reason}
        return {n: o.probabilities for n, o in outcomes.items() if o.probabilities is not None}

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: NDArray[Any]) -> NDArray[Any]:
        if hasattr(self, "encoder_"):
            features = self.encoder_.transform(features)
        return np.asarray(self.estimator_.predict_proba(features))

    def _inference_model(self) -> Any:
        """Returns the average's Keras model."""
        return self.estimator_.inference_model()

    def text_layer(self) -> Any:
        """Returns the layer that converts texts or images to the members' features."""
        return (self.encoder_.layer if hasattr(self, "encoder_") else self.estimator_.text_layer)()


def with_validation(
    data: TrainingData, validation: tuple[NDArray[np.float32], NDArray[np.int64]]
) -> TrainingData:
    """Returns the training instances and, after them, the validation instances.

    A validation instance has one label, its true one, from an annotator of its own. Vote counts
    have no annotators: there it has one vote.
    """
    more, labels = validation
    crowd, size = data.annotations, len(labels)
    if crowd.has_identities:
        annotations = Annotations(
            np.concatenate([crowd.instances, crowd.num_instances + np.arange(size)]),
            np.concatenate([crowd.annotators, np.full(size, crowd.num_annotators)]),
            np.concatenate([crowd.labels, labels]),
            class_names=crowd.class_names,
        )
    else:
        votes = np.eye(crowd.num_classes, dtype=np.int32)[labels]
        annotations = Annotations.from_votes(
            np.concatenate([crowd.vote_counts(), votes]), class_names=crowd.class_names
        )
    features = np.concatenate([data.features, more])
    return TrainingData(features, annotations, None, np.arange(len(features)))


def gold_codes(gold: Mapping[Any, Any] | None, annotations: Annotations) -> NDArray[np.int64]:
    """Returns `[N]` class codes of gold labels, -1 for the other instances.

    Args:
        gold: labels by task. Tasks without annotations (for example the test split's) are left
            out.
        annotations: of N instances.

    Raises:
        DataError: a label that is not a class, or no task in common.
    """
    if gold is None:
        return np.full(annotations.num_instances, -1)
    labels = {str(task): label for task, label in gold.items()}
    tasks = annotations.instance_names.tolist()
    true = {task: labels[str(task)] for task in tasks if str(task) in labels}
    if not true:
        raise DataError("gold: no task with a label has annotations and is trained on.")
    return np.asarray(base.gold_codes(true, annotations))
