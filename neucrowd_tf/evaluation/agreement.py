"""The agreement of each pair of annotators that shares many instances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from neucrowd_tf.annotations import Annotations, statistics

MANY_SHARED = 20
MOST_ANNOTATORS = 400  # whose pairs are compared: those with the most labels


class Pair(NamedTuple):
    """The agreement of two annotators.

    Attributes:
        first, second: codes.
        shared: number of instances that both labelled.
        same: share of these with the same label.
        kappa: Cohen's; NaN if both always gave one and the same label.
    """

    first: int
    second: int
    shared: int
    same: float
    kappa: float


def pairs(annotations: Annotations, least: int = MANY_SHARED) -> list[Pair]:
    """Returns the pairs that share at least `least` instances, the least agreeing first.

    References:
        Cohen (1960), A coefficient of agreement for nominal scales.
    """
    busiest = np.argsort(-annotations.labels_per_annotator(), kind="stable")
    chosen = np.sort(busiest[:MOST_ANNOTATORS])
    place = np.full(annotations.num_annotators, -1)
    place[chosen] = np.arange(len(chosen))
    compared = place[annotations.annotators] >= 0
    rows, columns = annotations.instances[compared], place[annotations.annotators[compared]]
    labels, shape = annotations.labels[compared], (annotations.num_instances, len(chosen))

    def matrix(mask: NDArray[np.bool_]) -> csr_matrix:
        return csr_matrix((np.ones(mask.sum()), (rows[mask], columns[mask])), shape=shape)

    whole = matrix(np.ones(len(rows), dtype=bool))
    shared = (whole.T @ whole).toarray()
    same, chance = np.zeros_like(shared), np.zeros_like(shared)
    for code in range(annotations.num_classes):
        of_class = matrix(labels == code)
        same += (of_class.T @ of_class).toarray()
        met = (of_class.T @ whole).toarray()  # [a, b]: a's labels where b has any
        chance += met * met.T
    first, second = np.nonzero(np.triu(shared >= least, 1))
    total = shared[first, second]
    observed = same[first, second] / total
    kappa = statistics.chance_corrected(observed, chance[first, second] / total**2)
    columns_of = (chosen[first], chosen[second], total.astype(int), observed, kappa)
    result = [Pair(*row) for row in zip(*(c.tolist() for c in columns_of), strict=True)]
    return sorted(result, key=lambda pair: (np.nan_to_num(pair.kappa, nan=2.0), -pair.shared))
