"""Synthetic data generation: embeddings of the rarer classes, and annotations for them in which
each annotator behaves as on one of the real neighbours.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neucrowd_tf.annotations import MISSING
from neucrowd_tf.iced.neighbours import nearest
from neucrowd_tf.iced.smote import balancing_counts, synthesise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

_CELLS_AT_ONCE = 1 << 22
# Above this many cells, draws are made only for annotators who labelled a neighbour: time and
# memory go with labels, not with instances times annotators.
_DENSE_CELLS = 1 << 26
# What the rounds draw is a function of (seed, this, purpose, round).
ROUNDS = 0x1CED


def choose_candidates(
    rule: str,
    probabilities: NDArray[np.float32],
    inferred: NDArray[np.integer[Any]],
    used: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Returns `[N]` the class that each real instance may stand for when instances are made.

    Args:
        rule: "inferred" (as printed) or "classifier".
        probabilities: `[N, C]` the classifier's.
        inferred: `[N]` the labels of the round before.
        used: `[C]` whether any annotator gave the class; one that nobody gave has no candidates.

    References:
        ICED, section 2.4 (candidate embeddings).
    """
    if rule == "inferred":
        return inferred.astype(np.int64)
    # Deviation: inferred labels drift to equal class sizes under a uniform prior, and synthesis
    # stops; the classifier, trained on balanced data and blind to single annotations, keeps the
    # classes apart.
    return np.where(used, probabilities, -1.0).argmax(axis=1)


@dataclasses.dataclass(frozen=True)
class Generated:
    """What a round adds to the real instances.

    Attributes:
        points: `[S, h]` synthetic embeddings, class after class.
        counts: `[C]` how many there are of each class.
        one_hot: `[N + S, R * C]` CSR, the annotations of the real and then the synthetic instances.
    """

    points: NDArray[np.float32]
    counts: NDArray[np.int64]
    one_hot: sparse.csr_matrix


class Generator:
    """The synthetic data generation module of one crowd.

    Args:
        annotations: of the N real instances.
        certainty: `[N]`.
        k, eta, interpolation: see `synthesise`.
        annotation_neighbours: real neighbours that annotators are copied from.
        seed: draws are functions of it, the round and the class.

    Attributes:
        used: `[C]` whether any annotator gave the class.

    References:
        ICED, section 2.4; algorithm 1, line 3.
    """

    def __init__(
        self,
        annotations: Annotations,
        certainty: NDArray[np.float64],
        *,
        k: int,
        annotation_neighbours: int,
        eta: float,
        interpolation: str,
        seed: int,
    ) -> None:
        self.certainty, self.k, self.eta, self.interpolation = certainty, k, eta, interpolation
        self.annotation_neighbours, self.seed = annotation_neighbours, seed
        self.num_classes = annotations.num_classes
        self.used = annotations.vote_counts().sum(axis=0) > 0
        self.real = annotations.one_hot()
        cells = annotations.num_instances * annotations.num_annotators
        dense = cells <= _DENSE_CELLS
        self.labels = annotations.to_dense(np.int16) if dense else annotations.to_sparse()

    def nothing(self, embeddings: NDArray[np.float32]) -> Generated:
        """Returns a round without synthetic instances."""
        none = np.zeros((0, embeddings.shape[1]), embeddings.dtype)
        return Generated(none, np.zeros(self.num_classes, np.int64), self.real)

    def __call__(
        self, embeddings: NDArray[np.float32], candidates: NDArray[np.int64], index: int
    ) -> Generated:
        """Returns what fills every class up to the largest one.

        Args:
            embeddings: `[N, h]`.
            candidates: `[N]` the class that each real instance may stand for.
            index: of the round.
        """
        counts = balancing_counts(candidates, self.num_classes)
        parts = []
        for code in np.flatnonzero(counts):
            made = synthesise(
                embeddings,
                np.flatnonzero(candidates == code),
                int(counts[code]),
                self.certainty,
                np.random.default_rng([self.seed, ROUNDS, 2, index, int(code)]),
                k=self.k,
                eta=self.eta,
                interpolation=self.interpolation,
            )
            parts.append(made.embeddings)
        if not parts:
            return self.nothing(embeddings)
        points = np.concatenate(parts)
        near = nearest(embeddings, points, self.annotation_neighbours)
        rng = np.random.default_rng([self.seed, ROUNDS, 3, index])
        rows, annotators, labels = copy_annotations(self.labels, near, rng)
        cells = (np.ones(len(labels)), (rows, annotators * self.num_classes + labels))
        added = sparse.csr_matrix(cells, shape=(len(points), self.real.shape[1]))
        return Generated(points, counts, sparse.vstack([self.real, added], format="csr"))


