"""Ties that nothing in a crowd breaks: exchanging two classes leaves the crowd as it is."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.aggregation.base import Codes
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats

ROUNDS = 3  # in which items and annotators learn of each other
MOST_PAIRS = 20  # of classes that tie somewhere


def even_ties(crowd: Annotations, probas: Floats, gold: Codes | None = None) -> Floats:
    """Returns probabilities `[N, C]` in which classes that nothing distinguishes are equal.

    Two classes tie in an item if they have the most votes, and if the crowd with these classes
    exchanged has an item whose annotators labelled alike. Methods that draw random numbers, or that
    decide ties on the way, would prefer one of them by names or seeds.

    Args:
        crowd: with identities.
        probas: `[N, C]`.
        gold: `[N]` class codes, -1 if unknown, or None.
    """
    votes = crowd.vote_counts()
    top = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
    if gold is not None:
        top[gold >= 0] = False
    several = top[top.sum(axis=1) > 1]
    pairs = []
    for pair in itertools.combinations(np.flatnonzero(several.any(axis=0)).tolist(), 2):
        if several[:, pair].all(axis=1).any():
            pairs.append(pair)
    if not pairs or len(pairs) > MOST_PAIRS:
        return probas
    fixed = np.full(crowd.num_instances, -1) if gold is None else gold
    plain = _colours(crowd, fixed, np.arange(crowd.num_classes))
    result = probas.copy()
    for pair in pairs:
        exchanged = np.arange(crowd.num_classes)
        exchanged[list(pair)] = pair[::-1]
        alike = top[:, pair].all(axis=1) & (plain == _colours(crowd, fixed, exchanged))
        result[np.ix_(alike, pair)] = result[np.ix_(alike, pair)].mean(axis=1, keepdims=True)
    return result


def _colours(crowd: Annotations, gold: Codes, classes: Codes) -> NDArray[np.uint64]:
    """Returns `[N]` numbers that are equal for items that look alike, with classes renamed.

    References:
        Weisfeiler and Leman (1968), colour refinement.
    """
    renamed = np.append(classes, -1)
    labels = _mixed(renamed[crowd.labels].astype(np.uint64) + np.uint64(11))
    items = _mixed(renamed[gold].astype(np.int64).astype(np.uint64) + np.uint64(3))
    annotators = np.zeros(crowd.num_annotators, dtype=np.uint64)
    for _ in range(ROUNDS):
        seen = np.zeros_like(annotators)
        np.add.at(seen, crowd.annotators, _mixed(items[crowd.instances] ^ labels))
        annotators = _mixed(seen)
        seen = items.copy()
        np.add.at(seen, crowd.instances, _mixed(annotators[crowd.annotators] + labels))
        items = _mixed(seen)
    return items


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns the finalisation of SplitMix64, which spreads numbers over all bits."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
