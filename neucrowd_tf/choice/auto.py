"""auto: tries the project's methods on a user's own data, and fits what does best: as a rule the
average of the better ones.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold

from neucrowd_tf.arguments import (
    Constraint,
    argument,
    estimator,
    fitted,
    many,
    none,
    number,
    one_of,
    text,
    whole,
)
from neucrowd_tf.choice import calibration, criteria, ranking, search, weights
from neucrowd_tf.choice.average import Average
from neucrowd_tf.choice.candidates import (
    BASELINE,
    BUDGET,
    SMALL,
    SMALL_BUDGET,
    Candidate,
    affordable,
    named,
    reason_against,
)
from neucrowd_tf.choice.gold import gold_codes
from neucrowd_tf.choice.recommendation import recommend
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import consensus_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUICK = (0.01,)
_GOLD = Constraint(
    "a CSV `task,label` or a mapping from tasks to labels",
    lambda value: isinstance(value, (str, os.PathLike, Mapping)),
)


@register_method(
    "auto",
    summary="tries two-stage methods, crowd layers, DASC, RLL, ICED and NeuCrowd on held-out folds,"
    " and fits the average of the better ones",
)
@estimator
class Auto(CrowdEstimator):
    """Tries methods by cross-validation inside the training data and fits what does best.

    Which of two methods is better is hard to tell from the crowd's labels: the crowd's mistakes are
    its own criterion's. In the study (`results/choice.md`) no criterion's first choice was safe on
    every dataset, while the geometric mean of the candidates, the worst ones left out, was seldom
    more than a point below the best of them and often above. So that is what is fitted. Candidates
    are ranked by the mean of their ranks in two criteria: the determinant of the table of predicted
    classes and given labels (Kong 2020), and the likelihood of single labels under annotators'
    matrices from other instances. How much each of the better ones counts is half the same for all,
    half what makes the labels of held-out instances likely. Gold labels or validation truth leave
    out what they show to be clearly worse, from 30 of them on; from 200 on they alone rank; in the
    weights they are certain.

    Settings follow from the data (see `candidates`). Probabilities are calibrated by a temperature,
    fitted to held-out predictions. Methods that cannot run on the data are left out, with the
    reason.

    Attributes:
        recommendation_: `method` ("average" or a candidate), `members` (what it averages),
            `weights` (how much each counts), `difference`, `low`, `high` (its held-out agreement
            with consensus labels minus that of mv_lr, with a 95 % interval), `more_than_noise`,
            `text` (all this as a sentence), `calibration` (temperature, and expected calibration
            error before and after), `target`, and `methods`, a row a method with its `score` and
            comparison, or the `reason` it was left out.
        estimator_: the fitted `Average`.
        held_out_probas_: `[N, C]` what is predicted for each training instance when it is held out;
            NaN for the only instance of a class.
        consensus_: `[N]` class codes of the consensus.
        rows_: `[N]` positions of the training instances in what `fit` was given.
        seconds_: what each method's cross-validation took.

    References:
        Kong (2020), Dominantly truthful multi-task peer prediction with a constant number of tasks;
        Guo et al. (2017), On calibration of modern neural networks (temperature).
    """

    takes_texts: ClassVar[bool] = True  # each fold's methods make numbers of its own texts
    distributed: ClassVar[bool] = True

    methods: Sequence[str] | None = argument(
        None,
        none | many(text, "methods' names", least=0),
        "the candidates or methods (then with their defaults) to try; None takes those that suit"
        " the data and the budget. Majority vote with logistic regression is always among them.",
        positional=True,
    )
    folds: int = argument(3, whole(2), "of the cross-validation.")
    target: Literal["as_trained", "balanced"] = argument(
        "as_trained",
        one_of("as_trained", "balanced"),
        'whether classes will be met as often as in training, or ("balanced") equally often: then'
        " they count alike in the choice, and probabilities are divided by the classes' shares.",
    )
    gold: Any = argument(
        None,
        none | _GOLD,
        "true labels of some tasks, where known; they help to choose and to calibrate.",
    )
    budget: float | None = argument(
        None,
        none | number(above=0),
        "predicted seconds of all cores together that candidates may take; what is dear for what it"
        f" gives is left out first. None takes {BUDGET:g}, and {SMALL_BUDGET:g} for tables of at"
        f" most {SMALL:,} numbers, where that lets in all that are quick.",
    )
    jobs: int | None = argument(
        None, none | whole(1), "candidates at a time; None takes as many as there are cores."
    )

    recommendation_: dict[str, Any] = fitted()
    estimator_: Any = fitted()
    held_out_probas_: NDArray[np.float64] = fitted()
    consensus_: NDArray[np.int64] = fitted()
    rows_: NDArray[np.int64] = fitted()
    seconds_: dict[str, float] = fitted()

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        crowd = data.annotations
        self.rows_ = data.rows
        self.consensus_ = consensus_labels(crowd, self.seed, weigh_annotators=True)
        splits = self._splits()
        gold = gold_codes(self.gold, crowd, run.layout)
        wanted, reasons = self._candidates(data)
        tasks = {
            name: search.Task(
                *(candidate, data.features, crowd, splits, self.seed, run.checkpoints),
                *(run.owner, data.named_validation, self.consensus_),
            )
            for name, candidate in wanted.items()
        }
        shown = run.progress is not False
        found, on_validation = self._search(tasks, reasons, shown)
        scored = np.isfinite(found[BASELINE]).all(axis=1)
        held = {name: probabilities[scored] for name, probabilities in found.items()}
        evidence = criteria.Evidence.of(crowd[scored], self.consensus_[scored], self.seed)
        known = ranking.Known.of(gold[scored], held, data.validation, on_validation)
        balanced = self.target == "balanced"
        ranked = ranking.rank(held, evidence, known, balanced=balanced)
        shares = weights.weigh(held, ranked, evidence, known, balanced=balanced)
        fit = calibration.calibrate(
            [held[name] for name in ranked.kept],
            [ranked.corrections[name] for name in ranked.kept],
            shares,
            evidence,
            known.rows,
        )
        self.held_out_probas_ = np.full_like(found[BASELINE], np.nan)
        self.held_out_probas_[scored] = fit.probabilities
        members = self._members([tasks[name] for name in ranked.kept], shown)
        self.estimator_ = Average.of(members, ranked.kept, fit.temperature, fit.shift, shares)
        self.recommendation_ = recommend(
            held, ranked, shares, fit, evidence, known, reasons, len(splits), self.target
        )
        for member in members:
            for name in ("confusion_matrices_", "annotator_accuracy_"):
                if not hasattr(self, name) and getattr(member, name, None) is not None:
                    setattr(self, name, getattr(member, name))

    def _candidates(self, data: TrainingData) -> tuple[dict[str, Candidate], dict[str, str]]:
        """Returns what is tried, by name, the baseline first, and why other methods are not."""
        if self.methods is None:
            chosen, reasons = affordable(
                data.features, data.annotations, self.budget, balanced=self.target == "balanced"
            )
        else:
            chosen, reasons = [], {}
            for name in dict.fromkeys((BASELINE, *self.methods)):
                candidate = named(name, data.features, data.annotations)
                reason = reason_against(candidate, data.annotations)
                if reason is None:
                    chosen.append(candidate)
                else:
                    reasons[name] = reason
        return {one.name: one for one in chosen}, reasons

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
        parts = list(splitter.split(common, self.consensus_[common]))
        # A row or two less, and one compiled network serves all folds.
        least = min(len(train) for train, _ in parts)
        rng = np.random.default_rng([self.seed, 0xF01D])
        return [
            (
                np.sort(np.concatenate([common[rng.permutation(train)[:least]], single])),
                common[test],
            )
            for train, test in parts
        ]

    def _jobs(self, tasks: Sequence[search.Task]) -> int:
        """Returns how many candidates are fitted at a time."""
        return max(1, min(self.jobs or search.cores(), len(tasks)))

    def _search(
        self, tasks: dict[str, search.Task], reasons: dict[str, str], shown: bool
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Returns held-out predictions by candidate, and those for validation data; `tasks` keep
        the regularisation strengths that were chosen.
        """
        jobs = self._jobs([*tasks.values()])
        outcomes: dict[str, search.Outcome] = {}
        progress = search.Progress(shown and len(tasks) > 1, len(tasks), "candidate")
        progress.begin(list(tasks), jobs)
        # A quick one shows what is hopeless, before anything dear is tried.
        base = tasks[BASELINE]
        quick = dataclasses.replace(base.candidate, name="quick", hparams={"Cs": QUICK})
        first = dataclasses.replace(base, candidate=quick, splits=base.splits[:1], consensus=None)
        (quickly,) = search.side_by_side(search.held_out, [first], 1)
        agreed = None
        if quickly.probabilities is not None:
            agreed = np.nan_to_num(quickly.probabilities).argmax(axis=1) == self.consensus_
        compared = [
            one if name == BASELINE else dataclasses.replace(one, agreement=agreed)
            for name, one in tasks.items()
        ]
        for outcome in search.side_by_side(search.held_out, compared, jobs, progress.began):
            outcomes[outcome.name] = outcome
            progress.done(outcome.name, f" ({outcome.reason})" if outcome.reason else "")
        progress.close()
        if outcomes[BASELINE].probabilities is None:
            raise outcomes[BASELINE].error or RuntimeError(outcomes[BASELINE].reason)
        # In the order of the candidates, not in that in which they ended.
        ordered = {name: outcomes[name] for name in tasks}
        for name, one in ordered.items():
            chosen = tasks[name].candidate.with_strength(one.strength)
            tasks[name] = dataclasses.replace(tasks[name], candidate=chosen)
        self.seconds_ = {name: one.seconds for name, one in ordered.items()}
        reasons |= {name: one.reason for name, one in ordered.items() if one.reason}
        found = {n: o.probabilities for n, o in ordered.items() if o.probabilities is not None}
        held = {n: o.on_validation for n, o in ordered.items() if o.on_validation is not None}
        return found, held

    def _members(self, tasks: Sequence[search.Task], shown: bool) -> list[Any]:
        """Returns the tasks' candidates fitted on all rows."""
        progress = search.Progress(shown, len(tasks), "fitting on all rows")
        made = {task.candidate.name: search.kept(task) for task in tasks}
        left = [task for task in tasks if made[task.candidate.name] is None]
        for name, member in search.side_by_side(
            search.fitted, left, self._jobs(left), progress.began
        ):
            made[name] = member
            progress.done(name)
        progress.close()
        return [made[task.candidate.name] for task in tasks]

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(self.estimator_.predict_proba(features))

    def inference_model(self) -> Any:
        return self.estimator_.inference_model()

    def text_layer(self) -> Any:
        return self.estimator_.text_layer()
