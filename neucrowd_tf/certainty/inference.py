"""Labels of a crowd with everything that commands and reports say about their certainty."""

from __future__ import annotations

import copy
import dataclasses
import functools
import shlex
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.aggregation.base import (
    Aggregator,
    GoldLabels,
    apply_gold,
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
    named_families,
    named_models,
    related,
)
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus, nearest_to_gold
from neucrowd_tf.aggregation.shrunk_dawid_skene import LEAST_COUNT, ShrunkDawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import as_annotations
from neucrowd_tf.annotations.votes import Ties
from neucrowd_tf.certainty.estimate import Estimate
from neucrowd_tf.certainty.gold_items import gold_items
from neucrowd_tf.certainty.opposed_groups import OpposedGroups, opposed_groups
from neucrowd_tf.certainty.prediction_powered import prediction_powered_share
from neucrowd_tf.certainty.recalibration import Calibration, Certainty, gold_agreement
from neucrowd_tf.certainty.skills import Skills, annotator_skills
from neucrowd_tf.certainty.teaching import Evidence, teach
from neucrowd_tf.errors import quietly, warn

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
SHARED = "Mistakes that annotators share cannot be seen without gold labels; add some with --gold."


@dataclasses.dataclass(frozen=True, eq=False)
class Inference:
    """A crowd's inferred labels.

    Attributes:
        crowd: the annotations.
        model: the fitted aggregator; gold labels are fixed in it.
        certainty: of the labels.
        skills: annotators' skills; None for vote counts alone.
        gold: `[N]` class codes, -1 if unknown.
        agreement: with how many gold labels the labels that were inferred without them agree, of
            how many, and the share; None without gold labels.
        estimates: of the labels, see `gold_estimates`; None with fewer than `FEWEST_GOLD` gold
            labels.
        without_gold: the accuracy of the labels that were inferred without gold labels; None as
            `estimates`.
        families: of annotators who count once, because they err together.
        left_out: how many labels of gold items, which other items lack, have no part in what gold
            labels say; -1 if vote counts do not show which.
        people: the inference from people's labels alone; None without models or without people.
        base: the aggregator before gold labels taught; `model` without them.
        opposed: groups of annotators of whom votes do not show which is right.
        by_groups: whether gold items are mostly those on which opposed groups differ.
        unlike: whether gold items are otherwise surely no random draw of all items, and therefore
            teach nothing.
    """

    crowd: Annotations
    model: Aggregator
    certainty: Certainty
    skills: Skills | None
    gold: NDArray[np.int64]
    agreement: tuple[int, int, Estimate] | None
    estimates: tuple[Estimate, dict[str, Estimate]] | None = None
    families: tuple[Family, ...] = ()
    left_out: int = 0
    people: Inference | None = None
    without_gold: Estimate | None = None
    base: Aggregator | None = None
    opposed: OpposedGroups | None = None
    by_groups: bool = False
    unlike: bool = False

    @property
    def labels(self) -> NDArray[np.int64]:
        """`[N]` class codes: the gold labels, elsewhere the inferred ones."""
        return np.where(self.gold >= 0, self.gold, self.model.labels_)

    @property
    def probas(self) -> NDArray[np.float64]:
        """`[N, C]` recalibrated probabilities."""
        return self.certainty.probas

    @property
    def accuracy(self) -> Estimate:
        """The labels' accuracy, if enough gold labels show it for items without gold labels."""
        if self.estimates is None:
            return self.certainty.accuracy()
        return self.estimates[0]

    def related(self) -> list[list[str]]:
        """Returns the names of groups who agree beyond the consensus and are in no family.

        Groups are left out that make labels worse, if they count once.
        """
        if not self.crowd.has_identities or self.opposed is not None:
            return []
        if self.families:
            inside = np.any([one.members for one in self.families], axis=0)
        else:
            inside = False
        rest = self.crowd.select(
            ~np.broadcast_to(inside, self.crowd.num_annotators)[self.crowd.annotators]
        )
        names = list(map(str, self.crowd.annotator_names.tolist()))
        return [
            [names[code] for code in members.tolist()]
            for members in related(rest, self.model.probas_)
            if once_is_as_good(self.crowd, members, self.gold)
        ]

    def lines(self) -> list[str]:
        """Returns what a command prints about its labels, one sentence or two per line."""
        if self.crowd.num_classes < 2:
            return ["All labels are of one class: how often they are right cannot be estimated."]
        if self.certainty.notes:
            lines = [UNLIKE.format(", ".join(self.certainty.notes))]
        else:
            lines = []
        if self.estimates is None:
            lines.append(f"expected accuracy of the labels: {shown(self.accuracy)}, 80% interval.")
        else:
            each = self.estimates[1].items()
            shares = ", ".join(f"{name} {shown(share)}" for name, share in each)
            lines.append(
                f"accuracy of the labels of items without gold labels: {shown(self.accuracy)}, 80%"
                f" interval, if the gold items were drawn at random. Class shares: {shares}."
            )
        if self.by_groups:
            lines.append(BY_GROUPS)
        if self.unlike:
            lines.append(UNLIKE_ITEMS)
        if self.without_gold is not None:
            lines.append(f"accuracy of the labels without --gold: {shown(self.without_gold)}.")
        names = list(map(str, self.crowd.annotator_names.tolist()))
        for family in self.families:
            members = [names[code] for code in np.flatnonzero(family.members).tolist()]
            lines.append(
                f"{_these(members)} err together (correlation {family.dependence:.2f}) and count as"
                f" one source. They are worth {family.independent:.1f} independent ones."
            )
        if self.opposed is not None:
            first, second = (
                [names[code] for code in np.flatnonzero(members).tolist()]
                for members in self.opposed.members
            )
            lines.append(
                f"Two groups are opposed: {_these(first)}; and {_these(second)}. They agree with"
                f" each other {self.opposed.share:.0%} as much as independent annotators would."
                " Labels do not show which group is right, so there is no verdict on annotators."
                " Collect gold labels of items on which they differ: neucrowd gold draws them."
            )
        lines += [
            f"{_these(members)} agree with each other beyond the consensus. If they have a common"
            f" source, count them once: --family={shlex.quote('|'.join(members))}"
            for members in self.related()
        ]
        tied = (self.certainty.num_tied > 1) & self.crowd.annotated
        if tied.any():
            lines.append(
                f"ties of equally probable classes: {int(tied.sum()):,} of {len(self.labels):,}"
                " labels (aggregate --ties)."
            )
        if self.left_out:
            lines.append(MORE_VOTES if self.left_out < 0 else LEFT_OUT.format(self.left_out))
        if self.agreement is None:
            if not (self.left_out):
                lines += [SHARED]
        else:
            agreed, total, share = self.agreement
            lines.append(
                f"The consensus agrees with your gold labels in {agreed} of {total} items:"
                f" {shown(share)}."
            )
        return lines


