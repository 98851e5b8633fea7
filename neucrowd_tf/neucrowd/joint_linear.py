"""The linear classifier of `neucrowd_joint`, and the posterior it is trained against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import KFold, StratifiedKFold

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.neucrowd.posterior import crowd_posterior, refreshed_posterior
from neucrowd_tf.training.linear import soft_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = tuple[NDArray[Any], NDArray[Any]]  # features and class probabilities

_PATIENCE = 3  # strengths in a row that are worse than the best before weaker ones are left


def fold_rows(labels: NDArray[np.integer[Any]], folds: int, seed: int) -> list[NDArray[np.intp]]:
    """Returns the rows of each fold; empty for fewer than two instances."""
    count = min(folds, len(labels))
    if count < 2:
        return []
    counts = np.bincount(labels)
    stratified = counts[counts > 0].min() >= count
    splitter: Any = (StratifiedKFold if stratified else KFold)(
        count, shuffle=True, random_state=seed
    )
    return [part for _, part in splitter.split(labels, labels)]


def linear_stage(
    x: NDArray[Any],
    crowd: Annotations,
    held: Rows | None,
    parts: list[NDArray[np.intp]],
    Cs: Sequence[float],
    rounds: int,
) -> dict[str, NDArray[Any]]:
    """Returns the last `posterior` `[N, C]`, the `left_out` logits `[N, C]` of each instance from
    the classifier that was trained without it, and the `strength` that was chosen.

    Args:
        x: `[N, d]` features, standardised.
        held: validation features and one-hot labels, or None.
        parts: rows of each fold.
        Cs: strengths to choose from, once; the rounds keep it.
        rounds: how often the posterior is estimated anew, where annotators are known.

    References:
        Raykar et al. (2010), Learning from crowds, section 2.4.
    """
    posterior = crowd_posterior(crowd)
    strength, left_out = choose_strength(x, posterior, held, parts, Cs)
    for _ in range(rounds if crowd.has_identities else 0):
        predicted = np.exp(log_softmax(left_out, axis=1))
        posterior = refreshed_posterior(crowd, posterior, predicted)
        _, left_out = choose_strength(x, posterior, None, parts, [strength])
    return {"posterior": posterior, "left_out": left_out, "strength": np.array(strength)}


def choose_strength(
    x: NDArray[Any],
    posterior: NDArray[Any],
    held: Rows | None,
    parts: list[NDArray[np.intp]],
    Cs: Sequence[float],
) -> tuple[float, NDArray[np.float64]]:
    """Returns the strength with the least log loss on left-out and held-out rows, and the logits of
    left-out rows.
    """
    every = np.arange(len(x))
    paths = [
        soft_path(x[rest], posterior[rest], Cs)
        for rest in (np.setdiff1d(every, part) for part in parts)
    ]
    whole = soft_path(x, posterior, Cs) if held is not None else None
    losses: list[float] = []
    best = Cs[0], np.log(np.maximum(posterior, 1e-4))
    for strength in Cs:
        logits = np.zeros(posterior.shape)
        for part, path in zip(parts, paths, strict=True):
            kernel, bias = next(path)
            logits[part] = x[part] @ kernel + bias
        loss = entropy(posterior, logits) if parts else 0.0
        if held is not None and whole is not None:
            kernel, bias = next(whole)
            loss += entropy(held[1], held[0] @ kernel + bias)
        if parts and (not losses or loss < min(losses)):
            best = strength, logits
        losses.append(loss)
        if len(losses) - 1 - int(np.argmin(losses)) >= _PATIENCE:
            break
    return best


def entropy(targets: NDArray[Any], logits: NDArray[Any]) -> float:
    """Returns the cross-entropy, summed over rows."""
    return float(-(targets * log_softmax(logits, axis=1)).sum())
