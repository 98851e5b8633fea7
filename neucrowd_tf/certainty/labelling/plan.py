"""Chooses items to label again, and the annotators for each."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import entr

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.labelling.belief import Belief
from neucrowd_tf.certainty.labelling.gain import Answers, most_gain
from neucrowd_tf.declare.types import Floats, Indices, Integers, Mask

# Weight of a nat of information beside gain: it orders requests that have no gain.
TIES = 1e-3
LEAST_WORTH = 1e-9
# An annotator gets at most so many times an even share of the requests.
EVEN_SHARES = 2.0
PER_TASK = 2
# The part of expected gains that was reached on public crowds: mean, 10% and 90% quantiles.
REACHED = (0.50, 0.0, 1.08)
BLOCK = 1 << 18  # numbers that are computed at once
SLACK = 1e-8  # of bounds, for rounding
# A task's best annotators are kept in order; when they are used up, all are worked out again.
RUNNERS_UP = 128


# An entry of the heap: -worth / cost, task, annotator, gain. Worths are rounded, so that equal ones
# are ordered by task.
Bid: TypeAlias = tuple[float, int, int, float]


@dataclasses.dataclass(frozen=True)
class Request:
    """One label to ask for.

    Attributes:
        task, annotator: codes.
        gain: the expected gain in the consensus' accuracy on this task, given the requests for it
            that come before.
    """

    task: int
    annotator: int
    gain: float


def worths(weights: Sequence[Floats], answers: Answers) -> tuple[Floats, Floats]:
    """Returns `[N, R]` worth and gain of each annotator's label of some tasks.

    Args:
        weights: of each task `[K, C]` probability of each outcome of the labels that are asked for
            already (one row if no label is asked for) and of each class; the sum is 1.
        answers: of R annotators.
    """
    outcomes = np.concatenate(weights)
    first = np.cumsum([0, *map(len, weights[:-1])])
    total = outcomes.sum(axis=1, keepdims=True)
    gains, nats = answers.values(outcomes / np.maximum(total, 1e-300))
    gain = np.add.reduceat(total * gains, first, axis=0)
    return gain + TIES * np.add.reduceat(total * nats, first, axis=0), gain


def make_plan(
    crowd: Annotations,
    belief: Belief,
    budget: int,
    *,
    most_each: int | None = None,
    per_task: int = PER_TASK,
    free: Mask | None = None,
    costs: Floats | None = None,
    least_gain: float = 0.0,
) -> list[Request]:
    """Chooses labels to ask for, the most worthwhile first.

    Greedy: each label is the one that is expected to raise the consensus' accuracy most, given
    those before it, per cost; if none would, the one that says most about its task.

    Args:
        crowd: the labels at hand.
        belief: what is believed because of them.
        budget: how many labels to ask for; fewer if no other is worth anything.
        most_each: the most labels per annotator; by default twice an even share, doubled while the
            budget pays for annotators who have as many, and no one else's label is worth anything.
        per_task: the most labels per task.
        free: `[R]` annotators to choose from; all by default.
        costs: `[R]` price of an annotator's label, which the budget pays; 1 by default.
        least_gain: labels with less gain per cost are not asked for.
    """
    size = crowd.num_annotators
    if free is None:
        free = np.ones(size, dtype=bool)
    if costs is None:
        costs = np.ones(size)
    is_fixed = most_each is not None
    if most_each is None:
        affordable = budget / float(costs[free].mean()) if free.any() else 0.0
        most_each = math.ceil(EVEN_SHARES * affordable / max(free.sum(), 1))
    offers = _Offers(crowd, belief, costs)
    # No label says more of a task than its class would. Tasks whose bound is below the best bid
    # need none yet.
    tasks = np.flatnonzero(crowd.annotated & (offers.open_to & free).any(axis=1))
    bounds = most_gain(belief.probas, belief.errors[free])
    bounds += TIES * entr(belief.probas).sum(axis=1) + SLACK
    bounds /= costs[free].min(initial=np.inf)
    waiting = tasks[np.argsort(-bounds[tasks], kind="stable")].tolist()
    step = max(1, BLOCK // (size * crowd.num_classes))
    load = np.zeros(size, dtype=np.int64)
    asked = np.zeros(crowd.num_instances, dtype=np.int64)
    heap = offers.heap
    plan: list[Request] = []
    remaining = budget + 1e-9
    again: list[int] = []  # tasks without a bid: all get one before the next request
    while True:
        affordable_now = free & (costs <= remaining)
        usable = affordable_now & (load < most_each)
        if not usable.any() or not (heap or again or waiting):
            if is_fixed or np.array_equal(usable, affordable_now):
                break
            most_each *= 2
            heap.clear()
            again = np.setdiff1d(tasks[asked[tasks] < per_task], waiting).tolist()
            continue
        while waiting and (not heap or -heap[0][0] <= bounds[waiting[0]]):
            offers.add(waiting[:step], free)
            waiting = waiting[step:]
        while heap and not usable[heap[0][2]] and len(again) < step:
            _, task, annotator, gain = heapq.heappop(heap)
            if gain >= least_gain * costs[annotator] and not offers.add_next(task, usable):
                again.append(task)
        if again:
            for start in range(0, len(again), step):
                offers.add(again[start : start + step], usable)
            again = []
            continue
        if not heap:
            continue
        _, task, annotator, gain = heapq.heappop(heap)
        if gain < least_gain * costs[annotator]:
            continue
        plan.append(Request(task, annotator, gain))
        remaining -= costs[annotator]
        load[annotator] += 1
        asked[task] += 1
        offers.open_to[task, annotator] = False
        if asked[task] < per_task:
            offers.ask(task, annotator)
            again.append(task)
    return plan


class _Offers:
    """The best annotator of each task, given the labels that are asked for already.

    Args:
        crowd: the labels at hand.
        belief: what is believed because of them.
        costs: `[R]` price of an annotator's label.

    Attributes:
        heap: of bids.
        open_to: `[N, R]` who could label which task.
    """

    def __init__(self, crowd: Annotations, belief: Belief, costs: Floats) -> None:
        self.heap: list[Bid] = []
        self.open_to = ~crowd.cells()
        self._costs = costs
        self._answers = Answers.of(belief.errors)
        self._errors = belief.errors
        self._weights = list(belief.probas[:, None])  # of each task, see `worths`
        # Annotators of the bids that may come next, worth and gains, the best first, by task.
        self._next: dict[int, tuple[Indices, Floats, Floats]] = {}

    def add(self, tasks: list[int], usable: Mask) -> None:
        """Adds the bid of the best usable annotator of each task, if one is worth it."""
        codes = np.flatnonzero(usable)
        worth, gains = worths([self._weights[task] for task in tasks], self._answers.at(codes))
        worth /= self._costs[codes]
        worth[~self.open_to[tasks][:, codes]] = -1.0
        place = -min(RUNNERS_UP, len(codes))
        least = np.maximum(np.partition(worth, place, axis=1)[:, place], LEAST_WORTH)
        for task, of_task, gain, limit in zip(tasks, worth, gains, least, strict=True):
            # Annotators that tie with the last one are left out; without others the best one stays.
            ranked = np.flatnonzero(of_task > limit)
            if not len(ranked) and of_task.max() > LEAST_WORTH:
                ranked = of_task.argmax(keepdims=True)
            ranked = ranked[np.argsort(-of_task[ranked], kind="stable")]
            self._next[task] = codes[ranked], of_task[ranked], gain[ranked]
            self.add_next(task, usable)

    def add_next(self, task: int, usable: Mask) -> bool:
        """Adds the bid of a task's next usable annotator; returns whether one is known."""
        annotators, worth, gains = self._next[task]
        places = np.flatnonzero(usable[annotators])
        if not len(places):
            return False
        place = int(places[0])
        order = -round(float(worth[place]), 9)
        heapq.heappush(self.heap, (order, task, int(annotators[place]), float(gains[place])))
        rest = slice(place + 1, None)
        self._next[task] = annotators[rest], worth[rest], gains[rest]
        return True

    def ask(self, task: int, annotator: int) -> None:
        """Makes later bids for a task depend on the outcomes of a label."""
        joint = self._weights[task][:, :, None] * self._errors[annotator]
        self._weights[task] = joint.transpose(0, 2, 1).reshape(-1, joint.shape[1])


