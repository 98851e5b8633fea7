"""Label certainty: how far the annotators of an instance agree, and the warm-up that begins with
those who agree most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOP_GROUPS = 3


def label_certainty(votes: NDArray[Any], epsilon: float = 0.01) -> NDArray[np.float64]:
    """Returns the label certainty score `[N]` of vote counts `[N, C]`: `1 / (1 - sum_c p_c ** 2 +
    epsilon)`.

    With labels as one-hot vectors y, `E ||y - E y||^2 = 1 - sum_c p_c ** 2`, where p are the shares
    of the votes: 0 when all annotators agree, largest when the votes are spread evenly. An instance
    without votes scores as one with evenly spread votes.

    Args:
        votes: counts from 0.
        epsilon: above 0; the certainty of a unanimous instance is its inverse.

    Raises:
        UsageError: epsilon is not above 0.

    References:
        ICED, definition 2 and equation 2.4.
    """
    # Deviation: the variance is that of one-hot labels, so that it means the same for C classes.
    if not epsilon > 0:
        raise UsageError(f"epsilon: expected a number above 0, received {epsilon!r}")
    counts = np.asarray(votes, dtype=np.float64)
    cast = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1.0 / counts.shape[1])
    shares = np.divide(counts, cast, out=even, where=cast > 0)
    variance = np.maximum(1.0 - np.square(shares).sum(axis=1), 0.0)
    certainty: NDArray[np.float64] = 1.0 / (variance + epsilon)
    return certainty


def certainty_groups(certainty: NDArray[Any], top: int = TOP_GROUPS) -> NDArray[np.int64]:
    """Returns `[N]` 1 for the highest certainty that occurs, 2 for the second highest and so on;
    `top + 1` for the low rest.

    Groups are distinct values, not quantiles: W annotators of two classes know only W // 2 + 1 of
    them. Where fewer than `top` values occur, the later groups are empty.

    References:
        ICED, section 2.5 (four groups; algorithm 2 with the details is in an appendix that is not
        published).
    """
    values = np.asarray(certainty, dtype=np.float64)
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    ordered = np.sort(np.unique(values))[::-1]
    # Values that differ by rounding alone are one level.
    breaks = np.concatenate([[False], ordered[1:] < ordered[:-1] * (1 - 1e-9)])
    levels = np.cumsum(breaks)
    level = levels[len(ordered) - 1 - np.searchsorted(ordered[::-1], values)]
    return np.minimum(level + 1, top + 1).astype(np.int64)


def warm_up_schedule(
    strategy: str, groups: NDArray[np.int64], epochs: int, top: int = TOP_GROUPS
) -> list[NDArray[np.int64]]:
    """Returns the rows that each epoch of warm-up trains on.

    Args:
        strategy: "groups" (ICED-w: the third-highest group first, then the second-highest, then the
            highest), "cumulative" (the same order, each group together with those before it),
            "all" (Trad-I: every instance), "top" (Trad-II: the three groups at once) or "none".
        groups: `[N]` from `certainty_groups`.
        epochs: of the whole warm-up; "groups" and "cumulative" give each group its third, the
            earlier ones one more
            where it does not divide.

    Raises:
        UsageError: another strategy.

    References:
        ICED, sections 2.5 and 3.4, algorithm 2 (not published).
    """
    rows = np.arange(len(groups))
    if strategy == "all":
        return [rows] * epochs
    if strategy == "top":
        return [rows[groups <= top]] * epochs
    if strategy == "none":
        return []
    if strategy not in ("groups", "cumulative"):
        raise UsageError(
            "warm_up: expected 'groups', 'cumulative', 'all', 'top' or 'none', received"
            f" {strategy!r}"
        )
    present = [part for group in range(top, 0, -1) if len(part := rows[groups == group])]
    if strategy == "cumulative":
        present = [np.concatenate(present[: index + 1]) for index in range(len(present))]
    shares = [len(share) for share in np.array_split(np.arange(epochs), len(present))]
    return [part for part, share in zip(present, shares, strict=True) for _ in range(share)]


def class_mix(
    groups: NDArray[np.int64], labels: NDArray[np.integer[Any]], num_classes: int
) -> NDArray[np.int64]:
    """Returns `[groups, C]` how many instances of each certainty group, the surest first, have each
    label: a group of nearly one class teaches the classifier that class alone.
    """
    cells = np.zeros((int(groups.max(initial=0)), num_classes), dtype=np.int64)
    np.add.at(cells, (groups - 1, labels), 1)
    return cells


def evened_rows(
    rows: NDArray[np.int64], labels: NDArray[np.integer[Any]], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Returns `rows` with as many more, drawn from the rarer classes, as make those that occur
    equally large.

    Args:
        rows: of one epoch.
        labels: `[N]` of all instances.
        rng: draws which rows are repeated.
    """
    classes, counts = np.unique(labels[rows], return_counts=True)
    more = [
        rng.choice(rows[labels[rows] == code], int(counts.max() - count))
        for code, count in zip(classes, counts, strict=True)
    ]
    return np.concatenate([rows, *more])
