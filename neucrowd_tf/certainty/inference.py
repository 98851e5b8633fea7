"""Labels of a crowd with everything that commands and reports say about their certainty."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from neucrowd_tf.aggregation.base import (
    Aggregator,
    GoldLabels,
    apply_gold,
    expected_counts,
    expected_skills,
    gold_codes,
    normalise_counts,
)
from neucrowd_tf.aggregation.catalogue import ORDERED, make_aggregator
from neucrowd_tf.aggregation.consensus import deal
from neucrowd_tf.aggregation.families import (
    Family,
    annotators_first,
    dependent_families,
    effective_votes,
    fit_with_families,
    labels_of,
    members_of,
    named_families,
    named_models,
    outside_families,
    related,
)
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus, nearest_to_gold
from neucrowd_tf.aggregation.shrunk_dawid_skene import LEAST_COUNT, ShrunkDawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import as_annotations
from neucrowd_tf.annotations.votes import Ties
from neucrowd_tf.certainty.estimate import Estimate
from neucrowd_tf.certainty.gold_items import GoldItems, gold_items
from neucrowd_tf.certainty.opposed_groups import OpposedGroups, opposed_groups
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share
from neucrowd_tf.certainty.recalibration import Calibration, Certainty, gold_agreement
from neucrowd_tf.certainty.skills import Skills, annotator_skills
from neucrowd_tf.certainty.teaching import Evidence, teach
from neucrowd_tf.declare.types import Floats, Indices, Integers, Mask
from neucrowd_tf.errors import quietly, warn
from neucrowd_tf.names import listed

METHOD = "consensus"  # of every command, by default
SIGNIFICANT = 1.96  # standard errors
FEWEST_GOLD = 20  # gold labels for estimates from them
LEFT_OUT = (
    "Items with gold labels have {:,} labels that other items lack. Estimates from gold labels"
    " leave these labels out."
)
MORE_VOTES = (
    "Items with gold labels have more votes than the others, so they do not show how often the"
    " others' labels are right. Use a file that names annotators."
)
BY_GROUPS = (
    "On gold items two opposed groups of annotators differ more often than on others. Gold labels"
    " show which group is right, but not how often other labels are: the figure above is a model's."
)
UNLIKE_ITEMS = (
    "Gold items are unlike the others: annotators label them otherwise, or agree about them more or"
    " less often. So they change no other label, and do not show how often these are right: the"
    " figure above is a model's, and its interval contains that of gold items. Let neucrowd gold"
    " draw items."
)
UNLIKE = (
    "This crowd is unlike the crowds that the probabilities were calibrated on: {}. The interval is"
    " therefore wider."
)
NO_LABELS = (
    "No item with a gold label has labels to compare it with, so gold labels do not show how often"
    " other labels are right. Add gold labels of items that annotators labelled."
)
SHARED = "Mistakes that annotators share cannot be seen without gold labels; add some with --gold."


@dataclasses.dataclass(frozen=True, eq=False)
class Labelled:
    """A crowd's inferred labels, and what gold labels say about them.

    Attributes:
        model: the fitted aggregator; gold labels are fixed in it.
        base: the aggregator before gold labels taught; `model` without them.
        agreement: with how many gold labels the labels that were inferred without them agree, of
            how many, and the share; None without gold labels of items that have other labels.
        estimates: of the labels, see `gold_estimates`; None with fewer than `FEWEST_GOLD` gold
            labels.
        without_gold: the accuracy of the labels that were inferred without gold labels; None as
            `estimates`.
        left_out: how many labels of gold items, which other items lack, have no part in what gold
            labels say; -1 if vote counts do not show which.
        by_groups: whether gold items are mostly those on which opposed groups differ.
        unlike: whether gold items are otherwise surely no random draw of all items, and therefore
            teach nothing.
    """

    model: Aggregator
    base: Aggregator
    agreement: tuple[int, int, Estimate] | None = None
    estimates: tuple[Estimate, dict[str, Estimate]] | None = None
    without_gold: Estimate | None = None
    left_out: int = 0
    by_groups: bool = False
    unlike: bool = False


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Inference(Labelled):
    """A crowd's inferred labels, and how sure they are.

    Attributes:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.
        families: of annotators who count once, because they err together.
        people: the inference from people's labels alone; None without models or without people.
        certainty: of the labels.
        skills: annotators' skills; None for vote counts alone.
        opposed: groups of annotators of whom votes do not show which is right.
    """

    crowd: Annotations
    gold: Indices
    families: Sequence[Family]
    people: Inference | None
    certainty: Certainty
    skills: Skills | None
    opposed: OpposedGroups | None

    @property
    def labels(self) -> Indices:
        """`[N]` class codes: the gold labels, elsewhere the inferred ones."""
        return np.where(self.gold >= 0, self.gold, self.model.labels_)

    @property
    def probas(self) -> Floats:
        """`[N, C]` recalibrated probabilities."""
        return self.certainty.probas

    @property
    def accuracy(self) -> Estimate:
        """The labels' accuracy, if enough gold labels show it for items without gold labels."""
        if self.estimates is None:
            return self.certainty.accuracy()
        return self.estimates[0]

    def _names(self, annotators: Integers | Mask) -> list[str]:
        """Returns the names of annotators by their codes, or by `[R]` whether they are meant."""
        return list(map(str, self.crowd.annotator_names[annotators].tolist()))

    def related(self) -> list[list[str]]:
        """Returns the names of groups who agree beyond the consensus and are in no family.

        Groups are left out that make labels worse, if they count once.
        """
        crowd = self.crowd
        if not crowd.has_identities or self.opposed is not None:
            return []
        groups = []
        for members in related(outside_families(crowd, self.families), self.model.probas_):
            if once_is_as_good(crowd, members, self.gold):
                groups.append(self._names(members))
        return groups

    def lines(self) -> list[str]:
        """Returns what a command prints about its labels, one sentence or two per line."""
        if self.crowd.num_classes < 2:
            return ["All labels are of one class: how often they are right cannot be estimated."]
        return [*self._accuracy_lines(), *self._group_lines(), *self._gold_lines()]

    def _accuracy_lines(self) -> Iterator[str]:
        """Yields how often labels are right, and why this may be wrong."""
        if self.certainty.notes:
            yield UNLIKE.format(", ".join(self.certainty.notes))
        if self.estimates is None:
            yield f"expected accuracy of the labels: {shown(self.accuracy)}, 80% interval."
        else:
            shares = [f"{name} {shown(share)}" for name, share in self.estimates[1].items()]
            yield (
                f"accuracy of the labels of items without gold labels: {shown(self.accuracy)}, 80%"
                " interval, if the gold items were drawn at random. Class shares:"
                f" {', '.join(shares)}."
            )
        if self.by_groups:
            yield BY_GROUPS
        if self.unlike:
            yield UNLIKE_ITEMS
        if self.without_gold is not None:
            yield f"accuracy of the labels without --gold: {shown(self.without_gold)}."

    def _group_lines(self) -> Iterator[str]:
        """Yields which annotators err together, are opposed, or may have a common source."""
        for family in self.families:
            if np.isnan(family.dependence):
                yield (
                    f"{_these(self._names(family.members))} count as one source. They share no"
                    " items, which would show how often they err together."
                )
                continue
            yield (
                f"{_these(self._names(family.members))} err together (correlation"
                f" {family.dependence:.2f}) and count as one source. They are worth"
                f" {family.independent:.1f} independent ones."
            )
        if self.opposed is not None:
            first, second = map(self._names, self.opposed.members)
            yield (
                f"Two groups are opposed: {_these(first)}; and {_these(second)}. They agree with"
                f" each other {self.opposed.share:.0%} as much as independent annotators would."
                " Labels do not show which group is right, so there is no verdict on annotators."
                " Collect gold labels of items on which they differ: neucrowd gold draws them."
            )
        for names in self.related():
            yield (
                f"{_these(names)} agree with each other beyond the consensus. If they have a common"
                f" source, count them once: --family={shlex.quote('|'.join(names))}"
            )

    def _gold_lines(self) -> Iterator[str]:
        """Yields how many labels tie, and how labels and gold labels go together."""
        num_tied = int(((self.certainty.num_tied > 1) & self.crowd.annotated).sum())
        if num_tied:
            yield (
                f"ties of equally probable classes: {num_tied:,} of {len(self.labels):,} labels"
                " (aggregate --ties)."
            )
        if self.left_out < 0:
            yield MORE_VOTES
        elif self.left_out:
            yield LEFT_OUT.format(self.left_out)
        if self.agreement is not None:
            agreed, total, share = self.agreement
            yield (
                f"The consensus agrees with your gold labels in {agreed} of {total} items:"
                f" {shown(share)}."
            )
        elif (self.gold >= 0).any() and self.left_out >= 0:
            yield NO_LABELS
        elif not self.left_out:
            yield SHARED


