"""Synthetic instances of the rarer classes: candidates, embeddings, and their annotations."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import ThreadpoolController

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Estimator, Floats, Floats32, Indices, Integers, Mask
from neucrowd_tf.errors import DataError, one_at_a_time

INTERPOLATIONS = ("certainty", "printed", "uniform")
# What the rounds draw is a function of (seed, this, purpose, round).
ROUNDS = 0x1CED
_CELLS_AT_ONCE = 1 << 22
# Multiplications below which one thread is quicker: a search of 700 rows among 700 with 64 numbers
# each has 3e7.
_SMALL = 1 << 28


# Looking through the loaded libraries takes milliseconds, so it is done once.
_controller = functools.cache(ThreadpoolController)


def nearest(points: Floats32, queries: Floats32 | None, k: int) -> Indices:
    """Returns the rows of the points that are nearest to each query, nearest first.

    Args:
        points: `[N, h]`.
        queries: `[M, h]`; None asks for the neighbours of the points among each other, a point
            itself (not others at its place) excluded.
        k: at most N neighbours, N - 1 without queries.

    Returns:
        `[M, k]`.

    References:
        ICED, section 2.4 (the neighbours of candidates, and of synthetic embeddings).
    """
    size = len(points)
    work = points.size * (size if queries is None else len(queries))
    search = NearestNeighbors(n_neighbors=min(k, size - (queries is None)))
    with one_at_a_time():  # the limit, too, is the whole process's
        limited: Any = contextlib.nullcontext()
        if work <= _SMALL:
            limited = _controller().limit(limits=1)
        with limited:
            return search.fit(points).kneighbors(queries, return_distance=False)


def choose_candidates(
    rule: str, probabilities: Floats32, inferred: Integers, used: Mask
) -> Indices:
    """Returns the class `[N]` that each real instance is a candidate of.

    Args:
        rule: "inferred" (as published) or "classifier".
        probabilities: `[N, C]` the classifier's.
        inferred: `[N]` the labels of the round before.
        used: `[C]` whether any annotator gave the class; one that nobody gave has no candidates.

    References:
        ICED, section 2.4 (candidate embeddings).
    """
    if rule == "inferred":
        return inferred.astype(np.int64)
    # Deviation: ICED section 2.4. Paper: Candidates have the minority class as their inferred
    # label. Here: Candidates are the classifier's own predictions (`candidates="inferred"` for the
    # published rule). Why: Under a uniform prior inferred labels drift to equal class sizes, and
    # synthesis stops. Effect: claim iced_candidates.
    return np.where(used, probabilities, -1.0).argmax(axis=1)


def interpolation_weights(
    certainty: Array, neighbour_certainty: Array, noise: Array, *, printed: bool = False
) -> Array:
    """Returns delta `[S]`, the share of the way from a candidate to its neighbour.

    Args:
        certainty: `[S]` label certainty of the candidate (S).
        neighbour_certainty: `[S]` that of its neighbour (S').
        noise: `[S]` eta.
        printed: `S / (S + S') + eta` as published, in place of `S' / (S + S') + eta`; both are
            clipped to [0, 1].

    References:
        ICED, equations 2.3 (delta within [0, 1]) and 2.5.
    """
    here = np.asarray(certainty, dtype=np.float64)
    there = np.asarray(neighbour_certainty, dtype=np.float64)
    # Deviation: ICED eq. 2.5. Paper: `delta = S / (S + S') + eta`, within [0, 1] (eq. 2.3). Here:
    # `S' / (S + S') + eta`; `interpolation="printed"` is the published form. Both are clipped. Why:
    # As published, a certain candidate moves towards its uncertain neighbour, against the text.
    # Effect: claim iced_interpolation.
    return np.clip((here if printed else there) / (here + there) + noise, 0.0, 1.0)


def balancing_counts(labels: Integers, num_classes: int) -> Indices:
    """Returns how many synthetic instances `[C]` make each class as large as the largest one.

    A class with fewer than two instances gets none: there is nothing to interpolate between.

    References:
        ICED, section 2.4 (R repeats for each of m candidates).
    """
    # Deviation: ICED section 2.4. Paper: Each candidate is used R times. Here: As many synthetic
    # instances as make a class as large as the largest, spread evenly over its candidates. Why: R
    # overshoots or falls short of "balanced", and the number of candidates changes from round to
    # round. Effect: not measured.
    counts = np.bincount(labels, minlength=num_classes)
    return np.where(counts >= 2, counts.max(initial=0) - counts, 0).astype(np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic points and what they were interpolated from.

    Attributes:
        embeddings: `[S, h]`.
        candidates, neighbours: `[S]` rows of the real instances.
        weights: `[S]` delta.
    """

    embeddings: Floats32
    candidates: Indices
    neighbours: Indices
    weights: Floats


def synthesise(
    embeddings: Floats32,
    rows: Indices,
    count: int,
    certainty: Array,
    rng: np.random.Generator,
    *,
    k: int = 5,
    eta: float = 0.1,
    interpolation: str = "certainty",
) -> Synthetic:
    """Interpolates `count` synthetic embeddings of one class between its candidates.

    Each candidate is used `count // m` times and some of them, drawn at random, once more; its
    neighbour is drawn from its k nearest candidates (itself excluded, others at the same place
    not).

    Args:
        embeddings: `[N, h]`.
        rows: `[m]` the class's candidates, at least two.
        count: S, how many.
        certainty: `[N]`.
        rng: of this class and round alone; one generator for several classes would give them the
            same draws.
        k: at most m - 1.
        eta: the noise on delta is uniform in (-eta, eta).
        interpolation: "certainty" (equation 2.5 with S' in the numerator), "printed" (as
            published), or "uniform" (plain SMOTE).

    Raises:
        DataError: fewer than two candidates.

    References:
        ICED, equations 2.3 and 2.5; Chawla et al. (2002), SMOTE.
    """
    if len(rows) < 2:
        raise DataError(f"SMOTE: expected at least two candidates, received {len(rows)}")
    points = embeddings[rows]
    near = nearest(points, None, min(k, len(rows) - 1))
    order = rng.permutation(len(rows))
    base = np.tile(order, -(-count // len(rows)))[:count]
    other = near[base, rng.integers(near.shape[1], size=count)]
    if interpolation == "uniform":
        weights = rng.random(count)
    else:
        noise = rng.uniform(-eta, eta, size=count)
        sure = certainty[rows]
        weights = interpolation_weights(
            sure[base], sure[other], noise, printed=interpolation == "printed"
        )
    between = points[base] + weights[:, None].astype(points.dtype) * (points[other] - points[base])
    return Synthetic(between, rows[base], rows[other], weights)


def copy_annotations(
    labels: sparse.csr_matrix, neighbours: Integers, rng: np.random.Generator
) -> tuple[Indices, Indices, Indices]:
    """Lets every annotator copy, for each synthetic instance, the label of one random neighbour.

    An annotator who gave that neighbour no label gives none, so synthetic instances have as many
    labels as their neighbourhood. One that would stay without any label gets all labels of its
    nearest neighbour.

    Args:
        labels: `[N, R]` real labels, label + 1 where there is one; each row that is a neighbour
            holds at least one label.
        neighbours: `[S, k]` rows, nearest first.
        rng: draws.

    Returns:
        instance, annotator and label codes of the synthetic annotations, by instance; instances are
        numbered from 0.

    References:
        ICED, section 2.4 ("simulating the annotation behavior of each crowd worker in these
        collected k crowdsourced labels").
    """
    # Deviation: ICED section 2.4. Paper: "simulating the annotation behavior" among k neighbours.
    # Here: Each annotator copies their label of one neighbour, drawn for each annotator and
    # instance; no label there, none here. Why: What is simulated is left open; a vote among
    # neighbours collapses, because each round makes annotators look more reliable. Effect: not
    # measured.
    size, k = neighbours.shape
    annotators = np.arange(labels.shape[1])
    block = max(1, _CELLS_AT_ONCE // max(len(annotators), 1))
    empty = np.zeros(0, dtype=np.int64)
    triples: list[tuple[Array, ...]] = [(empty, empty, empty)]
    for start in range(0, size, block):
        near = neighbours[start : start + block]
        draw = rng.integers(k, size=(len(near), len(annotators)))
        copied = labels[near[np.arange(len(near))[:, None], draw], annotators].toarray()
        bare = np.flatnonzero((copied == 0).all(axis=1))
        copied[bare] = labels[near[bare, 0]].toarray()
        instance, annotator = np.nonzero(copied)
        triples.append((instance + start, annotator, copied[instance, annotator] - 1))
    instances, by, codes = np.hstack(triples).astype(np.int64)
    return instances, by, codes


@dataclasses.dataclass(frozen=True, eq=False)
class Generated:
    """Synthetic instances of a round, with the annotations of real and synthetic ones.

    Attributes:
        points: `[S, h]` synthetic embeddings, class after class in the order of their codes.
        counts: `[C]` how many there are of each class.
        one_hot: `[N + S, R * C]` CSR, the annotations of the real and then the synthetic instances.
    """

    points: Floats32
    counts: Indices
    one_hot: sparse.csr_matrix


class Generator:
    """The synthetic data generation module of one crowd.

    Args:
        hparams: an `ICED`, whose `k`, `eta`, `interpolation` (see `synthesise`),
            `annotation_neighbours` and `seed` are read.
        annotations: of the N real instances.
        certainty: `[N]`.

    Attributes:
        used: `[C]` whether any annotator gave the class.
        real: `[N, R * C]` CSR, the annotations of the real instances.

    References:
        ICED, section 2.4; algorithm 1, line 3.
    """

    def __init__(self, hparams: Estimator, annotations: Annotations, certainty: Floats) -> None:
        self.hparams = hparams
        self.certainty = certainty
        self.num_classes = annotations.num_classes
        self.used = annotations.vote_counts().sum(axis=0) > 0
        self.real = annotations.one_hot()
        self.labels = annotations.to_sparse()

    def __call__(self, embeddings: Floats32, candidates: Indices, index: int) -> Generated:
        """Returns a round whose synthetic instances make all classes as large as the largest.

        Args:
            embeddings: `[N, h]`.
            candidates: `[N]` the class that each real instance is a candidate of.
            index: of the round.
        """
        hparams = self.hparams
        counts = balancing_counts(candidates, self.num_classes)
        by_class = []
        for code in np.flatnonzero(counts).tolist():
            new = synthesise(
                embeddings,
                np.flatnonzero(candidates == code),
                int(counts[code]),
                self.certainty,
                np.random.default_rng([hparams.seed, ROUNDS, 2, index, code]),
                k=hparams.k,
                eta=hparams.eta,
                interpolation=hparams.interpolation,
            )
            by_class.append(new.embeddings)
        if not by_class:
            return Generated(embeddings[:0], counts, self.real)
        points = np.concatenate(by_class)
        near = nearest(embeddings, points, hparams.annotation_neighbours)
        rng = np.random.default_rng([hparams.seed, ROUNDS, 3, index])
        rows, annotators, labels = copy_annotations(self.labels, near, rng)
        cells = (np.ones(len(labels)), (rows, annotators * self.num_classes + labels))
        added = sparse.csr_matrix(cells, shape=(len(points), self.real.shape[1]))
        return Generated(points, counts, sparse.vstack([self.real, added], format="csr"))
