"""Annotators who err together count once: models beside people, and families of annotators.

The labels that a family gives to an item become one symbol: the class with the most votes, and its
share of them. How often each symbol comes with each class is learned together with the people's
confusion matrices. So a family counts for as much as its symbols show, whether its members repeat
each other, share a source, or fail on the same items.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    expected_counts,
    expected_skills,
    labelled_rows,
    normalise_counts,
    normalise_log,
)
from neucrowd_tf.aggregation.shrunk_dawid_skene import LEAST_COUNT, average_confusion
from neucrowd_tf.aggregation.sums import TINY, Shard, keep_gold_only
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Codes32, Floats, Indices, Integers, Mask
from neucrowd_tf.errors import UsageError
from neucrowd_tf.names import did_you_mean, listed

SHARES = (0.5001, 0.67, 0.8, 0.9999)  # of votes for a class: the bounds of a symbol's levels
LEVELS = len(SHARES) + 2  # the highest level is a family with a single label
# Models whose agreement exceeds that of independent ones by less than this, or by less than half of
# it if people share too few items, count one by one.
INDEPENDENT = 0.1
LEAST_SHARED = 30  # items with two people, for an estimate of how well people agree
# Pseudo-labels per class, of the average annotator and of the average symbol.
STRENGTH = 4.0
SYMBOL_STRENGTH = 2.0
MOST_ITER = 100
TOLERANCE = 1e-5
TOGETHER = 2.0  # people per item: with fewer, labels do not show how accurate people are
CHANCE = 1.28  # standard errors of an 80% interval of class shares
LEAST_SKILL = 0.2  # of people in this interval: with less it would have no bounds
SHARE_TOLERANCE = 1e-3  # of the logarithms of class shares
# If one person labelled an item and models contradict the label, nothing shows who is right. So
# people get more pseudo-labels of an average person the more models agree with each other beyond
# their agreement with people: CAUTION for each unit beyond INDEPENDENT.
CAUTION = 5.0
MOST_CAUTION = 1.5
# Two annotators are related if they share RELATED_ITEMS items and agree more often, given the
# consensus, than independent annotators: by RELATED_ERRORS standard errors, and in RELATED_SHARE
# (beyond that of the median pair) of the labels that would otherwise differ.
RELATED_ITEMS = 20
RELATED_ERRORS = 5.0
RELATED_SHARE = 0.25
MOST_NAMED = 12  # annotators in a message
MOST_COMPARED = 50_000_000  # pairs of annotators x pairs of classes


class Sources(NamedTuple):
    """Which annotators are not independent people.

    Attributes:
        models: names of annotators that are models.
        families: patterns of names, see `named_families`.
    """

    models: Collection[str] = ()
    families: Collection[str] = ()


PEOPLE = Sources()


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Annotators who may err together.

    Attributes:
        members: `[R]` bool.
        dependence: correlation of their errors: 0 for independent ones, 1 for copies, NaN if they
            share no items.
        independent: how many independent annotators they are worth; NaN if that is unknown.
    """

    members: Mask
    dependence: float

    @property
    def independent(self) -> float:
        size = int(self.members.sum())
        return size / (1.0 + (size - 1) * float(np.clip(self.dependence, 0.0, 1.0)))


def labels_of(crowd: Annotations, members: Mask) -> Annotations:
    """Returns the annotations of some annotators, `[R]` bool."""
    return crowd.select(members[crowd.annotators])


def members_of(families: Iterable[Family]) -> list[Mask]:
    """Returns `[R]` who is in each of some families."""
    return [family.members for family in families]


def in_families(members: Iterable[Mask], num_annotators: int) -> Mask:
    """Returns `[R]` which annotators are in a family, by the members `[R]` of each."""
    return np.any([np.zeros(num_annotators, dtype=bool), *members], axis=0)


def outside_families(crowd: Annotations, families: Iterable[Family]) -> Annotations:
    """Returns the annotations of those who are in no family."""
    return labels_of(crowd, ~in_families(members_of(families), crowd.num_annotators))


