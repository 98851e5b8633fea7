"""Which pseudo-annotations join the training data in a round: confidence and selections.

DASC's selection and those that it is compared with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Array, Floats32, Indices
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.dasc.quotas import allocate, fractions

_CELLS_AT_ONCE = 1 << 22

Selector = Callable[["Candidates", int, np.random.Generator], "Indices"]


class PredictsAnnotators(Protocol):
    """A fitted estimator that predicts each annotator's label."""

    def predict_annotators(self, features: ArrayLike) -> Array:
        """Returns probabilities `[N, R, C]`."""
        ...


def entropy(probabilities: Array) -> Floats32:
    """Returns `-sum_c p_c log p_c` over the last axis, in nats; 0 log 0 is 0.

    Args:
        probabilities: `[..., C]`.

    References:
        DASC, eq. 2.
    """
    p = np.asarray(probabilities, dtype=np.float32)
    # Sums of -p log p of nearly certain predictions round to just below zero.
    return np.maximum(
        -(p * np.log(np.maximum(p, np.float32(1e-30)))).sum(axis=-1, dtype=np.float32),
        np.float32(0.0),
    )


def pseudo_annotations(
    estimator: PredictsAnnotators, features: Array, num_annotators: int, num_classes: int
) -> tuple[Array, Floats32]:
    """Returns each annotator's most probable label of each instance, and how uncertain it is.

    The cells are predicted a block of instances at a time, so that no array of size N x R x C is
    made.

    Args:
        estimator: fitted.
        features: `[N, ...]`.
        num_annotators: R.
        num_classes: C.

    Returns:
        labels `[N, R]` (int8 up to 127 classes, else int32) and entropies `[N, R]` float32.

    Raises:
        DataError: the estimator's predictions have another shape, or are not finite.
    """
    size = len(features)
    labels = np.empty((size, num_annotators), dtype=np.int8 if num_classes <= 127 else np.int32)
    uncertainty = np.empty((size, num_annotators), dtype=np.float32)
    rows = max(1, _CELLS_AT_ONCE // max(1, num_annotators * num_classes))
    for start in range(0, size, rows):
        block = slice(start, min(start + rows, size))
        probabilities = estimator.predict_annotators(features[block])
        expected = (block.stop - start, num_annotators, num_classes)
        if probabilities.shape != expected:
            raise DataError(
                f"predict_annotators: expected shape {expected}, received {probabilities.shape}"
            )
        labels[block] = probabilities.argmax(axis=2)
        uncertainty[block] = entropy(probabilities)
    if not np.isfinite(uncertainty).all():
        row, annotator = np.argwhere(~np.isfinite(uncertainty))[0]
        raise DataError(
            f"predict_annotators: instance {row}, annotator {annotator}: expected probabilities,"
            " received values that are not finite"
        )
    return labels, uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """The cells that may be selected, and the model's predictions for them.

    Attributes:
        cells: `[K]` positions in the flattened `[N, R]` matrix.
        labels: `[K]` predicted class codes.
        entropies: `[K]` float32.
        generated: N'_c of eq. 4, `[C]`: how many pseudo-annotations of each class were generated,
            selected earlier or not.
        hand_on: whether other classes get what an exhausted class cannot fill.
    """

    cells: Indices
    labels: Array
    entropies: Floats32
    generated: Indices
    hand_on: bool = dataclasses.field(default=True, kw_only=True)

    @property
    def available(self) -> Indices:
        """How many candidates each class has, `[C]`."""
        return np.bincount(self.labels, minlength=len(self.generated))


def _most_confident(
    candidates: Candidates, members: Indices, number: int, rng: np.random.Generator
) -> Indices:
    """Returns the `number` members of least entropy; the lot decides between equal ones."""
    if number <= 0:
        return members[:0]
    shuffled = rng.permutation(members)
    return shuffled[np.argsort(candidates.entropies[shuffled], kind="stable")[:number]]


def _by_class(
    candidates: Candidates, shares: Array, total: int, rng: np.random.Generator
) -> Indices:
    """Returns positions of the most confident candidates, from each class by its share `[C]`."""
    numbers = allocate(shares, candidates.available, total, hand_on=candidates.hand_on)
    chosen = []
    for code, number in enumerate(numbers):
        members = np.flatnonzero(candidates.labels == code)
        chosen.append(_most_confident(candidates, members, number, rng))
    return np.sort(np.concatenate(chosen))


def select_dasc(candidates: Candidates, total: int, rng: np.random.Generator) -> Indices:
    """Returns the positions of the M_c = tau_c M most confident of each class c.

    References:
        DASC, section 3.2.1.
    """
    return _by_class(candidates, fractions(candidates.generated), total, rng)


def select_equal(candidates: Candidates, total: int, rng: np.random.Generator) -> Indices:
    """Returns the same number of each class that is predicted at all, most confident first."""
    predicted = candidates.available > 0
    return _by_class(candidates, predicted / max(1, predicted.sum()), total, rng)


def select_confidence(candidates: Candidates, total: int, rng: np.random.Generator) -> Indices:
    """Returns the M most confident, whatever their class."""
    return np.sort(_most_confident(candidates, np.arange(len(candidates.cells)), total, rng))


def select_random(candidates: Candidates, total: int, rng: np.random.Generator) -> Indices:
    """Returns M candidates at random."""
    return np.sort(rng.permutation(len(candidates.cells))[:total])


SELECTORS: dict[str, Selector] = {
    "dasc": select_dasc,
    "confidence": select_confidence,
    "random": select_random,
    "equal": select_equal,
}