def shown(estimate: Estimate) -> str:
    """Returns an estimate as text, such as `0.894 [0.880, 0.908]`."""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _these(names: list[str]) -> str:
    return f"{', '.join(names[:8])}{', ...' * (len(names) > 8)}: these {len(names)} annotators"


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
    """
    crowd = as_annotations(crowd)
    codes = gold_codes(gold, crowd)
    once: list[Family] = []
    people = None
    models = named_models(models, crowd.annotator_names)
    if models or families:
        crowd.require_identities("models and families")
        named = np.isin(crowd.annotator_names.astype(str), models)
        once = dependent_families(crowd, named, named_families(crowd, families))
    if models and (alone := crowd.select(~named[crowd.annotators])).num_annotations:
        people = infer(alone, method, gold, seed, ties=ties, skills=skills)

    comparable = None
    if codes is not None and (codes >= 0).any():
        comparable = gold_items(crowd, codes)
    make: Callable[[], Aggregator] = functools.partial(make_aggregator, method, seed, ties)
    if method == "ordinal" and comparable is not None and codes is not None:
        nearest = nearest_to_gold(comparable.draws[0], codes, seed)
        make = functools.partial(OrdinalConsensus, only=nearest, seed=seed)

    def fitted(crowd: Annotations, gold: NDArray[np.int64] | None = None) -> Aggregator:
        """Returns the method with each family counted once, and models behind people."""
        if people is None:
            before = None
        else:
            before = people.base
        if families or gold is not None:
            reused = None
        else:
            reused = before
        result = fit_with_families(make, crowd, once, gold, reused)
        if before is None:
            return result
        first = annotators_first(result.probas_, crowd, named, before.probas_)
        return with_probas(result, crowd, first)

    calibration = Calibration.learned(method)
    left_out = 0
    least = 1.0
    agreement = estimates = without_gold = None
    by_groups = unlike = False
    if codes is None:
        codes = np.full(crowd.num_instances, -1, dtype=np.int64)
    elif comparable is None and (codes >= 0).any():
        left_out = -1
    if comparable is None:
        model = base = fitted(crowd, codes if (codes >= 0).any() else None)
    else:
        left_out = comparable.left_out
        base = fitted(comparable.crowd)

        def evidence(one: Annotations) -> tuple[Evidence, NDArray[np.float64]]:
            """Returns calibrated probabilities of a draw, and the posteriors."""
            posteriors = posteriors_of(base if one is comparable.crowd else fitted(one))
            votes = effective_votes(one, once)
            return Evidence(one, calibration.apply(posteriors, votes).probas), posteriors

        every, _ = evidence(comparable.crowd)
        draws, posteriors = zip(*map(evidence, comparable.draws), strict=True)
        votes = effective_votes(draws[0].crowd, once)
        agreement = gold_agreement(posteriors[0], votes, codes)
        before = gold_estimates(comparable.crowd, [one.consensus for one in draws], codes)
        by_groups = drawn_by_groups(crowd, codes)
        unlike = comparable.unlike and not by_groups
        if unlike:
            model = with_probas(base, crowd, apply_gold(base.probas_.copy(), codes), codes)
            least = agreement[2].low
        else:
            lesson = teach(every, codes, [one.members for one in once], draws)
            estimates = gold_estimates(comparable.crowd, lesson.blind, codes)
            model = with_probas(base, crowd, lesson.probas, codes)
            calibration = calibration.of_taught(lesson.blind, codes)
        if before is not None and estimates is not None and not by_groups:
            without_gold = before[0]
        else:
            estimates = None
    certainty = calibration.apply(posteriors_of(model), effective_votes(crowd, once), codes)
    certainty = dataclasses.replace(certainty, ordered=model.ordered, least=least)
    if skills and crowd.has_identities:
        judged = annotator_skills(crowd, certainty)
    else:
        judged = None
    opposed = None
    if crowd.has_identities and estimates is None and not by_groups:
        if people is None:
            opposed = opposed_groups(crowd)
        else:
            opposed = people.opposed
    if judged and people and people.skills:
        own = annotator_skills(people.crowd, certainty)
        judged = judged.containing(own, people.skills, ~named)
    if opposed is not None:
        least = opposed.least_accuracy(crowd, model.labels_)
        certainty = dataclasses.replace(certainty, least=min(least, certainty.least))
        if judged is not None:
            judged = judged.undecided(opposed.skills(crowd))
    if people is None and method not in (METHOD, "majority_vote", *ORDERED):
        warn_if_worse(crowd, method, seed)
    return Inference(
        crowd,
        model,
        certainty,
        judged,
        codes,
        agreement,
        estimates,
        tuple(once),
        left_out,
        people,
        without_gold,
        base,
        opposed,
        by_groups,
        unlike,
    )


def drawn_by_groups(crowd: Annotations, gold: NDArray[np.int64]) -> bool:
    """Returns whether opposed groups differ on gold items more often than on others, surely.

    Args:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.
    """
    groups = opposed_groups(crowd) if crowd.has_identities else None
    if groups is None:
        return False
    differ = groups.differ(crowd)
    marked = gold >= 0
    share = float(differ[crowd.annotated].mean())
    error = np.sqrt(share * (1.0 - share) / max(int(marked.sum()), 1))
    return bool(differ[marked].mean() > share + SIGNIFICANT * error)


def posteriors_of(model: Aggregator) -> NDArray[np.float64]:
    """Returns a model's posteriors `[N, C]` with ties decided in favour of its labels."""
    probas = model.probas_.copy()
    rows = np.arange(len(model.probas_))
    tied = rows[probas.argmax(axis=1) != model.labels_]
    probas[tied, model.labels_[tied]] = probas[tied].max(axis=1) + 1e-12
    return probas