def beyond_chance(agreeing: Floats, pairs: Floats, size: int) -> float:
    """Returns the share of pairs of labels that agree: 1 for all, 0 for as many as by chance."""
    if not pairs.sum() or size < 2:
        return float("nan")
    return float((size * agreeing.sum() / pairs.sum() - 1) / (size - 1))


def skill_of(votes: Integers) -> float:
    """Returns annotators' mean skill by agreement: 0 is chance, 1 is always right; 0 if unknown."""
    counts = votes.astype(np.float64)
    total = counts.sum(axis=1)
    agreement = beyond_chance(counts * (counts - 1), total * (total - 1), votes.shape[1])
    return float(np.sqrt(max(np.nan_to_num(agreement), 0.0)))


def excess_agreement(crowd: Annotations, members: Mask) -> tuple[float, float]:
    """Returns by how much a family's agreement exceeds that of independent annotators.

    Annotators who err independently, of skills a and b (0 is chance), agree beyond chance by a b.
    So the agreement within a family, times that between people, is the square of that between
    the two. If people share too few items, they are assumed to be as skilled as the family.

    Args:
        crowd: with identities.
        members: `[R]` who is in the family.

    Returns:
        the excess, and the correlation of errors that explains it; NaN if nothing is shared.
    """
    family = labels_of(crowd, members).vote_counts().astype(float)
    outside = labels_of(crowd, ~members).vote_counts().astype(float)
    in_family = family.sum(axis=1)
    in_outside = outside.sum(axis=1)
    size = crowd.num_classes
    within = beyond_chance(family * (family - 1), in_family * (in_family - 1), size)
    across = beyond_chance(family * outside, in_family * in_outside, size)
    if np.isnan(within) or np.isnan(across):
        return within, within
    among = beyond_chance(outside * (outside - 1), in_outside * (in_outside - 1), size)
    shared = int((in_outside > 1).sum())
    error = 1.0 / np.sqrt(max(shared, 1))
    if shared < LEAST_SHARED or among < 2 * error:
        among = max(across, TINY)
    else:
        among += error / 2  # so that models count as dependent in doubt
    expected = min(across**2 / among, 1.0)
    excess = within - expected
    return excess, float(np.clip(excess / max(1.0 - expected, TINY), 0.0, 1.0))


def named_families(crowd: Annotations, patterns: Collection[str]) -> list[Mask]:
    """Returns `[R]` the members of each family, as patterns name them.

    Args:
        crowd: with identities.
        patterns: one per family: names with `*` and `?`, and `|` between alternatives. A text is
            one pattern.

    Raises:
        UsageError: a pattern that fewer than two annotators have, or two that share one.
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    names = list(map(str, crowd.annotator_names.tolist()))
    families = []
    taken = np.zeros(len(names), dtype=bool)
    for pattern in patterns:
        members = np.zeros(len(names), dtype=bool)
        for alternative in pattern.split("|"):
            members |= [name == alternative or fnmatchcase(name, alternative) for name in names]
        problem = ""
        if (members & taken).any():
            problem = "shares annotators with another"
        elif members.sum() < 2:
            problem = f"matches {int(members.sum())} of {len(names)} annotators"
        if problem:
            raise UsageError(
                f"--family: {pattern!r} {problem}. Name two or more, such as 'gpt-*' or 'ann|bob'."
            )
        taken |= members
        families.append(members)
    return families


def named_models(patterns: Iterable[object], annotators: Iterable[object]) -> tuple[str, ...]:
    """Returns the annotators with these names, or patterns such as gpt-*; a text is one of them.

    Raises:
        UsageError: a name or pattern that no annotator has.
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    names = list(map(str, annotators))
    models = dict[str, None]()
    for pattern in map(str, patterns):
        matching = [pattern]
        if pattern not in names:
            matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            every = listed(names, MOST_NAMED)
            advice = did_you_mean(pattern, names) or f"The annotators are {every}."
            if "," in "".join(names):
                advice += " Quote a name that contains a comma."
            raise UsageError(f"--model_annotator: no annotator is named {pattern!r}. {advice}")
        models |= dict.fromkeys(matching)
    return tuple(models)


