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
from neucrowd_tf.errors import one_at_a_time

INTERPOLATIONS = ("certainty", "printed", "uniform")
# The rounds draw from (seed, this, purpose, round).
ROUNDS = 0x1CED
_CELLS_AT_ONCE = 1 << 22
# One thread is quicker up to this many multiplications. A search of 700 rows among 700, with 64
# numbers each, has 3e7.
_SMALL = 1 << 28


# Inspecting the loaded libraries takes milliseconds, so it is done once.
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
    most = len(points)
    asked = len(points)
    if queries is None:
        most -= 1
    else:
        asked = len(queries)
    search = NearestNeighbors(n_neighbors=min(k, most))
    with one_at_a_time():  # the limit, too, is the whole process's
        limited: Any = contextlib.nullcontext()
        if points.size * asked <= _SMALL:
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
    certainty: Floats, neighbour_certainty: Floats, noise: Floats, *, printed: bool
) -> Floats:
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
    # Deviation: ICED eq. 2.5. Paper: `delta = S / (S + S') + eta`, within [0, 1] (eq. 2.3). Here:
    # `S' / (S + S') + eta`; `interpolation="printed"` is the published form. Both are clipped. Why:
    # As published, a certain candidate moves towards its uncertain neighbour, against the text.
    # Effect: claim iced_interpolation.
    numerator = certainty if printed else neighbour_certainty
    return np.clip(numerator / (certainty + neighbour_certainty) + noise, 0.0, 1.0)


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

    Each candidate is used `count // m` times and some of them, drawn at random, once more. Its
    neighbour is drawn from its k nearest other candidates, which may be at the same place.

    Args:
        embeddings: `[N, h]`.
        rows: `[m]` the class's candidates, at least two.
        count: S, how many.
        certainty: `[N]`.
        rng: of this class and round alone; one generator for several classes would give them the
            same draws.
        k: how many nearest candidates; fewer if there are not so many others.
        eta: the noise on delta is uniform in (-eta, eta).
        interpolation: "certainty" (equation 2.5 with S' in the numerator), "printed" (as
            published), or "uniform" (plain SMOTE).

    References:
        ICED, equations 2.3 and 2.5; Chawla et al. (2002), SMOTE.
    """
    points = embeddings[rows]
    near = nearest(points, None, k)
    base = np.resize(rng.permutation(len(rows)), count)
    other = near[base, rng.integers(near.shape[1], size=count)]
    if interpolation == "uniform":
        weights = rng.random(count)
    else:
        noise = rng.uniform(-eta, eta, size=count)
        sure = certainty[rows]
        weights = interpolation_weights(
            sure[base], sure[other], noise, printed=interpolation == "printed"
        )
    share = weights[:, None].astype(points.dtype)
    between = points[base] + share * (points[other] - points[base])
    return Synthetic(between, rows[base], rows[other], weights)


def copy_annotations(
    labels: sparse.csr_matrix, neighbours: Integers, rng: np.random.Generator
) -> Indices:
    """Lets every annotator copy, for each synthetic instance, the label of one random neighbour.

    An annotator who gave that neighbour no label gives none, so synthetic instances have about as
    many labels as their neighbours. An instance that would have no label at all gets all labels of
    its nearest neighbour.

    Args:
        labels: `[N, R]` each cell is a real label + 1, or 0 without a label; each row that is a
            neighbour has at least one label.
        neighbours: `[S, k]` rows, nearest first; S is at least one.
        rng: draws the neighbours that are copied.

    Returns:
        `[3, A]` int64: instance, annotator and label codes of the synthetic annotations, by
        instance. Instances are numbered from 0.

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
    block = max(1, _CELLS_AT_ONCE // len(annotators))
    triples = []
    for start in range(0, size, block):
        near = neighbours[start : start + block]
        draw = rng.integers(k, size=(len(near), len(annotators)))
        sources = np.take_along_axis(near, draw, axis=1)
        copied = labels[sources, annotators].toarray()
        bare = np.flatnonzero((copied == 0).all(axis=1))
        copied[bare] = labels[near[bare, 0]].toarray()
        instance, annotator = np.nonzero(copied)
        triples.append(np.stack([instance + start, annotator, copied[instance, annotator] - 1]))
    return np.hstack(triples)


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
        hparams: an `ICED`, of which it reads `k`, `eta`, `interpolation` (see `synthesise`),
            `annotation_neighbours` and `seed`.
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
