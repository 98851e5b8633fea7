"""Annotators' skills, shrunk to the crowd's, with intervals whose coverage was measured."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.recalibration import Certainty, draws_for
from neucrowd_tf.declare.types import Array, Floats, Indices, Mask

# Probability between the quantiles of an 80% interval: annotators share mistakes with the inferred
# labels. It covers 83% of annotators' accuracies on public crowds (results/calibration.csv).
SPREAD = 0.87
# Standard deviation, by shared mistakes, of an annotator's share of right labels around the value
# that inferred labels give, if gold labels show the crowd's accuracy. With it 80% of the intervals
# contain the true share on the public crowds of `benchmarks.certainty`.
SHARED_MISTAKES = 0.03
FEW_LABELS = 10  # fewer say nothing about unreliability
UNRELIABLE = 0.95  # least probability of that verdict
# Inferred labels do not show how accurate annotators are if their own skill (0 is chance, 1 is all
# right) may be this low.
WEAK = 0.4
MOST_PSEUDO_LABELS = 100.0
# Annotators with CHANCE_LABELS labels or more get a note if they agree with others beyond chance by
# less than this share of the crowd's agreement. On public crowds only half of them are unreliable
# by true labels, so the note alone is no verdict.
CHANCE_LABELS = 20
CHANCE_SHARE = 0.5
# Least probability of the verdict on annotators with this note, which is further evidence.
UNRELIABLE_BY_CHANCE = 0.7
# Share of the annotators who label at random that the verdict has to find.
POWER = 0.8

UNRELIABLE_NOTE = "unreliable"
FEW_NOTE = "few labels"
CHANCE_NOTE = "near chance"
ONE_CLASS_NOTE = "one class only"
ALONE_NOTE = "no shared items"
WEAK_NOTE = "weak consensus"
OPPOSED_NOTE = "opposed groups"


@dataclasses.dataclass(frozen=True, eq=False)
class Skills:
    """Annotators' accuracies.

    Attributes:
        skill: `[R]` expected accuracy, shrunk to the crowd's; NaN without labels, and if all labels
            are of one class.
        low, high: `[R]` 80% interval of the share of right labels.
        unreliable: `[R]` probability that the accuracy is below halfway between chance and the
            crowd's mean.
        note: `[R]` the verdict, or why it is missing; empty for an annotator like the others.
        average: the crowd's mean accuracy.
    """

    skill: Floats
    low: Floats
    high: Floats
    unreliable: Floats
    note: Array
    average: float

    def containing(self, together: Skills, alone: Skills, people: Mask) -> Skills:
        """Returns these skills with people's own, in intervals that contain those of people alone.

        Args:
            together: of people among people, by labels of people and models.
            alone: of people, by their labels alone.
            people: `[R]` which annotators they are.
        """
        return Skills(
            skill=np.where(people, together.skill, self.skill),
            low=np.where(people, np.minimum(together.low, alone.low), self.low),
            high=np.where(people, np.maximum(together.high, alone.high), self.high),
            unreliable=np.where(people, together.unreliable, self.unreliable),
            note=np.where(people, together.note, self.note),
            average=self.average,
        )

    def undecided(self, shares: Floats) -> Skills:
        """Returns these skills without verdicts, in intervals that contain other skills.

        Args:
            shares: `[G, R]` each annotator's skill if one of opposed groups is right.
        """
        verdicts = np.isin(self.note, [UNRELIABLE_NOTE, CHANCE_NOTE, WEAK_NOTE, ""])
        return dataclasses.replace(
            self,
            low=np.minimum(self.low, shares.min(axis=0)),
            high=np.maximum(self.high, shares.max(axis=0)),
            unreliable=np.full_like(self.unreliable, np.nan),
            note=np.where(verdicts, OPPOSED_NOTE, self.note),
        )


def annotator_skills(crowd: Annotations, certainty: Certainty) -> Skills:
    """Returns each annotator's accuracy under the recalibrated probabilities.

    Every draw of the crowd's shift gives the probability that each annotation is right, hence an
    annotator's number of right labels, and its spread (see `right_sums`). The skill adds
    pseudo-labels of the crowd's mean accuracy, as many as the spread between annotators supports.

    Args:
        crowd: with identities.
        certainty: of its inferred labels.
    """
    size = crowd.num_annotators
    if crowd.num_classes < 2:
        unknown = np.full(size, np.nan)
        note = np.full(size, ONE_CLASS_NOTE, dtype=object)
        return Skills(unknown, np.zeros(size), np.ones(size), unknown, note, np.nan)
    counts = crowd.labels_per_annotator().astype(np.float64)
    total = max(counts.sum(), 1.0)
    rng = np.random.default_rng(2)
    right = []
    skills = []
    below = []
    common = 0.0 * counts
    if certainty.calibration.fits:
        common = SHARED_MISTAKES * counts
    sums, variances = right_sums(crowd, certainty, certainty.shifts[: draws_for(size)])
    for expected, variance in zip(sums.T, variances.T, strict=True):
        spread = np.sqrt(np.maximum(variance, 0.0) + common**2)
        count = np.clip(expected + spread * rng.standard_normal(size), 0.0, counts)
        mean = _mean_accuracy(expected, total)
        pseudo = pseudo_labels(count, counts, mean)
        right.append(count)
        skills.append(rng.beta(pseudo * mean + count, pseudo * (1 - mean) + counts - count))
        below.append(skills[-1] < (1.0 / crowd.num_classes + mean) / 2)
    shares = np.array(right) / np.maximum(counts, 1.0)
    low, high = np.quantile(shares, [(1 - SPREAD) / 2, (1 + SPREAD) / 2], axis=0)
    skill = np.mean(skills, axis=0)
    unlabelled = counts == 0
    skill[unlabelled] = np.nan
    unreliable = np.where(unlabelled, np.nan, np.mean(below, axis=0))
    return Skills(
        skill,
        np.where(unlabelled, 0.0, np.minimum(low, skill)),
        np.where(unlabelled, 1.0, np.maximum(high, skill)),
        unreliable,
        notes(crowd, certainty, unreliable),
        float((shares.mean(axis=0) * counts).sum() / total),
    )


def _mean_accuracy(right: Floats, total: float) -> float:
    """Returns the share of right labels, within (0, 1), as a beta distribution needs it."""
    return float(np.clip(right.sum() / total, 1e-6, 1 - 1e-6))


def right_sums(crowd: Annotations, certainty: Certainty, shifts: Floats) -> tuple[Floats, Floats]:
    """Returns `[R, S]` each annotator's expected number of right labels, and its variance.

    With probability p that an item's label is right, an annotation with this label is right with
    probability p, another one with its share of the rest. So the sums follow, for all shifts, from
    an annotator's sums over the items of each of `Certainty.bins`.

    Args:
        crowd: with identities.
        certainty: of its inferred labels.
        shifts: `[S, 2]`.
    """
    items = crowd.instances
    labels = crowd.labels
    bins = certainty.bins
    gold = certainty.gold[items]
    certain = gold >= 0
    fixed = np.bincount(crowd.annotators, certain & (labels == gold), crowd.num_annotators)
    share = np.where(certain, 0.0, certainty.shares[items, labels])
    cells = crowd.annotators, bins.of_items[items]
    shape = (crowd.num_annotators, len(bins.logits))

    def sums(weights: Array) -> sparse.csr_matrix:
        """Returns `[R, B]` the sums of labels' weights `[A]`."""
        return sparse.coo_matrix((weights, cells), shape).tocsr()

    agreeing = sums(1.0 * (certainty.tied[items, labels] & ~certain))
    others = sums(1.0 * (share > 0))
    shares = sums(share)
    squares = sums(share**2)
    right = bins.right(shifts)
    rest, each = bins.others(right)
    expected = agreeing @ right + shares @ rest + others @ each
    variances = expected - agreeing @ right**2 - squares @ rest**2 - others @ each**2
    return fixed[:, None] + expected, variances


