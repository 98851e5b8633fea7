"""Rows drawn at random whose classes have the shares of the whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Indices


def stratified_sample(labels: ArrayLike, size: int, seed: int, stream: int = 0) -> Indices:
    """Draws `size` row numbers, stratified by class.

    A class with a single row is accepted.

    Each class's rows are shuffled and spread evenly over (0, 1); the rows with the smallest numbers
    are drawn.

    Args:
        labels: `[N]` codes.
        size: how many, at most N.
        seed, stream: of the draw.

    Returns:
        sorted row numbers.
    """
    codes = np.asarray(labels)
    generator = np.random.default_rng([seed, 0xDA7A, 1, stream])
    keys = np.empty(len(codes))
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        keys[rows] = (generator.permutation(len(rows)) + generator.random()) / len(rows)
    return np.sort(np.argsort(keys, kind="stable")[:size])