def shown(estimate: Estimate) -> str:
    """Returns an estimate as text, such as `0.894 [0.880, 0.908]`."""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _these(names: list[str]) -> str:
    return f"{listed(names, 8)}: these {len(names)} annotators"


def infer(
    crowd: Annotations,
    method: str = METHOD,
    gold: GoldLabels = None,
    seed: int = 0,
    models: Collection[str] = (),
    ties: Ties | None = None,
    families: Collection[str] = (),
    *,
    skills: bool = True,
) -> Inference:
    """Infers labels, their probabilities and annotators' skills.

    Gold labels are fixed, teach how right annotators and consensus are (see
    `neucrowd_tf.certainty.teaching`), and calibrate the probabilities. How right the labels of
    other items are follows from gold items, each of which is labelled without its own gold label.
    Of ordered classes they choose the method (`aggregation.ordinal.nearest_to_gold`).

    People's intervals contain those of people alone: votes may not show whether people or models
    are right where they differ.

    Args:
        crowd: the annotations, in any form that `fit` takes.
        method: a name of `neucrowd_tf.aggregation.catalogue`.
        gold: see `neucrowd_tf.aggregation.base.gold_codes`.
        seed: of the method.
        models: names of annotators that are models, or patterns of names. Unless they err
            independently they count as one source, see `neucrowd_tf.aggregation.families`.
        ties: the method's rule for ties; None is its default.
        families: patterns of the names of annotators who count as one source, one per family; see
            `neucrowd_tf.aggregation.families.named_families`.
        skills: whether annotators' skills are computed, too.

    Raises:
        IdentitiesError: models or families of vote counts.
        UsageError: a name or a pattern of models or families that fits no annotator.
        DataError: gold labels that do not belong to the annotations.
    """
    crowd = as_annotations(crowd)
    codes = gold_codes(gold, crowd)
    if codes is None:
        codes = np.full(crowd.num_instances, -1, dtype=np.int64)
    has_gold = bool((codes >= 0).any())
    models = named_models(models, crowd.annotator_names)
    is_model = np.zeros(crowd.num_annotators, dtype=bool)
    once: list[Family] = []
    people: Inference | None = None
    before: Aggregator | None = None
    if models or families:
        crowd.require_identities("naming models and families")
        is_model = np.isin(crowd.annotator_names.astype(str), models)
        once = dependent_families(crowd, is_model, named_families(crowd, families))
    if models and (alone := labels_of(crowd, ~is_model)).num_annotations:
        people = infer(alone, method, gold, seed, ties=ties, skills=skills)
        before = people.base

    comparable = gold_items(crowd, codes) if has_gold else None
    make = _maker(method, seed, ties, comparable, codes)
    joint = _JointMethod(make, once, is_model, before, None if families else before)
    calibration = Calibration.learned(method)
    if comparable is None:
        model = joint.fit(crowd, codes if has_gold else None)
        labelled = Labelled(model, model, left_out=-1 if has_gold else 0)
    else:
        labelled, calibration = _with_gold(crowd, comparable, codes, joint, calibration)
    model = labelled.model
    certainty = calibration.apply(posteriors_of(model), effective_votes(crowd, once), codes)
    least = 1.0
    if labelled.unlike and labelled.agreement is not None:
        least = labelled.agreement[2].low
    certainty = dataclasses.replace(certainty, ordered=model.ordered, least=least)
    opposed = judged = None
    if crowd.has_identities and labelled.estimates is None and not labelled.by_groups:
        opposed = opposed_groups(crowd, members_of(once)) if people is None else people.opposed
    if skills and crowd.has_identities:
        judged = _skills(crowd, certainty, opposed, people, is_model)
    if opposed is not None:
        least = min(opposed.least_accuracy(crowd, model.labels_), certainty.least)
        certainty = dataclasses.replace(certainty, least=least)
    # A method that did not converge has warned already, with the same advice.
    converged = getattr(model, "converged_", True)
    if people is None and converged and method not in (METHOD, "majority_vote", *ORDERED):
        warn_if_worse(crowd, method, seed)
    return Inference(
        **vars(labelled),
        crowd=crowd,
        gold=codes,
        families=once,
        people=people,
        certainty=certainty,
        skills=judged,
        opposed=opposed,
    )


