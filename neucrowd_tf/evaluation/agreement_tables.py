"""Agreement as tables: in all, by class, by instance and of each pair of annotators."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from neucrowd_tf.aggregation.families import labels_of
from neucrowd_tf.annotations import Annotations, agreement
from neucrowd_tf.certainty.agreement_intervals import agreement_intervals, titles
from neucrowd_tf.declare.types import Array
from neucrowd_tf.io.tables.writing import cell, to_csv
from neucrowd_tf.io.values import numbers_of

MANY_SHARED = 20
MOST_ANNOTATORS = 1000  # whose pairs are compared: those with the most labels


class Pair(NamedTuple):
    """The agreement of two annotators.

    Attributes:
        first, second: codes.
        shared: number of instances that both labelled.
        same: share of the pairs of labels that are the same.
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
    crowd = annotations.select(np.isin(annotations.annotators, chosen))
    columns = np.searchsorted(chosen, crowd.annotators)
    shape = (crowd.num_instances, len(chosen))

    def matrix(weights: Array) -> csr_matrix:
        return csr_matrix((weights.astype(float), (crowd.instances, columns)), shape=shape)

    labelled = matrix(np.ones(len(columns)))
    shared = (labelled.T @ labelled).toarray()
    same = np.zeros_like(shared)
    chance = np.zeros_like(shared)
    for code in range(annotations.num_classes):
        of_class = matrix(crowd.labels == code)
        same += (of_class.T @ of_class).toarray()
        of_both = (of_class.T @ labelled).toarray()  # [a, b]: a's labels where b has any
        chance += of_both * of_both.T
    once = labelled.astype(bool).astype(float)  # an annotator may label an instance several times
    instances = (once.T @ once).toarray()
    first, second = np.nonzero(np.triu(instances >= least, 1))
    total = shared[first, second]
    observed = same[first, second] / total
    kappa = agreement.chance_corrected(observed, chance[first, second] / total**2)
    members = (chosen[first].tolist(), chosen[second].tolist())
    figures = (instances[first, second].astype(int).tolist(), observed.tolist(), kappa.tolist())
    result = list(map(Pair, *members, *figures))
    return sorted(result, key=lambda pair: (np.nan_to_num(pair.kappa, nan=2.0), -pair.shared))


def people_only(annotations: Annotations, models: Collection[str]) -> Annotations:
    """Returns the annotations without those of models, which are named."""
    if not models:
        return annotations
    of_people = ~np.isin(annotations.annotator_names.astype(str), list(models))
    return labels_of(annotations, of_people)


def agreement_csvs(annotations: Annotations, scale: agreement.Scale = "nominal") -> dict[str, str]:
    """Returns the agreement of a crowd as CSV files by name.

    `coefficients.csv` has the coefficients with 80% intervals, `classes.csv` those of each class
    against all others, `items.csv` the share of equal pairs of labels of each item, and `pairs.csv`
    Cohen's kappa of all annotators that share items (not for vote counts).

    Args:
        annotations: of N instances.
        scale: of the classes in their order, for the coefficients.

    Raises:
        DataError: no instance has two labels.
    """
    votes = annotations.vote_counts()
    names = titles(scale)
    measured = agreement_intervals(votes, scale, numbers_of(annotations.class_names.tolist()))
    by_class = agreement.class_agreement(votes)
    items = agreement.item_agreement(votes)
    coefficients = [(title, scale, *map(float, measured[name])) for name, title in names.items()]
    sizes = zip(annotations.class_names.tolist(), votes.sum(axis=0).tolist(), strict=True)
    coefficients_of = operator.itemgetter(*agreement.COEFFICIENTS)
    classes = [(*size, *coefficients_of(row)) for size, row in zip(sizes, by_class, strict=True)]
    columns = (annotations.instance_names.tolist(), votes.sum(axis=1).tolist(), items)
    texts = {
        "coefficients.csv": _csv(("coefficient", "scale", "value", "low", "high"), coefficients),
        "classes.csv": _csv(("class", "num_labels", *agreement.COEFFICIENTS), classes),
        "items.csv": _csv(("task", "num_labels", "percent"), zip(*columns, strict=True)),
    }
    if annotations.has_identities:
        annotators = annotations.annotator_names.tolist()
        rows = ((annotators[p.first], annotators[p.second], *p[2:]) for p in pairs(annotations, 1))
        header = ("annotator_1", "annotator_2", "items", "percent", "kappa")
        texts["pairs.csv"] = _csv(header, rows)
    return texts


def _csv(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    return to_csv(header, (map(cell, row) for row in rows))
