"""Warm-up training: which instances the classifier sees first, by the certainty of their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WarmUp = Literal["groups", "all", "top", "none"]
TOP_GROUPS = 3


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
    strategy: WarmUp, groups: NDArray[np.int64], epochs: int, top: int = TOP_GROUPS
) -> list[NDArray[np.int64]]:
    """Returns the rows that each epoch of warm-up trains on.

    Args:
        strategy: "groups" (ICED-w: the third-highest group first, then the second-highest, then the
            highest), "all" (Trad-I: every instance), "top" (Trad-II: the three groups at once) or
            "none".
        groups: `[N]` from `certainty_groups`.
        epochs: of the whole warm-up; "groups" gives each group its third, the earlier ones one more
            where it does not divide.

    Raises:
        UsageError: another strategy.

    References:
        ICED, sections 2.5 and 3.4.
    """
    if strategy not in ("groups", "all", "top", "none"):
        raise UsageError(
            f"warm_up: expected 'groups', 'all', 'top' or 'none', received {strategy!r}"
        )
    if strategy == "none" or epochs <= 0:
        return []
    if strategy == "all":
        return [np.arange(len(groups))] * epochs
    if strategy == "top":
        return [np.flatnonzero(groups <= top)] * epochs
    present = [rows for group in range(top, 0, -1) if len(rows := np.flatnonzero(groups == group))]
    shares = [len(part) for part in np.array_split(np.arange(epochs), len(present))]
    return [rows for rows, share in zip(present, shares, strict=True) for _ in range(share)]
