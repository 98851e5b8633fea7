"""Label certainty: how far the annotators of an instance agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    shares = np.divide(
        counts, cast, out=np.full_like(counts, 1.0 / counts.shape[1]), where=cast > 0
    )
    variance = np.maximum(1.0 - np.square(shares).sum(axis=1), 0.0)
    certainty: NDArray[np.float64] = 1.0 / (variance + epsilon)
    return certainty
