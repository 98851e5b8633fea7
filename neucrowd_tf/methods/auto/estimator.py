"""auto: compares methods on a user's data and fits the average of the better ones."""

from __future__ import annotations

import dataclasses
import functools
import itertools
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
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Estimator, Fields, Floats, Indices, Layer, Network
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
        if hasattr(self, "encoder_"):  # of an earlier fit
            del self.encoder_
        if self.encoder is not None:
            self.encoder_ = fitted_encoder(self.encoder, data.features)
        return data

    def _fit(self, data: TrainingData, run: Run) -> None:
        import keras  # noqa: F401  (before the clock starts, and by one thread)

        self.rows_ = data.rows
        clock = search.Clock()
        size, num_annotators = data.annotations.shape
        data, codes = with_validation(data, gold_codes(self.gold, data.annotations))
        self.consensus_ = weighed_consensus(data.annotations, self.seed, self.scale)
        task = functools.partial(
            search.Task,
            splits=folds(self.consensus_, self.folds, self.seed),
            seed=self.seed,
            folder=run.checkpoints,
            owner=run.owner,
            consensus=self.consensus_,
            stop=clock,
        )
        data = self._represented(data, task)
        crowd = data.annotations
        balanced = self.target == "balanced"
        chosen, reasons, remaining = affordable(
            data.features, crowd, self.budget, balanced=balanced, methods=self.methods
        )
        if self.scale == "ordinal":
            chosen = list({each.ordered().name: each.ordered() for each in chosen}.values())
        if self.methods is None:
            clock.budget = self.budget or usual_budget(data.features)
        tasks = {each.name: task(each, data.features, crowd) for each in chosen}
        tasks[BASELINE] = dataclasses.replace(tasks[BASELINE], stop=search.Clock())  # always fitted
        progress = run.progress is not False
        predicted = self._search(tasks, reasons, progress)
        scored = np.isfinite(predicted[BASELINE]).all(axis=1)
        evidence = Evidence.of(crowd[scored], self.consensus_[scored], self.seed, codes[scored])
        rules: Any = {"balanced": balanced, "unlike": self_trained(crowd, predicted)}
        held_out = {name: probabilities[scored] for name, probabilities in predicted.items()}
        selected = select(held_out, evidence, **rules)
        weights = pooling.weigh(held_out, selected, evidence, **rules)
        order = np.argsort(np.negative(weights), kind="stable")
        heaviest = [selected.members[place] for place in order]
        repeats = self._repeat(tasks, heaviest, remaining, held_out, scored, progress)
        selected = select(held_out, evidence, **rules)
        clock.share = search.LAST
        fits = {name: [tasks[name], *repeats.get(name, ())] for name in selected.members}
        members = self._fit_members(fits, reasons, progress)
        members = members or {BASELINE: [search.fitted(tasks[BASELINE]).estimator]}
        held_out = {name: each for name, each in held_out.items() if name not in reasons}
        selected = dataclasses.replace(selected, members=list(members))
        weights = pooling.weigh(held_out, selected, evidence, **rules)
        fit = pooling.calibrate(held_out, selected, weights, evidence)
        self.held_out_probas_ = np.full_like(predicted[BASELINE], np.nan)
        self.held_out_probas_[scored] = fit.probabilities
        self.estimator_ = _average(members, weights, fit)
        rows = np.flatnonzero(scored)
        judgement = judged_predictions(
            crowd, rows, fit, held_out[BASELINE], codes, balanced=balanced, scale=self.scale
        )
        self.recommendation_ = recommend(
            held_out, selected, weights, fit, evidence, judgement, reasons, self.target
        )
        self._describe(members, num_annotators, judgement)
        self.consensus_ = self.consensus_[:size]
        self.held_out_probas_ = self.held_out_probas_[:size]

    def _fit_members(
        self, fits: Mapping[str, list[search.Task]], reasons: dict[str, str], progress: bool
    ) -> dict[str, list[Any]]:
        """Returns the members that are fitted to all rows in time; the others get a reason."""
        every = sorted(itertools.chain.from_iterable(fits.values()), key=lambda task: task.repeat)
        if progress:
            action = "fitting on all rows"
        else:
            action = ""
        outcomes = search.outcomes(search.fitted, every, self.jobs, action)
        members: dict[str, list[Network]] = {}
        for task in every:
            if (model := outcomes[task.name].estimator) is not None:
                members.setdefault(task.candidate.name, []).append(model)
        reasons |= {name: outcomes[name].reason for name in fits if name not in members}
        return members

    def _describe(
        self, members: Mapping[str, list[Network]], num_annotators: int, judgement: Judgement
    ) -> None:
        """Adds to the recommendation how members were fitted, and takes over their results."""
        self.recommendation_["fits"] = {name: len(models) for name, models in members.items()}
        if self.representations_:
            if hasattr(self, "encoder_"):
                chosen = "the encoder's vectors"
            else:
                chosen = "TF-IDF"
            self.recommendation_["representations"] = self.representations_
            self.recommendation_["text"] += f" Texts are represented by {chosen}."
        if self.scale == "ordinal":
            errors = {name: judgement.distance(name) for name in (AVERAGE, BASELINE)}
            self.recommendation_["mean_absolute_error"] = errors
            self.recommendation_["text"] += (
                f" Mean absolute error ({' < '.join(map(str, self.classes_))}; expected):"
                f" {errors[AVERAGE]:.3f}, of {BASELINE} {errors[BASELINE]:.3f}."
            )
        for member in self.estimator_.members_:
            for name in ("confusion_matrices_", "annotator_accuracy_"):
                if not hasattr(self, name) and getattr(member, name, None) is not None:
                    setattr(self, name, getattr(member, name)[:num_annotators])

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
        for name, each in (("tfidf", data), ("encoder", encoded)):
            candidate = named(BASELINE, each.features, each.annotations)
            renamed = dataclasses.replace(candidate, name=name)
            tasks.append(task(renamed, each.features, each.annotations))
        likely = self.representations_
        for name, outcome in search.outcomes(search.held_out, tasks, self.jobs).items():
            if outcome.probabilities is not None:
                scored = np.isfinite(outcome.probabilities).all(axis=1)
                crowd = data.annotations[scored]
                consensus = self.consensus_[scored]
                evidence = Evidence.of(crowd, consensus, self.seed)
                likely[name] = label_log_likelihood(outcome.probabilities[scored], evidence)
        if likely.get("tfidf", -np.inf) >= likely.get("encoder", -np.inf):
            del self.encoder_
            return data
        return encoded

    def _repeat(
        self,
        tasks: Mapping[str, search.Task],
        members: Sequence[str],
        remaining: float,
        held_out: dict[str, Floats],
        rows: Any,
        progress: bool,
    ) -> dict[str, list[search.Task]]:
        """Fits the better networks with other seeds too, as far as the budget goes.

        Held-out predictions of these candidates become the geometric mean of their fits.

        Args:
            tasks: the first fits.
            members: candidates, those of the largest weight first.
            remaining: predicted seconds.
            held_out: predictions by candidate; changed.
            rows: of the instances that have them.
            progress: whether to show it.

        Returns:
            the further tasks of each candidate.
        """
        repeats: dict[str, list[search.Task]] = {}
        for name in members:
            seconds = tasks[name].candidate.seconds
            count = min(FITS - 1, int(remaining / seconds))
            if count > 0 and "Cs" not in tasks[name].candidate.hparams:  # regressions draw nothing
                repeats[name] = [tasks[name].again(number) for number in range(1, count + 1)]
                remaining -= count * seconds
        further = list(itertools.chain.from_iterable(repeats.values()))
        if progress:
            action = "fitting again"
        else:
            action = ""
        outcomes = search.outcomes(search.held_out, further, self.jobs, action)
        for name, several in repeats.items():
            completed = {each.name: outcomes[each.name].probabilities for each in several}
            repeats[name] = [each for each in several if completed[each.name] is not None]
            more = [each[rows] for each in completed.values() if each is not None]
            held_out[name] = np.exp(mean_logits([held_out[name], *more]))
        return repeats

    def _search(
        self, tasks: dict[str, search.Task], reasons: dict[str, str], progress: bool
    ) -> dict[str, Floats]:
        """Returns held-out predictions by candidate.

        `tasks` get the regularisation strengths that were chosen, `reasons` the failures.
        """
        # A quick regression shows what is hopeless before anything expensive is tried.
        base = tasks[BASELINE]
        quick = dataclasses.replace(base.candidate, name="quick", hparams={"Cs": QUICK})
        first = dataclasses.replace(base, candidate=quick, splits=base.splits[:1])
        quickly, baseline = search.outcomes(search.held_out, [first, base], self.jobs).values()
        if baseline.probabilities is None or quickly.probabilities is None:
            raise baseline.error or RuntimeError(baseline.reason)
        agreed = np.nan_to_num(quickly.probabilities).argmax(axis=1) == self.consensus_
        _, *others = (dataclasses.replace(each, agreement=agreed) for each in tasks.values())
        if progress:
            action = "candidate"
        else:
            action = ""
        outcomes = search.outcomes(search.held_out, others, self.jobs, action)
        outcomes = {BASELINE: baseline, **outcomes}
        for name, each in outcomes.items():
            chosen = tasks[name].candidate.with_strength(each.strength)
            tasks[name] = dataclasses.replace(tasks[name], candidate=chosen)
        self.seconds_ = {name: each.seconds for name, each in outcomes.items()}
        reasons |= {name: each.reason for name, each in outcomes.items() if each.reason}
        return {n: o.probabilities for n, o in outcomes.items() if o.probabilities is not None}

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: Array) -> Array:
        if hasattr(self, "encoder_"):
            features = self.encoder_.transform(features)
        return np.asarray(self.estimator_.predict_proba(features))

    def _inference_model(self) -> Network:
        """Returns the average's Keras model."""
        return self.estimator_.inference_model()

    def text_layer(self) -> Layer:
        """Returns the layer that converts texts or images to the members' features."""
        return (self.encoder_.layer if hasattr(self, "encoder_") else self.estimator_.text_layer)()


def _average(
    members: Mapping[str, Sequence[Network]], weights: Sequence[float], fit: pooling.Calibration
) -> Average:
    """Returns the average of all fits; those of a member share its weight."""
    sizes = list(map(len, members.values()))
    every = list(itertools.chain.from_iterable(members.values()))
    shares = np.repeat(np.divide(weights, sizes), sizes)
    return Average.of(every, fit.temperature, fit.shift, shares)
