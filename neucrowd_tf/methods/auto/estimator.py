"""auto: compares methods on a user's data and fits the average of the better ones."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from neucrowd_tf.declare.declarations import (
    Constraint,
    estimator,
    fitted,
    many,
    number,
    text,
    whole,
)
from neucrowd_tf.declare.picking import entries_of, mapped
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Estimator, Fields, Floats, Indices, Layer, Network
from neucrowd_tf.errors import UsageError
from neucrowd_tf.evaluation.without_truth import Judgement
from neucrowd_tf.methods.auto import pooling, search
from neucrowd_tf.methods.auto.average import Average, mean_logits
from neucrowd_tf.methods.auto.candidate_selection import select
from neucrowd_tf.methods.auto.candidates import (
    BASELINE,
    BUDGET,
    IMAGE_BUDGET,
    affordable,
    named,
    self_trained,
    usual_budget,
)
from neucrowd_tf.methods.auto.data import folds, gold_codes, with_validation
from neucrowd_tf.methods.auto.evidence import Evidence, label_log_likelihood, weighed_consensus
from neucrowd_tf.methods.auto.recommendation import AVERAGE, judged_predictions, recommend
from neucrowd_tf.methods.texts import ENCODER, fitted_encoder
from neucrowd_tf.names import without
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
            `better_than_majority_vote` ("yes", "no" or "unclear"), `better_than_commonest_class`
            (None if undecided), `gold_labels` (how many were used), `text` (all this in words),
            `temperature`, `target`,
            `fits` (by member), `representations` (of texts), `mean_absolute_error` (of ordered
            classes; of the average and mv_lr), and `methods`, one row per method with its `score`
            (agreement with the consensus), or the `reason` why it was left out.
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
        >>> from neucrowd_tf.methods.auto import Auto
        >>> model = Auto(methods=("mv_lr", "ds_lr")).fit(features, annotations)  # doctest: +SKIP
        >>> print(model.recommendation_["text"])  # doctest: +SKIP

    References:
        Kong (2020), Dominantly truthful multi-task peer prediction with a constant number of tasks;
        Guo et al. (2017), On calibration of modern neural networks (temperature).
    """

    takes_texts: ClassVar[bool] = True  # each fold converts its texts

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
    scale: Annotated[
        Literal["nominal", "ordinal"],
        '"ordinal" infers labels of ordered classes, predicts the median class, which is nearest'
        " to the others, and states the mean absolute error.",
    ] = "nominal"
    gold: Annotated[
        Mapping[Hashable, Any] | None,
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
        "seconds, for which candidates are planned as if for one core, and at which fits end."
        " Candidates that do not fit are left out, and the better ones are fitted up to"
        f" {FITS} times. None is {BUDGET:g}, and {IMAGE_BUDGET:g} for images. With `methods`"
        " there is no limit.",
    ] = None
    jobs: Annotated[
        int | None, whole(1), "number of candidates that run at once; None runs one per core."
    ] = None

    recommendation_: Fields = fitted()
    estimator_: Estimator = fitted()
    held_out_probas_: Floats = fitted()
    consensus_: Indices = fitted()
    rows_: Indices = fitted()
    representations_: dict[str, float] = fitted()
    encoder_: Any = fitted()
    seconds_: dict[str, float] = fitted()

    # ----------------------------------------------------------------- fit

    def _check(self, *arguments: Any) -> TrainingData:
        data = super()._check(*arguments)
        self.__dict__.pop("encoder_", None)  # of an earlier fit
        if self.encoder is not None:
            self.encoder_ = fitted_encoder(self.encoder, data.features)
        return data

    def _fit(self, data: TrainingData, run: Run) -> None:
        if run.callbacks:
            raise UsageError(
                "callbacks: candidates of Auto are trained side by side and call none. Leave them"
                " out."
            )
        import keras  # noqa: F401  (before the clock starts, and by one thread)

        self.rows_ = data.rows
        clock = search.Clock(run.stop)
        size, num_annotators = data.annotations.shape
        data, gold = with_validation(data, gold_codes(self.gold, data.annotations))
        self.consensus_ = weighed_consensus(data.annotations, self.seed, self.scale)
        data, tasks, reasons, remaining = self._planned(data, run, clock)
        predicted = self._search(tasks, reasons)
        scored = np.isfinite(predicted[BASELINE]).all(axis=1)
        held_out = mapped(operator.itemgetter(scored), predicted)
        crowd = data.annotations
        evidence = Evidence.of(crowd[scored], self.consensus_[scored], self.seed, gold[scored])
        choose = functools.partial(
            select,
            evidence=evidence,
            folds=len(tasks[BASELINE].splits),
            balanced=self._balanced,
            unlike=self_trained(crowd, predicted),
        )
        selected = choose(held_out)
        weights = pooling.weigh(held_out, selected, evidence)
        order = np.argsort(np.negative(weights), kind="stable")
        heaviest = [selected.members[index] for index in order]
        fits = self._repeat(tasks, heaviest, remaining, held_out, scored)
        selected = choose(held_out)
        clock.share = search.LAST
        members = self._fit_members(entries_of(fits, selected.members), reasons)
        if not members:
            members = {BASELINE: [search.fitted(tasks[BASELINE]).estimator]}
        held_out = entries_of(held_out, without(held_out, reasons))
        selected = dataclasses.replace(selected, members=list(members))
        weights = pooling.weigh(held_out, selected, evidence)
        calibrated = pooling.calibrate(held_out, selected, weights, evidence)
        self.held_out_probas_ = np.full_like(predicted[BASELINE], np.nan)
        self.held_out_probas_[scored] = calibrated.probabilities
        self.estimator_ = _average(members, weights, calibrated)
        judgement = judged_predictions(
            crowd,
            np.flatnonzero(scored),
            calibrated.probabilities,
            held_out[BASELINE],
            gold,
            balanced=self._balanced,
            scale=self.scale,
        )
        self.recommendation_ = recommend(
            held_out, selected, weights, calibrated, evidence, judgement, reasons
        )
        self._describe(members, judgement)
        agreement = run.stage("agreement with the consensus")
        for row in self.recommendation_["methods"]:
            if row["score"] is not None:
                agreement.scalars(0, {row["method"]: row["score"]})
        self._copy_results(num_annotators)
        self.consensus_ = self.consensus_[:size]
        self.held_out_probas_ = self.held_out_probas_[:size]

    @property
    def _balanced(self) -> bool:
        """Whether all classes count equally."""
        return self.target == "balanced"

    def _planned(
        self, data: TrainingData, run: Run, clock: search.Clock
    ) -> tuple[TrainingData, dict[str, search.Task], dict[str, str], float]:
        """Chooses candidates; sets the clock's budget.

        Returns:
            data with the features that candidates take, the tasks by candidate, why others have
                none, and the predicted seconds that are left.
        """
        task = functools.partial(
            search.Task,
            splits=folds(self.consensus_, self.folds, self.seed),
            seed=self.seed,
            folder=run.checkpoints,
            owner=run.owner,
            consensus=self.consensus_,
            stop=clock,
            progress=run.progress is not False,
        )
        data = self._represented(data, task)
        chosen, reasons, remaining = affordable(
            data.features,
            data.annotations,
            self.budget,
            balanced=self._balanced,
            methods=self.methods,
        )
        if self.methods is None:
            clock.budget = self.budget or usual_budget(data.features)
        tasks = {}
        for candidate in chosen:
            if self.scale == "ordinal":
                candidate = candidate.ordered()
            tasks[candidate.name] = task(candidate, data.features, data.annotations)
        # The baseline is always fitted.
        tasks[BASELINE] = dataclasses.replace(tasks[BASELINE], stop=search.Clock(clock.outer))
        return data, tasks, reasons, remaining

    def _represented(self, data: TrainingData, task: Callable[..., search.Task]) -> TrainingData:
        """Returns data with the encoder's vectors, or the texts if TF-IDF predicts better.

        The baseline is fitted to both for texts, and held-out labels decide.
        """
        self.representations_ = {}
        if not hasattr(self, "encoder_"):
            return data
        encoded = dataclasses.replace(data, features=self.encoder_.transform(data.features))
        if self.encoder_.takes == "images":
            return encoded
        tasks = []
        for name, features in (("tfidf", data.features), ("encoder", encoded.features)):
            candidate = named(BASELINE, features, data.annotations)
            renamed = dataclasses.replace(candidate, name=name)
            tasks.append(task(renamed, features, data.annotations))
        for name, outcome in search.outcomes(search.held_out, tasks, self.jobs).items():
            if outcome.probabilities is not None:
                scored = np.isfinite(outcome.probabilities).all(axis=1)
                crowd = data.annotations[scored]
                evidence = Evidence.of(crowd, self.consensus_[scored], self.seed)
                likelihood = label_log_likelihood(outcome.probabilities[scored], evidence)
                self.representations_[name] = likelihood
        likelihoods = self.representations_
        if max(likelihoods, key=likelihoods.__getitem__, default="tfidf") == "tfidf":
            del self.encoder_
            return data
        return encoded

    def _search(self, tasks: dict[str, search.Task], reasons: dict[str, str]) -> dict[str, Floats]:
        """Returns held-out predictions by candidate.

        `tasks` get the regularisation strengths that were chosen, `reasons` the failures.
        """
        # A quick regression shows what is hopeless before anything expensive is tried.
        base = tasks[BASELINE]
        candidate = dataclasses.replace(base.candidate, name="quick", hparams={"Cs": QUICK})
        quick = dataclasses.replace(base, candidate=candidate, splits=base.splits[:1])
        quickly, baseline = search.outcomes(search.held_out, [quick, base], self.jobs).values()
        if quickly.probabilities is None or baseline.probabilities is None:
            error = baseline.error or quickly.error
            raise error or RuntimeError(baseline.reason or quickly.reason)
        agreed = np.nan_to_num(quickly.probabilities).argmax(axis=1) == self.consensus_
        others = []
        for name, task in tasks.items():
            if name != BASELINE:
                others.append(dataclasses.replace(task, agreement=agreed))
        outcomes = {BASELINE: baseline}
        outcomes |= search.outcomes(search.held_out, others, self.jobs, "candidate")
        self.seconds_ = {}
        predicted = {}
        for name, outcome in outcomes.items():
            chosen = tasks[name].candidate.with_strength(outcome.strength)
            tasks[name] = dataclasses.replace(tasks[name], candidate=chosen)
            self.seconds_[name] = outcome.seconds
            if outcome.reason:
                reasons[name] = outcome.reason
            if outcome.probabilities is not None:
                predicted[name] = outcome.probabilities
        return predicted

    def _repeat(
        self,
        tasks: Mapping[str, search.Task],
        members: Sequence[str],
        remaining: float,
        held_out: dict[str, Floats],
        rows: Any,
    ) -> dict[str, list[search.Task]]:
        """Fits the better networks with other seeds too, as far as the budget allows.

        Held-out predictions of these candidates become the geometric mean of their fits.

        Args:
            tasks: the first fits.
            members: candidates, those with the largest weights first.
            remaining: predicted seconds.
            held_out: predictions by candidate; changed.
            rows: of the instances that have them.

        Returns:
            the tasks of each candidate: the first one, and the further ones that succeeded.
        """
        further: list[search.Task] = []
        for name in members:
            task = tasks[name]
            seconds = task.candidate.seconds
            count = min(FITS - 1, int(remaining / seconds))
            if count > 0 and "Cs" not in task.candidate.hparams:  # regressions draw nothing
                further += [task.again(number) for number in range(1, count + 1)]
                remaining -= count * seconds
        outcomes = search.outcomes(search.held_out, further, self.jobs, "fitting again")
        fits = {name: [task] for name, task in tasks.items()}
        predictions = {name: [first] for name, first in held_out.items()}
        for task in further:
            probabilities = outcomes[task.name].probabilities
            if probabilities is not None:
                fits[task.candidate.name].append(task)
                predictions[task.candidate.name].append(probabilities[rows])
        for name in {task.candidate.name for task in further}:
            held_out[name] = np.exp(mean_logits(predictions[name]))
        return fits

    def _fit_members(
        self, fits: Mapping[str, list[search.Task]], reasons: dict[str, str]
    ) -> dict[str, list[Any]]:
        """Returns the members that are fitted to all rows in time; the others get a reason."""
        every = sorted(itertools.chain.from_iterable(fits.values()), key=lambda task: task.repeat)
        outcomes = search.outcomes(search.fitted, every, self.jobs, "fitting on all rows")
        members: dict[str, list[Estimator]] = {}
        for task in every:
            estimator = outcomes[task.name].estimator
            if estimator is not None:
                members.setdefault(task.candidate.name, []).append(estimator)
        for name in fits:
            if name not in members:
                reasons[name] = outcomes[name].reason
        return members

    def _describe(self, members: Mapping[str, list[Estimator]], judgement: Judgement) -> None:
        """Adds to the recommendation how members were fitted."""
        result = self.recommendation_
        result["fits"] = mapped(len, members)
        result["target"] = self.target
        if self.representations_:
            chosen = "TF-IDF"
            if hasattr(self, "encoder_"):
                chosen = "the encoder's vectors"
            result["representations"] = self.representations_
            result["text"] += f" Texts are represented by {chosen}."
        if self.scale == "ordinal":
            errors = {name: judgement.distance(name) for name in (AVERAGE, BASELINE)}
            result["mean_absolute_error"] = errors
            result["text"] += (
                f" Mean absolute error ({' < '.join(map(str, self.classes_))}; expected):"
                f" {errors[AVERAGE]:.3f}, of {BASELINE} {errors[BASELINE]:.3f}."
            )

    def _copy_results(self, num_annotators: int) -> None:
        """Copies each result about annotators from the first member that has it.

        Args:
            num_annotators: of the crowd; the one after them stands for the validation labels and is
                left out.
        """
        for name in ("confusion_matrices_", "annotator_accuracy_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            for member in reversed(self.estimator_.members_):
                if getattr(member, name, None) is not None:
                    setattr(self, name, getattr(member, name)[:num_annotators])

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: Array) -> Array:
        if hasattr(self, "encoder_"):
            features = self.encoder_.transform(features)
        return self.estimator_.predict_proba(features)

    def _inference_model(self) -> Network:
        """Returns the average's Keras model."""
        return self.estimator_.inference_model()

    def text_layer(self) -> Layer:
        """Returns the layer that converts texts or images to the members' features."""
        if hasattr(self, "encoder_"):
            return self.encoder_.layer()
        return self.estimator_.text_layer()


def _average(
    members: Mapping[str, Sequence[Estimator]],
    weights: Sequence[float],
    calibration: pooling.Calibration,
) -> Average:
    """Returns the average of all fits; those of one member share its weight evenly."""
    sizes = list(map(len, members.values()))
    every = list(itertools.chain.from_iterable(members.values()))
    shares = np.repeat(np.divide(weights, sizes), sizes)
    return Average.of(every, calibration.temperature, calibration.shift, shares)
