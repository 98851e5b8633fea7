"""How many pseudo-annotations of each class are taken in a round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def fractions(counts: ArrayLike) -> NDArray[np.float64]:
    """Returns tau `[C]`: inversely proportional to the number of pseudo-annotations of each class,
    summing to one.

    A class that no pseudo-annotation has (N'_c = 0) gets 0; where no class has any, all get 0.

    Args:
        counts: `[C]` N'_c.

    References:
        DASC, eq. 4.
    """
    # Deviation: eq. 4 is undefined for N'_c = 0.
    n = np.asarray(counts, dtype=np.float64)
    inverse = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
    total = inverse.sum()
    return inverse / total if total > 0 else inverse


def rounded(shares: NDArray[Any], total: int) -> NDArray[np.int64]:
    """Returns whole numbers `[C]` that sum to `total` and lie within one of `shares * total`: the
    largest remainders are rounded up.
    """
    exact = np.asarray(shares, dtype=np.float64) * total
    whole = np.floor(exact + 1e-9).astype(np.int64)
    left = total - int(whole.sum())
    if left > 0:
        eligible = np.flatnonzero(np.asarray(shares) > 0)
        order = eligible[np.argsort(-(exact - whole)[eligible], kind="stable")]
        whole[order[:left]] += 1
    return whole


def allocate(shares: ArrayLike, available: ArrayLike, total: int) -> NDArray[np.int64]:
    """Returns how many of each class are taken: `shares * total`, never more than there are.

    What a class cannot fill goes to the others, in proportion to their shares (to their numbers
    where no share is left), so that the result sums to `total`, or to all that there are.

    Args:
        shares: `[C]` from 0, eq. 4's fractions, say.
        available: `[C]` candidates of each class.
        total: M, how many are wanted.

    References:
        DASC, eq. 3.
    """
    # Deviation: eq. 3 may ask for more of a rare class than was predicted; the paper does not say
    # what happens to the rest.
    room = np.asarray(available, dtype=np.int64)
    wanted = np.asarray(shares, dtype=np.float64)
    taken = np.zeros_like(room)
    left = min(int(total), int(room.sum()))
    while left > 0:
        open_ = room > taken
        weights = np.where(open_, wanted, 0.0)
        if weights.sum() <= 0:
            weights = np.where(open_, (room - taken).astype(np.float64), 0.0)
        step = np.minimum(rounded(weights / weights.sum(), left), room - taken)
        taken += step
        left -= int(step.sum())
    return taken
