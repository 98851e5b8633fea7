"""Splits of datasets with a simulated crowd.

Splits are stratified. The module decides which labels each split may hold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets.core import Card, CrowdDataset, Split
from neucrowd_tf.datasets.splits import stratified_sample
from neucrowd_tf.declare.types import Array, Indices


def sklearn_seed(seed: int, *stream: int) -> int:
    """Returns a seed for scikit-learn's functions.

    Different streams of one seed are independent.
    """
    return int(np.random.default_rng([seed, 0xDA7A, *stream]).integers(2**31))


def stratified_parts(labels: ArrayLike, shares: tuple[float, ...], seed: int) -> list[Indices]:
    """Splits rows at random into parts whose classes have the shares of the whole.

    Args:
        labels: `[N]` codes to stratify by.
        shares: the parts' shares of the rows; the first part gets what is left.
        seed: of the draw.

    Returns:
        sorted row numbers, one array a part.
    """
    codes = np.asarray(labels)
    rest = np.arange(len(codes))
    parts: list[Indices] = []
    for stream, share in enumerate(shares[1:]):
        chosen = stratified_sample(codes[rest], round(share * len(codes)), seed, stream)
        parts.append(rest[chosen])
        rest = np.delete(rest, chosen)
    return [rest, *parts]


def with_simulated_crowd(
    name: str,
    features: Array,
    truth: Indices,
    annotations: Annotations,
    parts: list[Indices],
    *,
    seed: int,
    card: Card,
) -> CrowdDataset:
    """Makes a dataset from features, true labels and a crowd simulated over all of them.

    Training rows carry the crowd's labels, validation rows the crowd's majority votes (so that no
    truth enters a choice), test rows the truth.

    Args:
        features: `[N, ...]`.
        truth: `[N]` class codes.
        annotations: of all N instances.
        parts: rows for training, validation and test.
        seed: breaks the ties of validation votes.
    """
    features = np.ascontiguousarray(features, dtype=np.float32)
    truth = truth.astype(np.int64)
    train, validation, test = parts

    def split(rows: Indices, labels: Indices) -> Split:
        crowd = annotations[rows]
        return Split(features[rows], labels, crowd.instance_names, crowd)

    votes = majority_labels(annotations[validation].vote_counts(), "random", seed)
    return CrowdDataset(
        name=name,
        features=features[train],
        annotations=annotations[train],
        truth=truth[train],
        validation=split(validation, votes),
        test=split(test, truth[test]),
        card=card,
        validation_is_truth=False,
    )