def _maker(
    method: str, seed: int, ties: Ties | None, comparable: GoldItems | None, gold: Indices
) -> Callable[[], Aggregator]:
    """Returns what makes the aggregator; gold items choose it if classes are ordered."""
    if method == "ordinal" and comparable is not None:
        nearest = nearest_to_gold(comparable.draws[0], gold, seed)
        return functools.partial(OrdinalConsensus, only=nearest, seed=seed)
    return functools.partial(make_aggregator, method, seed, ties)


def _skills(
    crowd: Annotations,
    certainty: Certainty,
    opposed: OpposedGroups | None,
    people: Inference | None,
    is_model: Mask,
) -> Skills:
    """Returns annotators' skills; people's intervals contain those of people alone."""
    skills = annotator_skills(crowd, certainty)
    if people is not None and people.skills is not None:
        together = annotator_skills(people.crowd, certainty)
        skills = skills.containing(together, people.skills, ~is_model)
    if opposed is not None:
        skills = skills.undecided(opposed.skills(crowd))
    return skills


class _JointMethod(NamedTuple):
    """A method with each family counted once, and models behind people.

    Attributes:
        make: returns the aggregator, unfitted.
        families: of annotators who count once.
        is_model: `[R]` which annotators are models.
        people: the aggregator of people's labels alone; None without models or without people.
        reused: the same, if it is the method's fit to those in no family.
    """

    make: Callable[[], Aggregator]
    families: Sequence[Family]
    is_model: Mask
    people: Aggregator | None
    reused: Aggregator | None

    def fit(self, crowd: Annotations, gold: Indices | None = None) -> Aggregator:
        """Returns the fitted aggregator.

        Args:
            crowd: the annotations, or some of them.
            gold: `[N]` class codes, -1 if unknown.
        """
        alone = self.reused if gold is None else None
        result = fit_with_families(self.make, crowd, self.families, gold, alone)
        if self.people is None:
            return result
        people = self.people.probas_
        return with_probas(
            result, crowd, annotators_first(result.probas_, crowd, self.is_model, people)
        )