def notes(crowd: Annotations, certainty: Certainty, unreliable: Floats) -> Array:
    """Returns `[R]` the verdict on each annotator, or why it is missing.

    Args:
        crowd: with identities.
        certainty: of its inferred labels.
        unreliable: `[R]` probability of being unreliable.
    """
    inferred = certainty.posteriors.argmax(axis=1)
    overlap = _shared_labels(crowd, certainty)
    seen = np.zeros((crowd.num_annotators, crowd.num_classes), dtype=bool)
    seen[crowd.annotators, inferred[crowd.instances]] = True
    is_poor = unreliable > UNRELIABLE
    is_chancy = near_chance(crowd)
    both = is_chancy & (unreliable > UNRELIABLE_BY_CHANCE)
    reasons = {
        ALONE_NOTE: overlap == 0,
        FEW_NOTE: overlap < FEW_LABELS,
        ONE_CLASS_NOTE: seen.sum(axis=1) < 2,
        UNRELIABLE_NOTE: (is_poor & (not is_weak(crowd, certainty))) | both,
        CHANCE_NOTE: is_chancy,
        WEAK_NOTE: is_poor,
    }
    return np.select(list(reasons.values()), list(reasons), "").astype(object)


def _pairs(crowd: Annotations) -> tuple[Indices, Indices]:
    """Returns each label's pair of item and annotator, and how many labels each pair has."""
    pairs = crowd.instances.astype(np.int64) * crowd.num_annotators + crowd.annotators
    _, pair_of_label, repeats = np.unique(pairs, return_inverse=True, return_counts=True)
    return pair_of_label, repeats


