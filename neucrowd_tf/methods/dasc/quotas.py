"""How many pseudo-annotations of each class are taken in a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats, Floats32, Indices


def fractions(counts: ArrayLike) -> Floats:
    """Returns tau `[C]`, inversely proportional to the counts of the classes, summing to one.

    A class that no pseudo-annotation has (N'_c = 0) gets 0; where no class has any, all get 0.

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


def rounded(shares: Array, total: int) -> Indices:
    """Returns whole numbers `[C]` near `shares * total` that sum to `total`.

    They lie within one of it: the largest remainders are rounded up.
    """
    exact = np.asarray(shares, dtype=np.float64) * total
    floors = np.floor(exact + 1e-9).astype(np.int64)
    remaining = total - int(floors.sum())
    if remaining > 0:
        eligible = np.flatnonzero(np.asarray(shares) > 0)
        order = eligible[np.argsort(-(exact - floors)[eligible], kind="stable")]
        floors[order[:remaining]] += 1
    return floors


def allocate(
    shares: ArrayLike, available: ArrayLike, total: int, *, hand_on: bool = True
) -> Indices:
    """Returns how many of each class are taken: `shares * total`, never more than there are.

    What a class cannot fill goes to the others, in proportion to their shares (to their numbers
    where no share is left), so that the result sums to `total`, or to all that there are.

    Args:
        shares: `[C]` from 0, eq. 4's fractions, say.
        available: `[C]` candidates of each class.
        total: M, how many are wanted.
        hand_on: False takes fewer instead of handing to others what a class cannot fill.

    References:
        DASC, eq. 3.
    """
    # Deviation: DASC eq. 3. Paper: M_c = tau_c M. Here: Rounded by largest remainders; what a class
    # cannot fill goes to the others by their fractions (`hand_on=False`: to none). Why: Rare
    # classes have fewer candidates than M_c. Effect: claim dasc_hand_on.
    room = np.asarray(available, dtype=np.int64)
    wanted = np.asarray(shares, dtype=np.float64)
    taken = np.zeros_like(room)
    left = min(int(total), int(room.sum()))
    if not hand_on:
        return np.minimum(rounded(wanted, int(total)), room)
    while left > 0:
        open_ = room > taken
        weights = np.where(open_, wanted, 0.0)
        if weights.sum() <= 0:
            weights = np.where(open_, (room - taken).astype(np.float64), 0.0)
        step = np.minimum(rounded(weights / weights.sum(), left), room - taken)
        taken += step
        left -= int(step.sum())
    return taken


def generated_counts(labels: Array, observed: Annotations) -> Indices:
    """Returns N'_c `[C]`: how many of all generated pseudo-annotations say class c.

    Args:
        labels: `[N, R]` what each annotator is predicted to answer.
        observed: the annotations that there are; no pseudo-annotation stands in for these.

    References:
        DASC, section 3.2, eq. 4 ("among all the generated pseudo-annotations").
    """
    classes = observed.num_classes
    counts = np.zeros(classes, dtype=np.int64)
    for start in range(0, len(labels), 65_536):
        counts += np.bincount(labels[start : start + 65_536].ravel(), minlength=classes)
    there = labels[observed.instances, observed.annotators]
    return counts - np.bincount(there, minlength=classes)


def fill_lost_classes(labels: Array, entropies: Floats32, observed: Annotations) -> list[int]:
    """Gives pseudo-annotations to classes that annotators use and the model has lost, in place.

    On the instances whose annotators agree most on such a class, all cells get it. The model's
    probabilities say nothing of these cells, so they get the largest entropy.

    Args:
        labels: `[N, R]` pseudo-annotations.
        entropies: `[N, R]` how uncertain they are.
        observed: the annotations that there are.

    Returns:
        the codes of these classes.
    """
    # Deviation: DASC eq. 4. Paper: A class without generated pseudo-annotations is never asked for
    # again. Here: A class that the crowd names and the model has lost keeps a quota. Why:
    # Self-training would keep it lost. Effect: not measured.
    votes = observed.vote_counts()
    named = votes.sum(axis=0) > 0
    lost = np.flatnonzero(named & (generated_counts(labels, observed) <= 0))
    shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
    for code in lost:
        best = np.flatnonzero(shares[:, code] == shares[:, code].max())
        labels[best], entropies[best] = code, np.log(len(named))
    return list(map(int, lost))
