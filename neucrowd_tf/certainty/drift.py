"""Annotators whose accuracy changes over time, if their labels carry times."""

from __future__ import annotations

import dataclasses
import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import Inference

Array = NDArray[np.float64]

LEAST_SIDE = 10  # labels before a change, and after it
LEAST_OTHERS = 2  # with one other label nobody knows who of the two has changed
LEAST_CHANGE = 0.1  # of accuracy: smaller changes are no reason to look
FALSE_ALARMS = 0.05  # probability of one in a crowd without changes
LEVELS = 5  # of disagreement between the others
LEAST_SKILL = 0.05  # for the weight of a label; the most is 1 less this


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of an annotator's accuracy.

    Attributes:
        annotator: the annotator's code.
        agrees: `[n]` whether labels agree with the others', in the order of their times.
        size: how many of them are before the change.
        time: of the first one after it, in seconds since 1970.
    """

    annotator: int
    agrees: NDArray[np.bool_]
    size: int
    time: float

    @property
    def rates(self) -> tuple[float, float]:
        """The shares of labels that agree, before and after."""
        return float(self.agrees[: self.size].mean()), float(self.agrees[self.size :].mean())

    @property
    def note(self) -> str:
        """What annotators.csv says."""
        before, after = self.rates
        return f"changed: {before:.2f} to {after:.2f}"

    @property
    def date(self) -> str:
        """The day from which on the accuracy is another one."""
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (start + datetime.timedelta(seconds=self.time)).date().isoformat()

    def line(self, name: object) -> str:
        """Returns what a command prints of the annotator of this name."""
        before, after = self.rates
        return (
            f"{name} changed: {before:.2f} of {self.size:,} labels agree with the others' before"
            f" {self.date}, {after:.2f} of {len(self.agrees) - self.size:,} from then on."
        )


def changes(inference: Inference, times: Array | None) -> list[Change]:
    """Returns the annotators whose accuracy changes, by their codes.

    Labels are compared with the class for which the others' labels, weighted by skill, speak, or
    with the gold label. The change is at the most likely point of two Bernoulli rates. Given how
    many labels agree, those before it are as many as in a random order, unless the annotator has
    changed: this exact test is made within groups of items on which the others say the same class
    and agree as much, so that harder items or other classes at another time are no change. It is
    corrected for all points and annotators. If the others' agreement changes half as much on the
    same items, the change is everybody's. Annotators who have changed do not count for others,
    the clearest one first.

    Args:
        inference: of the crowd.
        times: `[A]` seconds of each label, NaN if unknown, or None.
    """
    if times is None or inference.skills is None or inference.opposed is not None:
        return []
    crowd = inference.crowd
    classes = crowd.num_classes
    if classes < 2:
        return []
    skill = np.clip(np.nan_to_num(inference.skills.skill), LEAST_SKILL, 1 - LEAST_SKILL)
    weights = np.maximum(np.log((classes - 1) * skill / (1 - skill)), 0.0)
    order = np.lexsort((times, crowd.annotators))
    order = order[np.isfinite(times[order])]
    counts = np.bincount(crowd.annotators[order], minlength=crowd.num_annotators)
    parts = np.split(order, np.cumsum(counts)[:-1])
    tested = np.flatnonzero(counts >= 2 * LEAST_SIDE)
    named: dict[int, Change] = {}
    while True:
        votes = _Votes.of(crowd, weights)
        best = FALSE_ALARMS
        clearest = None
        for code in tested.tolist():
            if code in named:
                continue
            rows, winners, against = votes.of_others(crowd, parts[code], inference.gold)
            agrees = crowd.labels[rows] == winners
            size, chance = _most_likely(agrees, times[rows], winners, against)
            if chance * len(tested) < best:
                best = chance * len(tested)
                clearest = Change(code, agrees, size, float(times[rows[size]]))
        if clearest is None:
            return [named[code] for code in sorted(named)]
        named[clearest.annotator] = clearest
        weights[clearest.annotator] = 0.0


class _Votes(NamedTuple):
    """Annotators' weights `[R]`, and `[N, C]` the sums of weights and numbers of weighed votes."""

    weights: Array
    sums: Array
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, crowd: Annotations, weights: Array) -> _Votes:
        """Returns the votes of annotators with these weights `[R]`, which are at least 0."""
        each = weights[crowd.annotators]
        shape = (crowd.num_instances, crowd.num_classes)
        cells = crowd.instances.astype(np.int64) * shape[1] + crowd.labels
        sums = np.bincount(cells, each, shape[0] * shape[1]).astype(np.float64, copy=False)
        counts = np.bincount(cells[each > 0], minlength=shape[0] * shape[1])
        return cls(weights.copy(), sums.reshape(shape), counts.reshape(shape))

    def of_others(
        self, crowd: Annotations, rows: NDArray[np.int64], gold: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Returns what the others say of the items of an annotator's labels.

        Args:
            crowd: the annotations.
            rows: `[n]` places of the labels.
            gold: `[N]` class codes, -1 if unknown.

        Returns:
            the places of the labels that can be compared with that, the class of each, and the
            share of others who say another one.
        """
        items = crowd.instances[rows]
        labels = crowd.labels[rows]
        places = np.arange(len(rows))
        each = self.weights[crowd.annotators[rows]]
        sums = self.sums[items]
        sums[places, labels] -= each
        counts = self.counts[items]
        counts[places, labels] -= np.where(each > 0, 1, 0)
        total = counts.sum(axis=1)
        highest = np.partition(sums, -2, axis=1)
        clear = highest[:, -1] - highest[:, -2] > 1e-9
        known = gold[items]
        winners = np.where(known >= 0, known, sums.argmax(axis=1))
        against = (total - counts[places, winners]) / np.maximum(total, 1)
        used = ((total >= LEAST_OTHERS) & clear) | (known >= 0)
        return rows[used], winners[used], against[used]


def _most_likely(
    agrees: NDArray[np.bool_], times: Array, winners: NDArray[np.int64], against: Array
) -> tuple[int, float]:
    """Returns the most likely change, and the probability of one as clear by chance.

    Args:
        agrees: `[n]` in the order of time.
        times: `[n]`.
        winners, against: `[n]` what the others say, see `_others`.

    Returns:
        how many labels are before it, and the probability, corrected for all points.
    """
    total = len(agrees)
    sizes = np.arange(LEAST_SIDE, total - LEAST_SIDE + 1)  # none of fewer than 20 labels
    sizes = sizes[times[sizes] > times[sizes - 1]]
    if not len(sizes):
        return 0, 1.0
    sums = np.cumsum(agrees, dtype=np.int64)
    before = sums[sizes - 1]
    after = np.asarray(sums[-1] - before)
    rest = total - sizes
    size = int(sizes[np.argmax(_likelihood(before, sizes) + _likelihood(after, rest))])
    less = float(agrees[:size].mean() - agrees[size:].mean())
    common = float(against[size:].mean() - against[:size].mean())
    if abs(less) < LEAST_CHANGE or 2 * common * np.sign(less) > abs(less):
        return size, 1.0
    groups = (LEVELS + 1) * winners + np.ceil(LEVELS * against).astype(np.int64)
    shares = np.ones(1)  # of each number of labels that agree before the change
    for group in np.unique(groups):
        inside = groups == group
        drawn = int(inside[:size].sum())
        right = int(agrees[inside].sum())
        shares = np.convolve(shares, _hypergeometric(int(inside.sum()), right, drawn))
    seen = int(sums[size - 1])
    tail = min(shares[: seen + 1].sum(), shares[seen:].sum())
    return size, float(2 * tail * len(sizes))


def _hypergeometric(total: int, right: int, drawn: int) -> Array:
    """Returns `[drawn + 1]` the probability of each number of right ones among those drawn.

    `scipy.stats` has this too, but takes long to import.
    """
    hits = np.arange(max(0, drawn + right - total), min(drawn, right) + 1)

    def ways(size: int, chosen: NDArray[np.int64] | int) -> Array:
        return np.asarray(gammaln(size + 1) - gammaln(chosen + 1) - gammaln(size - chosen + 1))

    logs = ways(right, hits) + ways(total - right, drawn - hits) - ways(total, drawn)
    shares = np.zeros(drawn + 1)
    shares[hits] = np.exp(logs)
    return shares


def _likelihood(right: NDArray[np.int64], total: NDArray[np.int64]) -> Array:
    """Returns the log likelihoods of the most likely Bernoulli rates."""
    rate = np.clip(right / total, 1e-12, 1 - 1e-12)
    return np.asarray(right * np.log(rate) + (total - right) * np.log1p(-rate))
