"""Annotations of synthetic instances: each annotator behaves as on one of the real neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neucrowd_tf.annotations import MISSING
from neucrowd_tf.iced.neighbours import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS_AT_ONCE = 1 << 22


def nearest_real(
    embeddings: NDArray[np.float32], synthetic: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Returns the rows `[S, k]` of the k real embeddings `[N, h]` nearest to each synthetic one
    `[S, h]`; k is at most N.
    """
    return nearest(embeddings, synthetic, min(k, len(embeddings)))


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
    # Deviation: what "simulating" means is left open. A vote among neighbours would make every
    # synthetic crowd nearly unanimous, so error rates would fall from round to round; a random
    # neighbour keeps each annotator's rates.
    size, k = neighbours.shape
    annotators = labels.shape[1]
    block = max(1, _CELLS_AT_ONCE // max(annotators, 1))
    parts: list[tuple[NDArray[Any], ...]] = []
    for start in range(0, size, block):
        near = neighbours[start : start + block]
        draw = rng.integers(k, size=(len(near), annotators))
        chosen = near[np.arange(len(near))[:, None], draw]
        copied = _look_up(labels, chosen)
        bare = np.flatnonzero((copied == MISSING).all(axis=1))
        if len(bare):
            copied[bare] = _look_up(labels, np.repeat(near[bare, :1], annotators, axis=1))
        instance, annotator = np.nonzero(copied != MISSING)
        parts.append((instance + start, annotator, copied[instance, annotator]))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    instances, who, given = (
        np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)
    )
    return instances, who, given


def _look_up(labels: NDArray[Any] | sparse.csr_matrix, rows: NDArray[Any]) -> NDArray[np.int64]:
    """Returns `labels[rows[s, r], r]`, -1 where there is none, for rows `[S, R]`."""
    columns = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    if sparse.issparse(labels):
        found = (
            np.asarray(labels[rows.ravel(), columns.ravel()]).reshape(rows.shape).astype(np.int64)
        )
        return found - 1
    return labels[rows, columns].astype(np.int64)
