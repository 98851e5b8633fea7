"""How far annotators agree: people among themselves, each pair that shares many instances, and
models apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from neucrowd_tf.annotations import Annotations, statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY_SHARED = 20
MOST_ANNOTATORS = 400  # of whom pairs are compared: those with most labels


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two annotators (codes), how many instances both labelled, the share that both gave the same
    label, and Cohen's kappa (NaN where both gave one and the same label throughout).
    """

    first: int
    second: int
    shared: int
    same: float
    kappa: float


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Of a crowd.

    Attributes:
        kappa, alpha: Fleiss' and Krippendorff's, of people alone.
        pairs: of people who share at least `MANY_SHARED` instances, those that agree least first.
        models: for each annotator that is a model, its name, how many people's majority labels it
            met, the share it shares, and Cohen's kappa with these.
    """

    kappa: float
    alpha: float
    pairs: list[Pair]
    models: list[tuple[str, int, float, float]]


def model_codes(annotations: Annotations, names: Sequence[str]) -> NDArray[np.int64]:
    """Returns the codes of the annotators of these names, as they are spelt."""
    wanted = set(names)
    return np.array(
        [i for i, n in enumerate(annotations.annotator_names.tolist()) if str(n) in wanted],
        dtype=np.int64,
    )


def agreement(annotations: Annotations, models: Sequence[str] = ()) -> Agreement:
    """Measures agreement.

    Args:
        annotations: with identities.
        models: names of the annotators that are models.

    Raises:
        IdentitiesError: vote counts only.
    """
    annotations.require_identities("agreement by pairs")
    codes = model_codes(annotations, models)
    people = annotations.select(~np.isin(annotations.annotators, codes))
    counts = people.vote_counts()
    found = []
    majority = np.where(counts.sum(axis=1) > 0, counts.argmax(axis=1), -1)
    for code in codes:
        mine = np.flatnonzero(annotations.annotators == code)
        others = majority[annotations.instances[mine]]
        mine, others = mine[others >= 0], others[others >= 0]
        given = annotations.labels[mine]
        table = np.zeros((annotations.num_classes,) * 2)
        np.add.at(table, (given, others), 1)
        name = str(annotations.annotator_names[code])
        share = float(np.trace(table) / len(mine)) if len(mine) else float("nan")
        found.append((name, len(mine), share, _kappa(table)))
    return Agreement(
        statistics.fleiss_kappa(counts), statistics.krippendorff_alpha(counts), pairs(people), found
    )


def _kappa(table: NDArray[np.float64]) -> float:
    """Returns Cohen's kappa of a table `[C, C]` of counts."""
    total = table.sum()
    chance = float(table.sum(axis=0) @ table.sum(axis=1)) / total**2 if total else 1.0
    return (float(np.trace(table)) / total - chance) / (1 - chance) if chance < 1 else float("nan")


def pairs(annotations: Annotations, least: int = MANY_SHARED) -> list[Pair]:
    """Returns the pairs of annotators that share at least `least` instances, those that agree least
    first.

    References:
        Cohen (1960), A coefficient of agreement for nominal scales.
    """
    given = annotations.labels_per_annotator()
    chosen = np.sort(np.argsort(-given, kind="stable")[:MOST_ANNOTATORS])
    place = np.full(annotations.num_annotators, -1)
    place[chosen] = np.arange(len(chosen))
    kept = place[annotations.annotators] >= 0
    rows, columns = annotations.instances[kept], place[annotations.annotators[kept]]
    labels, shape = annotations.labels[kept], (annotations.num_instances, len(chosen))

    def matrix(mask: NDArray[np.bool_]) -> csr_matrix:
        return csr_matrix((np.ones(mask.sum()), (rows[mask], columns[mask])), shape=shape)

    whole = matrix(np.ones(len(rows), dtype=bool))
    shared = np.asarray((whole.T @ whole).todense())
    same, chance = np.zeros_like(shared), np.zeros_like(shared)
    for code in range(annotations.num_classes):
        part = matrix(labels == code)
        same += np.asarray((part.T @ part).todense())
        met = np.asarray((part.T @ whole).todense())  # [a, b]: a said so where b said anything
        chance += met * met.T
    found = []
    for a, b in np.argwhere(np.triu(shared >= least, 1)).tolist():
        total = shared[a, b]
        expected, observed = chance[a, b] / total**2, same[a, b] / total
        kappa = (observed - expected) / (1 - expected) if expected < 1 else float("nan")
        found.append(Pair(int(chosen[a]), int(chosen[b]), int(total), float(observed), kappa))
    return sorted(found, key=lambda pair: (np.nan_to_num(pair.kappa, nan=2.0), -pair.shared))