def accuracy_after(now: Sequence[float], gains: Floats, size: int) -> list[float]:
    """Returns the accuracy with the labels of a plan: expected, and an 80% interval.

    Gains add up to more than what is reached, because annotators share mistakes. How much more
    was measured on public crowds (results/relabel.csv; results/studies.csv has the command).

    Args:
        now: the accuracy without them, and its interval.
        gains: of the requests.
        size: number of items with labels.
    """
    total = float(gains.sum()) / max(size, 1)
    return [min(value + share * total, 1.0) for value, share in zip(now, REACHED, strict=True)]


def reason(crowd: Annotations, belief: Belief, votes: Integers, request: Request) -> str:
    """Says in words why a label is asked for.

    Args:
        crowd: the labels at hand.
        belief: what is believed because of them.
        votes: `[N, C]` how often each task was given each class.
        request: the label.
    """
    names = [repr(str(name)) for name in crowd.class_names.tolist()]
    probas = belief.probas[request.task]
    errors = belief.errors[request.annotator]
    counts = votes[request.task]
    named = []
    for code in np.argsort(-counts, kind="stable"):
        if counts[code]:
            named.append(f"{counts[code]} {names[code]}")
    likely = []
    right = []
    for code in np.argsort(-probas, kind="stable")[:2]:
        likely.append(f"{names[code]} ({probas[code]:.0%})")
        right.append(f"{names[code]} {errors[code, code]:.0%}")
    return (
        f"labels: {', '.join(named)}; likely {' or '.join(likely)}; asked since right on"
        f" {', '.join(right)}"
    )