def _with_gold(
    crowd: Annotations,
    comparable: GoldItems,
    gold: Indices,
    method: _JointMethod,
    calibration: Calibration,
) -> tuple[Labelled, Calibration]:
    """Returns what gold labels teach, and the calibration of the probabilities.

    Args:
        crowd: the annotations.
        comparable: gold items with as many labels as other items have.
        gold: `[N]` class codes, -1 if unknown.
        method: of the labels.
        calibration: of the method's probabilities.
    """
    families = method.families
    base = method.fit(comparable.crowd)
    if not comparable.crowd.annotated[gold >= 0].any():  # nothing to learn from
        model = with_probas(base, crowd, apply_gold(base.probas_.copy(), gold), gold)
        return Labelled(model, base, left_out=comparable.left_out), calibration

    def evidence(labels: Annotations, model: Aggregator) -> Evidence:
        votes = effective_votes(labels, families)
        return Evidence(labels, calibration.apply(posteriors_of(model), votes).probas)

    models = [base if draw is comparable.crowd else method.fit(draw) for draw in comparable.draws]
    draws = list(map(evidence, comparable.draws, models))
    votes = effective_votes(comparable.draws[0], families)
    agreement = gold_agreement(posteriors_of(models[0]), votes, gold)
    members = members_of(families)
    by_groups = drawn_by_groups(crowd, gold, members)
    if comparable.unlike and not by_groups:
        model = with_probas(base, crowd, apply_gold(base.probas_.copy(), gold), gold)
        labelled = Labelled(model, base, agreement, left_out=comparable.left_out, unlike=True)
        return labelled, calibration
    # If gold items have no more labels than others, the crowd itself is the only draw.
    every = draws[0]
    if comparable.draws[0] is not comparable.crowd:
        every = evidence(comparable.crowd, base)
    lesson = teach(every, gold, members, draws)
    model = with_probas(base, crowd, lesson.probas, gold)
    estimates = before = None
    if not by_groups:
        estimates = gold_estimates(comparable.crowd, lesson.blind, gold)
        consensus = np.stack([draw.consensus for draw in draws])
        before = gold_estimates(comparable.crowd, consensus, gold)
    labelled = Labelled(
        model,
        base,
        agreement,
        estimates,
        before and before[0],
        left_out=comparable.left_out,
        by_groups=by_groups,
    )
    return labelled, calibration.of_taught(lesson.blind, gold)