def related(crowd: Annotations, probas: Floats) -> list[Indices]:
    """Returns the codes of groups of annotators who agree beyond the consensus.

    Args:
        crowd: with identities.
        probas: `[N, C]` of the consensus.
    """
    size = crowd.num_classes
    num_annotators = crowd.num_annotators
    if size < 2 or num_annotators < 2 or (size * num_annotators) ** 2 > MOST_COMPARED:
        return []
    beliefs = np.asarray(probas, np.float64)
    counts = expected_counts(crowd.one_hot().T, beliefs)
    counts += STRENGTH * average_confusion(crowd, beliefs).T
    errors = normalise_counts(counts, LEAST_COUNT, axis=1)
    labelled, shared, agreed = shared_labels(crowd)
    # How often two annotators name the same class of an item, by its true class.
    by_class = errors.transpose(2, 0, 1)
    chances = by_class @ by_class.transpose(0, 2, 1)
    labels_of_item = np.diff(labelled.indptr)
    weighted = labelled.copy()
    expected = np.zeros_like(shared)
    for true in range(size):
        weighted.data = labelled.data * np.repeat(beliefs[:, true], labels_of_item)
        expected += chances[true] * (labelled.T @ weighted).toarray()
    many = shared >= RELATED_ITEMS
    np.fill_diagonal(many, False)
    if not many.any():
        return []
    beyond = agreed - expected
    share = beyond / np.maximum(shared - expected, 1.0)
    spread = np.sqrt(np.maximum(expected * (1 - expected / np.maximum(shared, 1)), TINY))
    usual = max(float(np.median(share[many])), 0.0)
    links = many & (beyond > RELATED_ERRORS * spread) & (share > usual + RELATED_SHARE)
    groups, codes = connected_components(links, directed=False)
    sets = (np.flatnonzero(codes == group) for group in range(groups))
    return [members for members in sets if len(members) > 1]


def shared_labels(crowd: Annotations) -> tuple[sparse.csr_matrix, Floats, Floats]:
    """Returns `[N, R]` numbers of labels, and `[R, R]` pairs of an item's labels and equal ones."""
    size = crowd.num_classes
    items = crowd.instances.astype(np.int64)
    labelled = _table(items, crowd.annotators, crowd.shape)
    cells = items * size + crowd.labels
    alike = _table(cells, crowd.annotators, (crowd.num_instances * size, crowd.num_annotators))
    return labelled, (labelled.T @ labelled).toarray(), (alike.T @ alike).toarray()


