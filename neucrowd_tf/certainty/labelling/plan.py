"""Chooses items to label again, and the annotators for each."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.labelling.belief import Belief
from neucrowd_tf.certainty.labelling.gain import Answers

# What information counts for beside gain: it orders the requests whose gain is nothing.
TIES = 1e-3
LEAST_WORTH = 1e-9
# An annotator gets at most so many times an even share of the requests.
EVEN_SHARES = 2.0
PER_TASK = 2
# The part of expected gains that was reached on public crowds: mean, 10% and 90% quantiles.
REACHED = (0.50, 0.0, 1.08)
BLOCK = 1 << 18  # numbers that are computed at once
SLACK = 1e-8  # of bounds, for rounding


# An entry of the heap: -worth / cost, task, annotator, gain. Equal worths, but for the last digits,
# are ordered by item.
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


def worths(
    weights: Sequence[NDArray[np.float64]], answers: Answers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    free: NDArray[np.bool_] | None = None,
    costs: NDArray[np.float64] | None = None,
    least_gain: float = 0.0,
) -> list[Request]:
    """Chooses labels to ask for, the most worthwhile first.

    Greedy: each label is the one that is expected to raise the consensus' accuracy most, given
    those before it, per cost; if none would, the one that says most about its task.

    Args:
        crowd: the labels at hand.
        belief: what is believed because of them.
        budget: how many labels to ask for; fewer if no other is worth anything.
        most_each: the most labels per annotator; by default twice an even share.
        per_task: the most labels per task.
        free: `[R]` annotators to choose from; all by default.
        costs: `[R]` price of an annotator's label, which the budget pays; 1 by default.
        least_gain: labels with less gain per cost are not asked for.
    """
    size = crowd.num_annotators
    if free is None:
        can = np.ones(size, dtype=bool)
    else:
        can = free
    if costs is None:
        price = np.ones(size)
    else:
        price = costs
    # that the budget pays for
    if can.any():
        labels = budget / float(price[can].mean())
    else:
        labels = 0.0
    if most_each is None:
        cap = math.ceil(EVEN_SHARES * labels / max(can.sum(), 1))
    else:
        cap = most_each
    open_to = np.tile(can, (crowd.num_instances, 1))
    open_to[crowd.instances, crowd.annotators] = False
    weights = list(belief.probas[:, None])  # of each task, see `worths`
    load, asked = (np.zeros(length, dtype=np.int64) for length in (size, crowd.num_instances))
    answers = Answers.of(belief.errors)
    step = max(1, BLOCK // (size * crowd.num_classes))

    def bids(tasks: list[int], usable: NDArray[np.bool_]) -> list[Bid]:
        """Returns the best usable annotator of each task, if there is one that is worth it."""
        codes = np.flatnonzero(usable)
        worth, gains = worths([weights[task] for task in tasks], answers.at(codes))
        worth /= price[codes]
        worth[~open_to[np.ix_(np.asarray(tasks), codes)]] = -1.0
        best = worth.argmax(axis=1).tolist()
        return [
            (-round(float(worth[row, r]), 9), task, int(codes[r]), float(gains[row, r]))
            for row, (task, r) in enumerate(zip(tasks, best, strict=True))
            if worth[row, r] > LEAST_WORTH
        ]

    # No label makes a consensus righter than right, or says more of a task than its class would:
    # tasks whose bound is below the best bid need none yet.
    tasks = np.flatnonzero(crowd.annotated & open_to.any(axis=1))
    bounds = 1.0 - belief.probas.max(axis=1) + TIES * entr(belief.probas).sum(axis=1) + SLACK
    bounds /= price[can].min(initial=np.inf)
    waiting = tasks[np.argsort(-bounds[tasks], kind="stable")].tolist()
    heap: list[Bid] = []
    plan: list[Request] = []
    remaining = budget + 1e-9
    again: list[int] = []  # tasks without a bid: all get one before the next request
    while heap or again or waiting:
        usable = can & (load < cap) & (price <= remaining)
        if not usable.any():
            break
        while waiting and (not heap or -heap[0][0] <= bounds[waiting[0]]):
            for bid in bids(waiting[:step], can):
                heapq.heappush(heap, bid)
            waiting = waiting[step:]
        while heap and not usable[heap[0][2]] and len(again) < step:
            _, task, annotator, gain = heapq.heappop(heap)
            if gain >= least_gain * price[annotator]:
                again.append(task)
        if again:
            for bid in bids(again, usable):
                heapq.heappush(heap, bid)
            again = []
            continue
        if not heap:
            break
        _, task, annotator, gain = heapq.heappop(heap)
        if gain < least_gain * price[annotator]:
            continue
        remaining -= price[annotator]
        plan.append(Request(task, annotator, gain))
        open_to[task, annotator] = False
        load[annotator] += 1
        asked[task] += 1
        if asked[task] < per_task:
            joint = weights[task][:, :, None] * belief.errors[annotator]
            weights[task] = joint.transpose(0, 2, 1).reshape(-1, crowd.num_classes)
            again.append(task)
    return plan


def accuracy_after(now: Sequence[float], gains: NDArray[np.float64], size: int) -> list[float]:
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


def reason(
    crowd: Annotations, belief: Belief, votes: NDArray[np.integer[Any]], request: Request
) -> str:
    """Says in words why a label is asked for.

    Args:
        crowd: the labels at hand.
        belief: what is believed because of them.
        votes: `[N, C]` how often each task was given each class.
        request: the label.
    """
    names = [str(name) for name in crowd.class_names.tolist()]
    row = belief.probas[request.task]
    counts = votes[request.task]
    likely = np.argsort(-row, kind="stable")[:2].tolist()
    votes_text = ", ".join(
        f"{int(counts[c])} {names[c]!r}" for c in np.argsort(-counts, kind="stable") if counts[c]
    )
    belief_said = " or ".join(f"{names[c]!r} ({row[c]:.0%})" for c in likely)
    error = belief.errors[request.annotator]
    right = ", ".join(f"{names[c]!r} {error[c, c]:.0%}" for c in likely)
    return f"labels: {votes_text}; likely {belief_said}; asked since right on {right}"