def with_probas(
    model: Aggregator,
    crowd: Annotations,
    probas: NDArray[np.float64],
    gold: NDArray[np.int64] | None = None,
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
        counts = np.asarray(crowd.one_hot().T @ result.probas_)
        counts = counts.reshape(-1, crowd.num_classes, crowd.num_classes)
        result.errors_ = normalise_counts(counts.transpose(0, 2, 1), LEAST_COUNT)
        result.skills_ = expected_skills(result.errors_, result.priors_)
    return result


def gold_estimates(
    crowd: Annotations, draws: Sequence[NDArray[np.float64]], gold: NDArray[np.int64]
) -> tuple[Estimate, dict[str, Estimate]] | None:
    """Returns accuracy and class shares from gold labels and probabilities inferred without them.

    Args:
        crowd: the annotations.
        draws: `[N, C]` calibrated probabilities, by draws of gold items' labels; a gold item's do
            not depend on its gold label.
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
    probas = np.mean(draws, axis=0)
    right = np.mean([one.max(axis=1) for one in draws], axis=0)
    parts = (rows, rest)
    correct = np.mean([one[rows].argmax(axis=1) == gold[rows] for one in draws], axis=0)
    shares = {
        str(name): prediction_powered_share(gold[rows] == code, *(probas[at, code] for at in parts))
        for code, name in enumerate(crowd.class_names.tolist())
    }
    total = sum(share.value for share in shares.values())  # near 1: each is estimated by itself
    shares = {name: Estimate(*(min(x / total, 1.0) for x in one)) for name, one in shares.items()}
    accuracy = prediction_powered_share(correct, *(right[at] for at in parts), of_others=True)
    return accuracy, shares


def once_is_as_good(
    crowd: Annotations, members: NDArray[np.int64], gold: NDArray[np.int64]
) -> bool:
    """Returns whether labels are as good, but for chance, if some annotators count as one source.

    They are compared with gold labels, if there are enough, or with a fifth of the others' labels,
    which is held out.

    Args:
        crowd: with identities.
        members: codes of the annotators.
        gold: `[N]` class codes, -1 if unknown.
    """
    inside = np.isin(np.arange(crowd.num_annotators), members)
    held = (deal(crowd, 5, 0) == 0) & ~inside[crowd.annotators]
    enough = (gold >= 0).sum() >= FEWEST_GOLD
    if enough:
        rest = crowd
    else:
        rest = crowd.select(~held)
    if not held.any() or not rest.num_annotations:
        return True
    left = crowd.select(held)
    hits = []
    for families in ((), (Family(inside, 1.0),)):
        labels = fit_with_families(ShrunkDawidSkene, rest, families).labels_
        on_gold = (labels == gold)[gold >= 0]
        hits.append(on_gold if enough else labels[left.instances] == left.labels)
    worse = int((hits[0] & ~hits[1]).sum())
    better = int((hits[1] & ~hits[0]).sum())
    return bool(worse - better <= np.sqrt(worse + better))


def warn_if_worse(crowd: Annotations, method: str, seed: int) -> None:
    """Warns if held-out annotations agree more often with majority vote than with a method.

    A fifth of the annotations is held out, and labels are inferred from the rest. McNemar's test
    compares how many held-out annotations equal the labels of each.
    """
    held = deal(crowd, 5, seed) == 0
    if held.all() or not held.any():
        return
    rest = crowd.select(~held)
    left = crowd.select(held)
    with quietly():
        ours, votes = (
            make_aggregator(name, seed).fit(rest).labels_[left.instances] == left.labels
            for name in (method, "majority_vote")
        )
    better = int((ours & ~votes).sum())
    worse = int((votes & ~ours).sum())
    if worse - better > SIGNIFICANT * np.sqrt(better + worse):
        warn(
            f"held-out annotations agree with majority vote more often than with {method}"
            f" ({worse} of {worse + better} that differ). Use --method={METHOD}.",
            stacklevel=2,
        )
