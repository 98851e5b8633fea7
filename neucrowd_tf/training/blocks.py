"""Predicting in blocks of rows, so that memory does not grow with the number of instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 4096


def in_blocks(
    function: Callable[[NDArray[Any]], Any], features: NDArray[Any], rows: int = ROWS
) -> NDArray[Any]:
    """Returns `function` of `[M, ...]` features, computed on at most `rows` of them at a time.

    Without features it is called once with none, which gives the result its shape.
    """
    starts = range(0, max(len(features), 1), rows)
    return np.concatenate(
        [np.asarray(function(features[start : start + rows])) for start in starts]
    )
