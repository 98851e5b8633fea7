"""Nearest neighbours, by scikit-learn, without threads where starting them costs more than the
search.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from sklearn.neighbors import NearestNeighbors
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Multiplications below which one thread is quicker: a search of 700 rows among 700 with 64 numbers
# each has 3e7.
_SMALL = 1 << 28


@functools.cache
def _controller() -> ThreadpoolController:
    """Looking through the loaded libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()


def nearest(
    points: NDArray[np.float32], queries: NDArray[np.float32] | None, k: int
) -> NDArray[np.int64]:
    """Returns the rows `[M, k]` of the `points` `[N, h]` nearest to each of the `queries` `[M, h]`,
    nearest first.

    Args:
        queries: None asks for the neighbours of the points among each other, a point itself (not
            others at its place) excluded.
        k: shrunk to N, or to N - 1 without queries, where there are fewer.

    References:
        ICED, section 2.4 (the neighbours of candidates, and of synthetic embeddings).
    """
    size = len(points)
    work = points.size * (size if queries is None else len(queries))
    limited: Any = _controller().limit(limits=1) if work <= _SMALL else contextlib.nullcontext()
    search = NearestNeighbors(n_neighbors=min(k, size - (queries is None)))
    with limited:
        rows: NDArray[np.int64] = search.fit(points).kneighbors(queries, return_distance=False)
    return rows
