"""Agreement among annotators, of each pair that shares many instances, and of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.certainty import Estimate
from neucrowd_tf.certainty.coefficients import Scale, agreement_intervals
from neucrowd_tf.certainty.estimate import NOTHING
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.values import numbers_of

MANY_SHARED = 20
# Agreement on fewer instances than this is shown, but not judged.
LEAST_OVERLAP = 30
MOST_ANNOTATORS = 400  # whose pairs are compared: those with the most labels


@dataclasses.dataclass(frozen=True)
class Pair:
    """The agreement of two annotators, or of a model with the majority of annotators.

    Attributes:
        first, second: codes; `second` is -1 for the majority.
        shared: number of instances that both labelled.
        same: share of these with the same label, NaN without any.
        kappa: Cohen's; NaN if both always gave one and the same label.
    """

    first: int
    second: int
    shared: int
    same: float
    kappa: float


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The agreement of a crowd.

    Attributes:
        overlap: number of instances that two or more people labelled.
        coefficients: "observed", "fleiss", "krippendorff" and "gwet" of people, with 80% intervals.
        numbers: whether all classes are numbers, so that a scale may be ordinal or interval.
        pairs: people who share at least `MANY_SHARED` instances, the least agreeing first.
        models: each model with the people's majority label.
    """

    overlap: int
    coefficients: dict[str, Estimate]
    numbers: bool
    pairs: list[Pair]
    models: list[Pair]

    @property
    def enough(self) -> bool:
        """Whether enough instances have two labels to judge agreement."""
        return self.overlap >= LEAST_OVERLAP


def model_codes(annotations: Annotations, names: Sequence[str]) -> NDArray[np.int64]:
    """Returns the codes of the annotators with these names."""
    return np.flatnonzero(np.isin(annotations.annotator_names.astype(str), list(names)))


def agreement(
    annotations: Annotations, models: Sequence[str] = (), scale: Scale = "nominal"
) -> Agreement:
    """Measures agreement.

    Args:
        annotations: with identities.
        models: names of the annotators that are models; they are left out and compared with the
            people's majority label.
        scale: of the classes; "ordinal" takes their order, "interval" their numbers.

    Raises:
        IdentitiesError: vote counts only.
        DataError: an interval scale of classes that are not numbers.
    """
    numbers = numbers_of(list(map(str, annotations.class_names.tolist())))
    if scale == "interval" and numbers is None:
        raise DataError("--scale=interval: a class is not a number. Use --scale=ordinal.")
    annotations.require_identities("agreement by pairs")
    codes = model_codes(annotations, models)
    people = annotations.select(~np.isin(annotations.annotators, codes))
    counts = people.vote_counts()
    votes = counts.sum(axis=1)
    majority = np.where(votes > 0, counts.argmax(axis=1), -1)
    compared = []
    for code in codes.tolist():
        rows = annotations.annotators == code
        rows &= majority[annotations.instances] >= 0
        labels, others = annotations.labels[rows], majority[annotations.instances[rows]]
        total = max(len(labels), 1)
        shares = [np.bincount(one, minlength=counts.shape[1]) / total for one in (labels, others)]
        same = float((labels == others).mean()) if len(labels) else float("nan")
        kappa = float(statistics.chance_corrected(same, shares[0] @ shares[1]))
        compared.append(Pair(code, -1, len(labels), same, kappa))
    measured = dict.fromkeys(statistics.COEFFICIENTS, NOTHING)
    if (votes > 1).any():
        measured = agreement_intervals(counts, scale, numbers)
    return Agreement(int((votes > 1).sum()), measured, numbers is not None, pairs(people), compared)


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
    shared = np.asarray((whole.T @ whole).todense())
    same, chance = np.zeros_like(shared), np.zeros_like(shared)
    for code in range(annotations.num_classes):
        of_class = matrix(labels == code)
        same += np.asarray((of_class.T @ of_class).todense())
        met = np.asarray((of_class.T @ whole).todense())  # [a, b]: a's labels where b has any
        chance += met * met.T
    first, second = np.nonzero(np.triu(shared >= least, 1))
    total = shared[first, second]
    observed = same[first, second] / total
    kappa = statistics.chance_corrected(observed, chance[first, second] / total**2)
    columns_of = (chosen[first], chosen[second], total.astype(int), observed, kappa)
    shown = (Pair(*one) for one in zip(*(c.tolist() for c in columns_of), strict=True))
    return sorted(shown, key=lambda pair: (np.nan_to_num(pair.kappa, nan=2.0), -pair.shared))