def drawn_by_groups(crowd: Annotations, gold: Indices, families: Collection[Mask]) -> bool:
    """Returns whether opposed groups differ on gold items more often than on others, surely.

    Args:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.
        families: see `opposed_groups`.
    """
    if not crowd.has_identities or (groups := opposed_groups(crowd, families)) is None:
        return False
    differ = groups.differ(crowd)
    marked = gold >= 0
    share = float(differ[crowd.annotated].mean())
    error = np.sqrt(share * (1.0 - share) / max(int(marked.sum()), 1))
    return bool(differ[marked].mean() > share + SIGNIFICANT * error)


def posteriors_of(model: Aggregator) -> Floats:
    """Returns a model's posteriors `[N, C]` with ties decided in favour of its labels."""
    probas = model.probas_.copy()
    tied = np.flatnonzero(probas.argmax(axis=1) != model.labels_)
    probas[tied, model.labels_[tied]] = probas[tied].max(axis=1) + 1e-12
    return probas


def with_probas(
    model: Aggregator, crowd: Annotations, probas: Floats, gold: Indices | None = None
) -> Aggregator:
    """Returns a fitted aggregator with other probabilities, and what follows from them.

    Args:
        model: as fitted.
        crowd: the annotations.
        probas: `[N, C]`.
        gold: `[N]` class codes, -1 if unknown, that the probabilities contain.
    """
    result = copy.copy(model)
    if gold is not None:
        result.annotated_ = crowd.annotated | (gold >= 0)
    result.priors_ = normalise_counts(probas[result.annotated_].sum(axis=0), 1e-3)
    result.probas_ = np.where(result.annotated_[:, None], probas, result.priors_)
    result.labels_ = result.decide(result.probas_)
    if model.errors_ is not None:
        counts = expected_counts(crowd.one_hot().T, result.probas_)
        result.errors_ = normalise_counts(counts.transpose(0, 2, 1), LEAST_COUNT)
        result.skills_ = expected_skills(result.errors_, result.priors_)
    return result


