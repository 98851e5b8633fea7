"""Synthetic embeddings: SMOTE whose interpolation keeps close to the point with the more certain
label.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.iced.neighbours import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

# "literal" is what "printed" was called before.
INTERPOLATIONS = ("certainty", "printed", "uniform", "literal")


def interpolation_weights(
    certainty: NDArray[Any],
    neighbour_certainty: NDArray[Any],
    noise: NDArray[Any],
    *,
    printed: bool = False,
) -> NDArray[Any]:
    """Returns delta `[S]`, how far a synthetic point lies on the way from a candidate to its
    neighbour.

    Args:
        certainty, neighbour_certainty: `[S]` label certainty of the candidate (S) and of its
            neighbour (S').
        noise: `[S]` eta.
        printed: `S / (S + S') + eta` as printed, in place of `S' / (S + S') + eta` clipped to [0,
            1].

    References:
        ICED, equation 2.5.
    """
    here = np.asarray(certainty, dtype=np.float64)
    there = np.asarray(neighbour_certainty, dtype=np.float64)
    if printed:
        return here / (here + there) + noise
    # Deviation: as printed, a certain candidate moves away towards an uncertain neighbour, against
    # the text's purpose; and a delta outside [0, 1] extrapolates.
    return np.clip(there / (here + there) + noise, 0.0, 1.0)


def balancing_counts(labels: NDArray[np.integer[Any]], num_classes: int) -> NDArray[np.int64]:
    """Returns `[C]` how many synthetic instances each class needs to be as large as the largest
    one.

    A class with fewer than two instances gets none: there is nothing to interpolate between.

    References:
        ICED, section 2.4 (R repeats for each of m candidates).
    """
    # Deviation: R repeats a candidate overshoot or fall short of balance; what balances the classes
    # replaces them.
    counts = np.bincount(labels, minlength=num_classes)
    return np.where(counts >= 2, counts.max(initial=0) - counts, 0).astype(np.int64)


def balancing_weights(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns a weight a row, `[N, 1]`, with mean 1, by which the classes that occur in the class
    probabilities `[N, C]` count alike: the control of synthesis.
    """
    counts = targets.sum(axis=0)
    present = int((counts > 0).sum())
    by_class = np.divide(
        len(targets) / max(present, 1), counts, out=np.zeros_like(counts), where=counts > 0
    )
    return (targets @ by_class)[:, None]


@dataclasses.dataclass(frozen=True)
class Synthetic:
    """Synthetic points: `embeddings` `[S, h]`, and the `[S]` candidate and neighbour rows and
    `weights` they come from.
    """

    embeddings: NDArray[np.float32]
    candidates: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    weights: NDArray[np.float64]


def synthesise(
    embeddings: NDArray[np.float32],
    rows: NDArray[np.int64],
    count: int,
    certainty: NDArray[Any],
    rng: np.random.Generator,
    *,
    k: int = 5,
    eta: float = 0.1,
    interpolation: str = "certainty",
) -> Synthetic:
    """Makes `count` synthetic embeddings of one class from its candidates.

    Each candidate is used `count // m` times and some of them, drawn at random, once more; its
    neighbour is drawn from its k nearest candidates (itself excluded, others at the same place
    not).

    Args:
        embeddings: `[N, h]`.
        rows: `[m]` the class's candidates, at least two.
        certainty: `[N]`.
        rng: of this class and round alone; one generator for several classes would give them the
            same draws when it is re-made.
        k: shrunk to m - 1 where there are fewer.
        eta: the noise on delta is uniform in (-eta, eta).
        interpolation: "certainty" (mended), "printed", or "uniform" (plain SMOTE).

    Raises:
        DataError: fewer than two candidates.
        UsageError: an argument out of range.

    References:
        ICED, equations 2.3 and 2.5; Chawla et al. (2002), SMOTE.
    """
    if interpolation not in INTERPOLATIONS:
        raise UsageError(
            "interpolation: expected 'certainty', 'printed' or 'uniform', received"
            f" {interpolation!r}"
        )
    if k < 1:
        raise UsageError(f"k: expected at least 1 neighbour, received {k}")
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
            sure[base], sure[other], noise, printed=interpolation != "certainty"
        )
    made = points[base] + weights[:, None].astype(points.dtype) * (points[other] - points[base])
    return Synthetic(made, rows[base], rows[other], weights)