def _shared_labels(crowd: Annotations, certainty: Certainty) -> Indices:
    """Returns `[R]` numbers of labels of items that others labelled too."""
    pair_of_label, repeats = _pairs(crowd)
    is_shared = certainty.votes.sum(axis=1)[crowd.instances] > repeats[pair_of_label]
    return np.bincount(crowd.annotators, is_shared, minlength=crowd.num_annotators)


def random_labels_show(crowd: Annotations, certainty: Certainty) -> Mask:
    """Returns `[R]` for whom the verdict "unreliable" would be likely if they labelled at random.

    "Likely" means a probability of at least `POWER`. An annotator's number of labels and the
    crowd's accuracy decide. On three public crowds, 17 of 18 annotators for whom the value is True
    got the verdict when their labels were replaced by random ones.

    Args:
        crowd: with identities.
        certainty: of its inferred labels.
    """
    from scipy.stats import beta, binom  # slow to load, and `aggregate` does without skills

    chance = 1.0 / crowd.num_classes
    counts = crowd.labels_per_annotator().astype(np.float64)
    overlap = _shared_labels(crowd, certainty)
    # With these totals so many random labels are right at most, with the probability `POWER`.
    totals, places = np.unique(counts, return_inverse=True)
    right = binom.ppf(POWER, totals, chance)
    below = []
    sums, _ = right_sums(crowd, certainty, certainty.shifts[: draws_for(len(counts))])
    for expected in sums.T:
        mean = _mean_accuracy(expected, max(counts.sum(), 1.0))
        pseudo = pseudo_labels(expected, counts, mean)
        limit = (chance + mean) / 2
        hits = pseudo * mean + right
        below.append(beta.cdf(limit, hits, pseudo * (1 - mean) + totals - right))
    unreliable = np.mean(below, axis=0)[places]
    is_chancy = (overlap >= CHANCE_LABELS) & (unreliable > UNRELIABLE_BY_CHANCE)
    is_poor = (unreliable > UNRELIABLE) & (not is_weak(crowd, certainty))
    return (overlap >= FEW_LABELS) & (is_poor | is_chancy)


def is_weak(crowd: Annotations, certainty: Certainty) -> bool:
    """Returns whether inferred labels may be too close to chance to judge annotators by them."""
    chance = 1.0 / crowd.num_classes
    return bool(certainty.accuracy().low - chance < WEAK * (1.0 - chance))


