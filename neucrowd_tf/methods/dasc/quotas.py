"""How many pseudo-annotations of each class are taken in a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Array, Floats, Floats32, Indices, Integers, Mask

_ROWS = 65_536  # whose labels are counted at once


def fractions(counts: ArrayLike) -> Floats:
    """Returns tau `[C]`, inversely proportional to the counts of the classes, summing to one.

    A class without pseudo-annotations (N'_c = 0) gets 0; if no class has any, all get 0.

    Args:
        counts: `[C]` N'_c.

    References:
        DASC, eq. 4.
    """
    # Deviation: DASC eq. 4. Paper: 1 / N'_c, over all generated pseudo-annotations. Here: The same;
    # of a class with N'_c = 0 that the crowd names, all cells of the instances that it agrees on
    # most as such are taken to be generated; of one that it does not name, none. Why: Undefined; a
    # class that a round lost would never be asked for again. Effect: not measured.
    n = np.asarray(counts, dtype=np.float64)
    inverse = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
    total = inverse.sum()
    if total > 0:
        return inverse / total
    return inverse


def rounded(shares: ArrayLike, total: int) -> Indices:
    """Returns whole numbers `[C]` within one of `shares * total`, which sum to `total`.

    The largest remainders are rounded up.

    Args:
        shares: `[C]` from 0, which sum to one.
        total: their sum in whole numbers.
    """
    exact = np.asarray(shares, dtype=np.float64) * total
    floors = np.floor(exact + 1e-9).astype(np.int64)
    remaining = total - int(floors.sum())
    if remaining > 0:
        eligible = np.flatnonzero(exact > 0)
        order = eligible[np.argsort(-(exact - floors)[eligible], kind="stable")]
        floors[order[:remaining]] += 1
    return floors


def allocate(
    shares: ArrayLike, available: ArrayLike, total: int, *, hand_on: bool = True
) -> Indices:
    """Returns how many of each class are taken: `shares * total`, at most the available ones.

    What a class cannot fill goes to the others, in proportion to their shares, or to their
    remaining candidates if no share is left. The result sums to `total`, or to all candidates.

    Args:
        shares: `[C]` from 0, such as eq. 4's fractions.
        available: `[C]` candidates of each class.
        total: M.
        hand_on: whether other classes get what a class cannot fill; False takes fewer.

    Returns:
        `[C]` counts.

    References:
        DASC, eq. 3.
    """
    # Deviation: DASC eq. 3. Paper: M_c = tau_c M. Here: Rounded by largest remainders; what a class
    # cannot fill goes to the others by their fractions (`hand_on=False`: to none). Why: Rare
    # classes have fewer candidates than M_c. Effect: claim dasc_hand_on.
    room = np.asarray(available, dtype=np.int64)
    if not hand_on:
        return np.minimum(rounded(shares, total), room)
    taken = np.zeros_like(room)
    remaining = min(total, int(room.sum()))
    while remaining > 0:
        weights = np.where(room > taken, shares, 0.0)
        if weights.sum() <= 0:
            weights = room - taken
        step = np.minimum(rounded(weights / weights.sum(), remaining), room - taken)
        taken += step
        remaining -= int(step.sum())
    return taken


def generated_counts(labels: Array, observed: Mask, num_classes: int) -> Indices:
    """Returns N'_c `[C]`: how many of all generated pseudo-annotations have class c.

    Args:
        labels: `[N, R]` the most probable label of each annotator.
        observed: `[N, R]` True if there is an annotation: such a cell gets no pseudo-annotation.
        num_classes: C.

    References:
        DASC, section 3.2, eq. 4 ("among all the generated pseudo-annotations").
    """
    counts = np.zeros(num_classes, dtype=np.int64)
    for start in range(0, len(labels), _ROWS):
        block = slice(start, start + _ROWS)
        counts += np.bincount(labels[block][~observed[block]], minlength=num_classes)
    return counts


def fill_lost_classes(
    labels: Array, entropies: Floats32, observed: Mask, votes: Integers
) -> list[int]:
    """Gives pseudo-annotations to classes that annotators use and the model has lost, in place.

    On the instances with empty cells whose annotators agree most on such a class, every empty cell
    gets it. The model's probabilities say nothing of these cells, so they get the largest entropy.

    Args:
        labels: `[N, R]` pseudo-annotations.
        entropies: `[N, R]` how uncertain they are.
        observed: `[N, R]` True if there is an annotation.
        votes: `[N, C]` annotations of each class.

    Returns:
        The codes of these classes.
    """
    # Deviation: DASC eq. 4. Paper: A class without generated pseudo-annotations is never asked for
    # again. Here: A class that the crowd names and the model has lost keeps a quota. Why:
    # Self-training would keep it lost. Effect: not measured.
    named = votes.sum(axis=0) > 0
    lost = np.flatnonzero(named & (generated_counts(labels, observed, len(named)) == 0))
    shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
    free = ~observed.all(axis=1)  # an instance is given to one class
    for code in lost:
        best = free & (shares[:, code] == shares[free, code].max(initial=0.0))
        best &= shares[:, code] > 0
        labels[best] = code
        entropies[best] = np.log(len(named))
        free &= ~best
    return list(map(int, lost))
