"""Annotators whose accuracy changes over time, if their labels carry times."""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import Inference
from neucrowd_tf.declare.types import Floats, Indices, Mask

LEAST_SIDE = 10  # labels before a change, and after it
LEAST_OTHERS = 2  # if only one other labelled an item, either of the two may have changed
LEAST_CHANGE = 0.1  # of accuracy: smaller changes are no reason to look
FALSE_ALARMS = 0.05  # probability of one in a crowd without changes
LEVELS = 5  # bins of the others' dissent; items in one bin are comparable
MOST_SKILL = 0.95  # higher skills weigh as this one, so that log odds are finite
CLEAR = 1e-9  # a lead in summed weights below this is rounding: a tie


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """A change of an annotator's accuracy.

    Attributes:
        annotator: the annotator's code.
        agrees: `[n]` whether labels agree with the others', in the order of their times.
        num_before: how many of them are before the change.
        time: of the first one after it, in seconds since 1970, UTC.
    """

    annotator: int
    agrees: Mask
    num_before: int
    time: float

    @property
    def rates(self) -> tuple[float, float]:
        """The shares of labels that agree, before and after."""
        before = self.agrees[: self.num_before]
        after = self.agrees[self.num_before :]
        return float(before.mean()), float(after.mean())

    @property
    def note(self) -> str:
        """What annotators.csv says."""
        before, after = self.rates
        return f"changed: {before:.2f} to {after:.2f}"

    @property
    def date(self) -> str:
        """The first day, UTC, of the changed accuracy."""
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (start + datetime.timedelta(seconds=self.time)).date().isoformat()

    def line(self, name: object) -> str:
        """Returns what a command prints of the annotator of this name."""
        before, after = self.rates
        num_after = len(self.agrees) - self.num_before
        return (
            f"{name} changed: {before:.2f} of {self.num_before:,} labels agree with the others'"
            f" before {self.date}, {after:.2f} of {num_after:,} from then on."
        )


def changes(inference: Inference, times: Floats | None) -> list[Change]:
    """Returns the annotators whose accuracy changes, by their codes.

    Labels are compared with the class that has most of the others' votes, weighted by skill, or
    with the gold label. The change is at the most likely point of two Bernoulli rates, and is
    tested exactly. Null hypothesis: among all orders of the annotator's labels, each is equally
    probable. Strata: orders are permuted within groups of items on which the others say the same
    class and agree as much, so that harder items or other classes at another time are no change.
    Correction: Bonferroni's, for all points and annotators. If the others' agreement changes half
    as much on the same items, the change is everybody's. Changes are found one at a time, the
    clearest first; then the annotator's votes no longer count.

    Args:
        inference: of the crowd.
        times: `[A]` seconds of each label, NaN if unknown, or None.

    Returns:
        the changes; none without times or skills, with fewer than two classes, and in a crowd of
        opposed groups, where the others' class is not the true one.
    """
    if times is None or inference.skills is None or inference.opposed is not None:
        return []
    crowd = inference.crowd
    classes = crowd.num_classes
    if classes < 2:
        return []
    # An annotator at chance or without a skill (NaN) weighs nothing; the others weigh the log odds
    # of a vote for the true class against one for a given other class.
    skill = np.minimum(np.nan_to_num(inference.skills.skill), MOST_SKILL)
    odds = (classes - 1) * skill / (1 - skill)
    weights = np.log(np.maximum(odds, 1.0))
    order = np.lexsort((times, crowd.annotators))
    rows_of = np.split(order, np.cumsum(crowd.labels_per_annotator())[:-1])
    timed_of = [rows[np.isfinite(times[rows])] for rows in rows_of]
    tested = [code for code, rows in enumerate(timed_of) if len(rows) >= 2 * LEAST_SIDE]
    num_tested = len(tested)
    clear: list[Change] = []
    while True:
        votes = _Votes.of(crowd, weights)
        best = FALSE_ALARMS
        clearest = None
        for code in tested:
            rows, winners, against = votes.of_others(
                crowd, rows_of[code], timed_of[code], inference.gold
            )
            agrees = crowd.labels[rows] == winners
            num_before, chance = _most_likely(agrees, times[rows], winners, against)
            if chance * num_tested < best:
                best = chance * num_tested
                clearest = Change(code, agrees, num_before, float(times[rows[num_before]]))
        if clearest is None:
            return sorted(clear, key=lambda change: change.annotator)
        clear.append(clearest)
        tested.remove(clearest.annotator)
        weights[clearest.annotator] = 0.0