def copy_annotations(
    labels: NDArray[np.integer[Any]] | sparse.csr_matrix,
    neighbours: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lets every annotator copy what they did on one neighbour, drawn for each annotator and
    synthetic instance by itself.

    An annotator who gave that neighbour no label gives none, so synthetic instances have as many
    labels as their neighbourhood. One that would stay without any label gets all labels of its
    nearest neighbour.

    Args:
        labels: `[N, R]` real labels: dense with -1 where there is none, or CSR with label + 1.
        neighbours: `[S, k]` rows, nearest first; each row of `labels` that may come up holds at
            least one label.
        rng: draws.

    Returns:
        instance, annotator and label codes of the synthetic annotations, by instance; instances are
        numbered from 0.

    References:
        ICED, section 2.4 ("simulating the annotation behavior of each crowd worker in these
        collected k crowdsourced labels").
    """
    if sparse.issparse(labels):
        return _copy_labels(labels, neighbours, rng)
    # Deviation: what "simulating" means is left open. A vote among neighbours would make every
    # synthetic crowd nearly unanimous, so error rates would fall from round to round; a random
    # neighbour keeps each annotator's rates.
    size, k = neighbours.shape
    annotators = labels.shape[1]
    block = max(1, _CELLS_AT_ONCE // max(annotators, 1))
    empty = np.zeros(0, dtype=np.int64)
    parts: list[tuple[NDArray[Any], ...]] = [(empty, empty, empty)]
    for start in range(0, size, block):
        near = neighbours[start : start + block]
        draw = rng.integers(k, size=(len(near), annotators))
        copied = _look_up(labels, near[np.arange(len(near))[:, None], draw])
        bare = np.flatnonzero((copied == MISSING).all(axis=1))
        if len(bare):
            copied[bare] = _look_up(labels, np.repeat(near[bare, :1], annotators, axis=1))
        instance, annotator = np.nonzero(copied != MISSING)
        parts.append((instance + start, annotator, copied[instance, annotator]))
    instances, who, given = (np.concatenate(column) for column in zip(*parts, strict=True))
    return instances, who, given


def _copy_labels(
    labels: sparse.csr_matrix, neighbours: NDArray[np.integer[Any]], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Does what `copy_annotations` says from the neighbours' labels: who labelled none of them is
    not drawn for.
    """
    size, k = neighbours.shape
    instances, who, given = _labels_of(labels, neighbours.ravel())
    instances, nearness = np.divmod(instances, k)
    pairs, place = np.unique(instances * labels.shape[1] + who, return_inverse=True)
    kept = rng.integers(k, size=len(pairs))[place] == nearness
    found = [part[kept] for part in (instances, who, given)]
    bare = np.flatnonzero(np.bincount(found[0], minlength=size) == 0)
    rows, *rest = _labels_of(labels, neighbours[bare, 0])
    instances, who, given = (
        np.concatenate(both) for both in zip(found, (bare[rows], *rest), strict=True)
    )
    order = np.lexsort((who, instances))
    return instances[order], who[order], given[order]


def _labels_of(
    labels: sparse.csr_matrix, rows: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns the labels of these rows: positions in `rows`, annotators and class codes."""
    part = labels[rows].tocoo()
    return part.row.astype(np.int64), part.col.astype(np.int64), part.data.astype(np.int64) - 1


def _look_up(labels: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int64]:
    """Returns `labels[rows[s, r], r]`, -1 where there is none, for rows `[S, R]`."""
    columns = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    return labels[rows, columns].astype(np.int64)