def gold_estimates(
    crowd: Annotations, draws: Floats, gold: Indices
) -> tuple[Estimate, dict[str, Estimate]] | None:
    """Returns accuracy and class shares from gold labels and probabilities inferred without them.

    Args:
        crowd: the annotations.
        draws: `[D, N, C]` calibrated probabilities, by draws of gold items' labels; a gold item's
            do not depend on its gold label.
        gold: `[N]` class codes, -1 if unknown.

    Returns:
        the accuracy of the inferred labels, and the share of each class by its name. They are
        valid for gold labels of items drawn at random. None with fewer than `FEWEST_GOLD` gold
        labels of items that have annotations.
    """
    rows = np.flatnonzero((gold >= 0) & crowd.annotated)
    rest = np.flatnonzero((gold < 0) & crowd.annotated)
    if len(rows) < FEWEST_GOLD:
        return None
    probas = draws.mean(axis=0)
    estimates = []
    for code in range(crowd.num_classes):
        true = gold[rows] == code
        estimates.append(prediction_powered_share(true, probas[rows, code], probas[rest, code]))
    shares = np.array(estimates)
    shares = np.minimum(shares / sum(shares[:, 0]), 1.0)  # near 1: each is estimated by itself
    names = map(str, crowd.class_names.tolist())
    by_class = dict(zip(names, itertools.starmap(Estimate, shares.tolist()), strict=True))
    right = draws.max(axis=2).mean(axis=0)
    correct = (draws[:, rows].argmax(axis=2) == gold[rows]).mean(axis=0)
    accuracy = prediction_powered_share(correct, right[rows], right[rest], of_others=True)
    return accuracy, by_class


def once_is_as_good(crowd: Annotations, members: Indices, gold: Indices) -> bool:
    """Returns whether labels are as good, but for chance, if some annotators count as one source.

    They are compared with gold labels, if there are enough, or with a fifth of the others' labels,
    which is held out.

    Args:
        crowd: with identities.
        members: codes of the annotators.
        gold: `[N]` class codes, -1 if unknown.
    """
    inside = np.isin(np.arange(crowd.num_annotators), members)
    held_out = (deal(crowd, 5, 0) == 0) & ~inside[crowd.annotators]
    rest = crowd
    items = np.flatnonzero(gold >= 0)
    true = gold[items]
    if len(items) < FEWEST_GOLD:
        rest = crowd.select(~held_out)
        items = crowd.instances[held_out]
        true = crowd.labels[held_out]
    if not held_out.any() or not rest.num_annotations:
        return True
    single = fit_with_families(ShrunkDawidSkene, rest, ()).labels_[items] == true
    once = fit_with_families(ShrunkDawidSkene, rest, (Family(inside, 1.0),)).labels_[items] == true
    worse = int((single & ~once).sum())
    better = int((once & ~single).sum())
    return bool(worse - better <= np.sqrt(worse + better))


def warn_if_worse(crowd: Annotations, method: str, seed: int) -> None:
    """Warns if held-out annotations agree more often with majority vote than with a method.

    A fifth of the annotations is held out, and labels are inferred from the rest. McNemar's test
    compares how many held-out annotations equal the labels of each.
    """
    held_out = deal(crowd, 5, seed) == 0
    if held_out.all() or not held_out.any():
        return
    rest = crowd.select(~held_out)

    def agrees(name: str) -> Mask:
        labels = make_aggregator(name, seed).fit(rest).labels_
        return labels[crowd.instances[held_out]] == crowd.labels[held_out]

    with quietly():
        by_method = agrees(method)
        by_majority = agrees("majority_vote")
    better = int((by_method & ~by_majority).sum())
    worse = int((by_majority & ~by_method).sum())
    if worse - better > SIGNIFICANT * np.sqrt(better + worse):
        warn(
            f"held-out annotations agree with majority vote more often than with {method}"
            f" ({worse} of {worse + better} that differ). Use --method={METHOD}.",
            stacklevel=2,
        )