class _Votes(NamedTuple):
    """Annotators' weights `[R]`, and `[N, C]` the sums of weights and numbers of weighed votes."""

    weights: Floats
    sums: Floats
    counts: Indices

    @classmethod
    def of(cls, crowd: Annotations, weights: Floats) -> _Votes:
        """Returns the votes of annotators with these weights `[R]`, which are at least 0."""
        of_label = weights[crowd.annotators]
        shape = (crowd.num_instances, crowd.num_classes)
        cells = np.ravel_multi_index((crowd.instances, crowd.labels), shape)
        size = math.prod(shape)
        sums = np.asarray(np.bincount(cells, of_label, size), dtype=float)
        counts = np.bincount(cells[of_label > 0], minlength=size)
        return cls(weights.copy(), sums.reshape(shape), counts.reshape(shape))

    def of_others(
        self, crowd: Annotations, every: Indices, rows: Indices, gold: Indices
    ) -> tuple[Indices, Indices, Floats]:
        """Returns what the others say of the items of an annotator's labels.

        Args:
            crowd: the annotations.
            every: places of all labels of the annotator, also several of one item.
            rows: `[n]` places of those to compare.
            gold: `[N]` class codes, -1 if unknown.

        Returns:
            the places of the labels that can be compared with that, the class of each, and the
            share of others who say another one.
        """
        labelled, item_of_label = np.unique(crowd.instances[every], return_inverse=True)
        cells = item_of_label, crowd.labels[every]
        weights = self.weights[crowd.annotators[every]]
        sums = self.sums[labelled]
        counts = self.counts[labelled]
        np.subtract.at(sums, cells, weights)
        np.subtract.at(counts, cells, weights > 0)
        items = crowd.instances[rows]
        of_row = np.searchsorted(labelled, items)
        sums = sums[of_row]
        counts = counts[of_row]
        total = counts.sum(axis=1)
        highest = np.partition(sums, -2, axis=1)
        clear = highest[:, -1] - highest[:, -2] > CLEAR
        gold_of_row = gold[items]
        winners = np.where(gold_of_row >= 0, gold_of_row, sums.argmax(axis=1))
        against = (total - counts[np.arange(len(rows)), winners]) / np.maximum(total, 1)
        used = ((total >= LEAST_OTHERS) & clear) | (gold_of_row >= 0)
        return rows[used], winners[used], against[used]


def _most_likely(
    agrees: Mask, times: Floats, winners: Indices, against: Floats
) -> tuple[int, float]:
    """Returns the most likely change, and the probability of one as clear by chance.

    Args:
        agrees: `[n]` in the order of time.
        times: `[n]`.
        winners, against: `[n]` what the others say, see `_Votes.of_others`.

    Returns:
        how many labels are before it, and the probability, corrected for all points.
    """
    total = len(agrees)
    sizes = np.arange(LEAST_SIDE, total - LEAST_SIDE + 1)  # empty for fewer than 20
    sizes = sizes[times[sizes] > times[sizes - 1]]
    if not len(sizes):
        return 0, 1.0
    sums = np.cumsum(agrees, dtype=np.int64)
    before = sums[sizes - 1]
    logs = _max_log_likelihood(before, sizes)
    logs += _max_log_likelihood(sums[-1] - before, total - sizes)
    num_before = int(sizes[np.argmax(logs)])
    # By how much the annotator's agreement falls, and by how much that of the others does.
    fall = float(agrees[:num_before].mean() - agrees[num_before:].mean())
    others_fall = float(against[num_before:].mean() - against[:num_before].mean())
    if abs(fall) < LEAST_CHANGE or 2 * others_fall * np.sign(fall) > abs(fall):
        return num_before, 1.0
    groups = (LEVELS + 1) * winners + np.ceil(LEVELS * against).astype(np.int64)
    # The probability of each number of agreeing labels before the change: numbers of independent
    # groups add up, so that their distributions are convolved.
    shares = np.ones(1)
    for group in np.unique(groups):
        inside = groups == group
        drawn = int(inside[:num_before].sum())
        right = int(agrees[inside].sum())
        shares = np.convolve(shares, _hypergeometric(int(inside.sum()), right, drawn))
    seen = int(sums[num_before - 1])
    tail = min(shares[: seen + 1].sum(), shares[seen:].sum())
    return num_before, float(2 * tail * len(sizes))


def _hypergeometric(total: int, right: int, drawn: int) -> Floats:
    """Returns `[drawn + 1]` the probability of each number of right ones among those drawn.

    `scipy.stats` has this too, but takes long to import.
    """
    hits = np.arange(max(0, drawn + right - total), min(drawn, right) + 1)

    def ways(size: int, chosen: Indices | int) -> Floats:
        return gammaln(size + 1) - gammaln(chosen + 1) - gammaln(size - chosen + 1)

    logs = ways(right, hits) + ways(total - right, drawn - hits) - ways(total, drawn)
    shares = np.zeros(drawn + 1)
    shares[hits] = np.exp(logs)
    return shares


def _max_log_likelihood(right: Indices, total: Indices) -> Floats:
    """Returns the log likelihoods of `right` of `total` labels at their most likely rates."""
    rate = np.clip(right / total, 1e-12, 1 - 1e-12)
    return right * np.log(rate) + (total - right) * np.log1p(-rate)
