"""The class that most annotators gave, with a named and seeded rule for ties."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from neucrowd_tf.declare.types import Array, Estimator, Indices
from neucrowd_tf.errors import UsageError

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
Ties: TypeAlias = Literal["random", "first", "prior"]


def majority_labels(votes: Array, ties: Ties = "random", seed: int = 0) -> Indices:
    """Returns `[N]` the class with the most votes of each row of `votes` `[N, C]`.

    Args:
        votes: `[N, C]` numbers of votes, or weights from 0.
        ties: "random" draws among the tied classes with `seed`; "first" takes the lowest code;
            "prior" takes the tied class that has the most votes over all rows (the lowest code if
            that is tied too).
        seed: for "random".

    A row without votes gets the class with the most votes over all rows, whatever the rule.
    """
    if ties not in ("random", "first", "prior"):
        raise UsageError(f"ties: expected 'random', 'first' or 'prior', received {ties!r}")
    labels = votes.argmax(axis=1)
    total = votes.sum(axis=0)
    top = votes.max(axis=1, initial=0)
    labels[top == 0] = total.argmax()
    if ties == "first":
        return labels
    is_top = votes == top[:, None]
    tied = np.flatnonzero((is_top.sum(axis=1) > 1) & (top > 0))
    # The highest of one number a class wins; numbers in (0, 1] keep untied classes (0) out.
    if ties == "random":
        rank = 1.0 - np.random.default_rng([seed, 0]).random((len(tied), votes.shape[1]))
    else:
        rank = (total + 1.0) / (total.max() + 1.0)
    labels[tied] = (is_top[tied] * rank).argmax(axis=1)
    return labels


def medians(probas: Array) -> Indices:
    """Returns `[N]` the middle class of distributions `[N, C]`: of least expected distance."""
    return np.asarray((np.cumsum(probas, axis=1) < 0.5 - 1e-9).sum(axis=1))


def scale_of(estimator: Estimator) -> Scale:
    """Returns the scale of the classes that an estimator predicts."""
    scale: Scale = getattr(estimator, "scale", "nominal")
    return scale


def decided(probas: Array, scale: str) -> Indices:
    """Returns `[N]` the predicted classes: the most probable, or of ordered classes the medians."""
    if scale == "ordinal":
        return medians(probas)
    return np.asarray(probas.argmax(axis=1))
