"""Chooses items to label again, and the annotators for each."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    weights: NDArray[np.float64], answers: Answers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns `[R]` worth and gain of each annotator's label of one task.

    Args:
        weights: `[K, C]` probability of each outcome of the labels that are asked for already (one
            row if no label is asked for) and of each class; the sum is 1.
        answers: of R annotators.
    """
    total = weights.sum(axis=1, keepdims=True)
    gains, nats = answers.values(weights / np.maximum(total, 1e-300))
    gain = (total * gains).sum(axis=0)
    return gain + TIES * (total * nats).sum(axis=0), gain


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
    heap = _first_bids(belief.probas, answers, open_to, crowd, price)
    plan: list[Request] = []
    remaining = budget + 1e-9
    while heap and remaining >= price[can].min():
        _, task, annotator, gain = heapq.heappop(heap)
        if gain < least_gain * price[annotator]:
            continue
        if load[annotator] < cap and price[annotator] <= remaining:
            remaining -= price[annotator]
            plan.append(Request(task, annotator, gain))
            open_to[task, annotator] = False
            load[annotator] += 1
            asked[task] += 1
            if asked[task] >= per_task:
                continue
            joint = weights[task][:, :, None] * belief.errors[annotator]
            weights[task] = joint.transpose(0, 2, 1).reshape(-1, crowd.num_classes)
        candidates = np.flatnonzero(open_to[task] & (load < cap) & (price <= remaining))
        if len(candidates):
            worth, gains = worths(weights[task], answers.at(candidates))
            worth = worth / price[candidates]
            best = int(worth.argmax())
            if worth[best] > LEAST_WORTH:
                heapq.heappush(heap, _bid(worth[best], task, int(candidates[best]), gains[best]))
    return plan


def _bid(
    worth: np.float64, task: int, annotator: int, gain: np.float64
) -> tuple[float, int, int, float]:
    """Returns an entry of the heap. Equal worths, but for the last digits, are ordered by item."""
    return -round(float(worth), 9), task, annotator, float(gain)


def _first_bids(
    probas: NDArray[np.float64],
    answers: Answers,
    open_to: NDArray[np.bool_],
    crowd: Annotations,
    price: NDArray[np.float64],
) -> list[tuple[float, int, int, float]]:
    """Returns the best annotator of each task as a heap: -worth / cost, task, annotator, gain."""
    heap: list[tuple[float, int, int, float]] = []
    tasks = np.flatnonzero(crowd.annotated & open_to.any(axis=1))
    cells = crowd.num_annotators * crowd.num_classes
    step = max(1, BLOCK // cells)
    for start in range(0, len(tasks), step):
        block = tasks[start : start + step]
        gain, nats = answers.values(probas[block])
        worth = (gain + TIES * nats) / price
        worth[~open_to[block]] = -1.0
        best = worth.argmax(axis=1)
        for row, (task, r) in enumerate(zip(block.tolist(), best.tolist(), strict=True)):
            if worth[row, r] > LEAST_WORTH:
                heap.append(_bid(worth[row, r], task, r, gain[row, r]))
    heapq.heapify(heap)
    return heap


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