def _table(rows: Integers, columns: Integers, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Returns how often each pair of a row and a column occurs."""
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def symbols(crowd: Annotations, members: Mask) -> Codes:
    """Returns `[N]` the symbol that a family gives to each item, -1 without labels.

    It is class * LEVELS + level.
    """
    votes = labels_of(crowd, members).vote_counts()
    total = votes.sum(axis=1)
    level = np.digitize(votes.max(axis=1) / np.maximum(total, 1), SHARES)
    level[total == 1] = LEVELS - 1
    return np.where(total > 0, votes.argmax(axis=1) * LEVELS + level, -1)


def symbol_errors(counts: Floats, size: int) -> Floats:
    """Returns `[S, C]` the probability of each symbol of each true class from expected counts.

    Counts are drawn towards the mean over classes: how often a level comes with the right class.
    """
    cube = counts.reshape(size, -1, size)
    right = np.einsum("csc->s", cube)
    wrong = (cube.sum(axis=(0, 2)) - right) / max(size - 1, 1)
    average = np.repeat((wrong + 0.1)[None, :, None], size, axis=0).repeat(size, axis=2)
    average[np.arange(size), :, np.arange(size)] = right + 0.1
    average /= average.sum(axis=(0, 1))
    return normalise_counts((cube + SYMBOL_STRENGTH * size * average).reshape(-1, size), axis=0)


def infer_together(
    people: Annotations, signals: Sequence[Codes], gold: Codes | None, caution: float
) -> tuple[Floats, Floats]:
    """Infers labels from people and families by one EM.

    Args:
        people: the annotations of those in no family.
        signals: each family's `symbols`.
        gold: `[N]` class codes, -1 if unknown, or None.
        caution: see `CAUTION`.

    Returns:
        `[N, C]` posteriors, and the log likelihood of each class by the families alone.
    """
    shard = Shard(people.one_hot(), people.num_classes, gold)
    size = people.num_classes
    beliefs = shard.votes()
    counted = people.vote_counts().sum(axis=1)
    single = float((counted == 1).sum() / max((counted > 0).sum(), 1))
    strength = STRENGTH + caution * single * people.labels_per_annotator() / size
    pseudo = strength[:, None, None] * average_confusion(people, beliefs).T + LEAST_COUNT
    tables = []
    for codes in signals:
        rows = np.flatnonzero(codes >= 0)
        tables.append(_table(rows, codes[rows], (len(codes), size * LEVELS)))
    likelihood = np.zeros_like(beliefs)
    for _ in range(MOST_ITER):
        counts = expected_counts(shard.transposed, beliefs) + pseudo
        errors = np.log(normalise_counts(counts, axis=1)).reshape(-1, size)
        likelihood = np.zeros_like(beliefs)
        for table in tables:
            likelihood += table @ np.log(symbol_errors((table.T @ beliefs), size))
        scores = shard.one_hot @ errors + likelihood
        keep_gold_only(scores, gold)
        normalise_log(scores, np.log(normalise_counts(beliefs.sum(axis=0), 1.0)))
        change = float(np.abs(scores - beliefs).max(initial=0.0))
        beliefs = scores
        if change < TOLERANCE:
            break
    return beliefs, likelihood


def dependent_families(
    crowd: Annotations, models: Mask, named: Sequence[Mask] = ()
) -> list[Family]:
    """Returns the families whose members are not counted one by one.

    Args:
        crowd: with identities.
        models: `[R]` which annotators are models; those in no other family are one.
        named: `[R]` members of further families.
    """
    families = [Family(members, excess_agreement(crowd, members)[1]) for members in named]
    taken = np.any([np.zeros_like(models), *named], axis=0)
    unassigned = models & ~taken
    if unassigned.sum() > 1 and not (unassigned | taken).all():
        excess, dependence = excess_agreement(crowd, unassigned)
        several = (labels_of(crowd, ~unassigned).vote_counts().sum(axis=1) > 1).sum()
        if several < LEAST_SHARED:
            excess *= 2
        if not excess < INDEPENDENT:
            families.append(Family(unassigned, dependence))
    return families


def fit_with_families(
    method: Callable[[], Aggregator],
    crowd: Annotations,
    families: Sequence[Family],
    gold: Codes | None = None,
    alone: Aggregator | None = None,
) -> Aggregator:
    """Returns a fitted aggregator in which each family counts once.

    The labels of those in no family are inferred by the method, and together with the families by
    EM. The result is the normalised geometric mean of the method's probabilities times the
    families' likelihood and of EM's.

    Args:
        method: returns the aggregator, unfitted.
        crowd: with identities.
        families: from `dependent_families`; without any, or with one of all annotators, the method
            alone. Of several that have all annotators, each is one annotator to the method.
        gold: `[N]` class codes, -1 if unknown, or None.
        alone: the method, fitted to those in no family and gold labels already.
    """
    if not families:
        return method().fit(crowd, gold)
    people = outside_families(crowd, families)
    if len(families) == 1 and not people.num_annotations:
        return method().fit(crowd, gold)
    signals = [symbols(crowd, family.members) for family in families]
    if not people.num_annotations:
        labels = np.stack(signals, axis=1) // LEVELS
        once = Annotations.from_dense(
            labels, instance_names=crowd.instance_names, class_names=crowd.class_names
        )
        result = method().fit(once, gold)
        result.annotator_names_ = crowd.annotator_names
        probas = result.probas_
    else:
        result = method().fit(people, gold) if alone is None else copy.copy(alone)
        excess = max(excess_agreement(crowd, family.members)[0] for family in families)
        doubt = CAUTION * (np.nan_to_num(excess, nan=1.0) - INDEPENDENT)
        caution = float(np.clip(doubt, 0.0, MOST_CAUTION))
        together, likelihood = infer_together(people, signals, gold, caution)
        probas = np.log(np.maximum(result.probas_, 1e-9)) + likelihood
        probas -= probas.max(axis=1, keepdims=True)
        probas = (probas + np.log(np.maximum(together, 1e-12))) / 2
        normalise_log(probas, np.zeros(crowd.num_classes))
    result.annotated_ = labelled_rows(crowd, gold)
    result.priors_ = normalise_counts(probas[result.annotated_].sum(axis=0), 1e-3)
    result.probas_ = probas
    result._conclude(gold)
    counts = expected_counts(crowd.one_hot().T, probas)
    result.errors_ = normalise_counts(counts.transpose(0, 2, 1), LEAST_COUNT)
    result.skills_ = expected_skills(result.errors_, result.priors_)
    return result


def annotators_first(probas: Floats, crowd: Annotations, models: Mask, alone: Floats) -> Floats:
    """Returns `[N, C]` probabilities in which models do not shift or overturn what people say.

    People and models may lean towards a class together, which their agreement cannot show. So class
    shares of items that people labelled stay in the 80% interval of people alone. With less than
    two people per item hardly anything shows how right people are: there a label that no other
    person contradicts stays, however many models contradict it.

    Args:
        probas: `[N, C]` inferred from people and models.
        crowd: with identities.
        models: `[R]` which annotators are models.
        alone: `[N, C]` inferred from people alone.
    """
    votes = labels_of(crowd, ~models).vote_counts()
    labelled = votes.sum(axis=1) > 0
    if not labelled.any():
        return probas
    shares = alone[labelled].mean(axis=0)
    error = np.sqrt(shares * (1.0 - shares) / votes.sum()) / max(skill_of(votes), LEAST_SKILL)
    width = CHANCE / np.sqrt(max(len(shares) - 1, 1)) * error  # all classes together
    bounded = np.clip(probas[labelled].mean(axis=0), shares - width, shares + width)
    result = with_shares(probas, labelled, bounded)
    if votes.sum() < TOGETHER * labelled.sum():
        undisputed = labelled & ((votes > 0).sum(axis=1) == 1)
        overturned = undisputed & (result.argmax(axis=1) != votes.argmax(axis=1))
        result[overturned] = alone[overturned]
    return result


def with_shares(probas: Floats, rows: Mask, shares: Floats) -> Floats:
    """Returns probabilities `[N, C]` whose mean over some rows is `shares` `[C]`.

    All rows are multiplied by the same odds of the classes.
    """
    logs = np.log(np.maximum(probas, 1e-12))
    target = np.log(normalise_counts(shares * rows.sum(), 0.5))
    odds = np.zeros(probas.shape[1])
    result = probas
    for _ in range(MOST_ITER):
        change = target - np.log(normalise_counts(result[rows].sum(axis=0), 0.5))
        if np.abs(change).max() < SHARE_TOLERANCE:
            break
        odds += change
        result = logs.copy()
        normalise_log(result, odds)
    return result


def effective_votes(crowd: Annotations, families: Sequence[Family]) -> Codes32:
    """Returns `[N, C]` vote counts in which each family has one vote, for its commonest class."""
    if not families:
        return crowd.vote_counts()
    votes = outside_families(crowd, families).vote_counts()
    for family in families:
        symbol = symbols(crowd, family.members)
        rows = np.flatnonzero(symbol >= 0)
        votes[rows, symbol[rows] // LEVELS] += 1
    return votes