def near_chance(crowd: Annotations) -> Mask:
    """Returns `[R]` whether labels hardly depend on what the other annotators say.

    Args:
        crowd: with identities.
    """
    relative, shared = relative_agreement(crowd)
    return (relative < CHANCE_SHARE) & (shared >= CHANCE_LABELS)


def relative_agreement(crowd: Annotations) -> tuple[Floats, Floats]:
    """Returns `[R]` each annotator's agreement with others beyond chance, 1 for the crowd's mean.

    Agreement with the others' votes of the same items is compared with that of the annotator's own
    labels dealt out to these items at random, so that it does not matter how common a class is.
    Votes are weighted by the agreement of those who gave them. It is 0 for labels that do not
    depend on the item, below 0 for wrong ones, and NaN without shared items or if nobody agrees.

    Args:
        crowd: with identities.

    Returns:
        that agreement, and the number of an annotator's labels on items with other votes.
    """
    weights = np.ones(crowd.num_annotators)
    few = 10.0  # labels as good as the average, until an annotator's own say otherwise
    for _ in range(2):
        beyond, shared = agreement_beyond_chance(crowd, weights)
        average = float(beyond @ shared) / max(float(shared.sum()), 1.0)
        if average <= 0:
            return np.full(len(beyond), np.nan), shared
        relative = beyond / average
        weights = np.maximum((relative * shared + few) / (shared + few), 0.1)
    return np.where(shared > 0, relative, np.nan), shared


def agreement_beyond_chance(crowd: Annotations, weights: Floats) -> tuple[Floats, Floats]:
    """Returns `[R]` the mean share of the others' votes for a label, less that expected by chance.

    Args:
        crowd: with identities.
        weights: `[R]` of the votes, above 0.

    Returns:
        that difference, and the number of an annotator's labels on items with other votes.
    """
    size = crowd.num_annotators
    classes = crowd.num_classes
    annotators = crowd.annotators
    labels = crowd.labels
    votes = np.zeros((crowd.num_instances, classes))
    np.add.at(votes, (crowd.instances, labels), weights[annotators])
    # An annotator's other labels of an item are no votes of others.
    pair_of_label, repeats = _pairs(crowd)
    votes_of_pair = np.zeros((len(repeats), classes))
    np.add.at(votes_of_pair, (pair_of_label, labels), weights[annotators])
    others = votes[crowd.instances] - votes_of_pair[pair_of_label]
    num_labels = crowd.vote_counts().sum(axis=1)[crowd.instances]
    several = num_labels > repeats[pair_of_label]
    shares = np.where(several[:, None], others / np.maximum(others.sum(axis=1), 1e-9)[:, None], 0.0)
    shared = np.bincount(annotators, several, minlength=size)
    total = np.maximum(shared, 1.0)
    agreed = np.bincount(annotators, shares[np.arange(len(labels)), labels], minlength=size) / total
    chance = np.zeros(size)
    for code in range(classes):
        times = np.bincount(annotators, several & (labels == code), minlength=size)
        chance += times * np.bincount(annotators, shares[:, code], minlength=size) / total**2
    return agreed - chance, shared.astype(np.float64)


def pseudo_labels(right: Floats, total: Floats, mean: float) -> float:
    """Returns how many labels of an average annotator each annotator's skill is drawn by.

    The method of moments for a beta distribution of skills.

    Args:
        right: `[R]` number of right labels.
        total: `[R]` number of labels.
        mean: the crowd's accuracy.
    """
    many = total >= 5
    if not many.any():
        return 10.0
    shares = right[many] / total[many]
    weights = total[many]
    between = np.average((shares - mean) ** 2, weights=weights)
    noise = mean * (1 - mean) * many.sum() / weights.sum()
    variance = max(float(between - noise), 1e-4)
    return float(np.clip(mean * (1 - mean) / variance - 1, 1.0, MOST_PSEUDO_LABELS))
