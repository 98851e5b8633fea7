"""Which pseudo-annotations join the training data in a round: DASC's choice and those it is
compared with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.dasc.quotas import allocate, fractions

if TYPE_CHECKING:
    from numpy.typing import NDArray

SelectionName = Literal["dasc", "confidence", "random", "equal"]
Selector = Callable[["Candidates", int, np.random.Generator], "NDArray[np.int64]"]


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The cells that may be selected, and what the model says of them.

    Attributes:
        cells: `[K]` positions in the flattened `[N, R]` matrix.
        labels: `[K]` predicted class codes.
        entropies: `[K]` float32.
        num_classes: C.
        generated: N'_c `[C]`, how many pseudo-annotations of each class were generated, selected
            earlier or not; None counts the candidates.
    """

    cells: NDArray[np.int64]
    labels: NDArray[Any]
    entropies: NDArray[np.float32]
    num_classes: int
    generated: NDArray[np.int64] | None = None

    @property
    def available(self) -> NDArray[np.int64]:
        """How many candidates each class has, `[C]`."""
        return np.bincount(self.labels, minlength=self.num_classes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """N'_c of eq. 4, `[C]`."""
        return self.available if self.generated is None else self.generated

    def capped(
        self, per_instance: int, num_annotators: int, rng: np.random.Generator
    ) -> Candidates:
        """Returns the `per_instance` most confident candidates of each instance alone, equal ones
        by lot.
        """
        instances, lot = self.cells // num_annotators, rng.random(len(self.cells))
        order = np.lexsort((lot, self.entropies, instances))
        sorted_instances = instances[order]
        first = np.searchsorted(sorted_instances, sorted_instances)
        kept = np.sort(order[np.arange(len(order)) - first < per_instance])
        return dataclasses.replace(
            self, cells=self.cells[kept], labels=self.labels[kept], entropies=self.entropies[kept]
        )

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        entropies: NDArray[np.float32],
        taken: NDArray[np.bool_],
        num_classes: int,
    ) -> Candidates:
        """Returns the cells of `[N, R]` predictions where `taken` is False."""
        cells = np.flatnonzero(~taken)
        return cls(cells, labels.ravel()[cells], entropies.ravel()[cells], num_classes)


def _most_confident(
    entropies: NDArray[np.float32],
    members: NDArray[np.int64],
    number: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Returns the `number` members of least entropy; equal ones (often exactly 0) are decided by
    lot, not by position.
    """
    if number <= 0:
        return members[:0]
    shuffled = rng.permutation(members)
    return shuffled[np.argsort(entropies[shuffled], kind="stable")[:number]]


def by_class(
    candidates: Candidates, numbers: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Returns positions among the candidates: of each class the `numbers[c]` most confident
    ones."""
    parts = [
        _most_confident(
            candidates.entropies, np.flatnonzero(candidates.labels == code), int(number), rng
        )
        for code, number in enumerate(numbers)
    ]
    return np.sort(np.concatenate(parts))


def select_dasc(candidates: Candidates, total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The M_c = tau_c M most confident of each class c.

    References:
        DASC, section 3.2.1.
    """
    numbers = allocate(fractions(candidates.counts), candidates.available, total)
    return by_class(candidates, numbers, rng)


def select_equal(candidates: Candidates, total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same number of each class that is predicted at all, most confident first."""
    counts = candidates.available
    return by_class(
        candidates, allocate((counts > 0) / max(1, int((counts > 0).sum())), counts, total), rng
    )


def select_confidence(
    candidates: Candidates, total: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The M most confident, whatever their class."""
    return np.sort(
        _most_confident(candidates.entropies, np.arange(len(candidates.cells)), total, rng)
    )


def select_random(
    candidates: Candidates, total: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Any M."""
    return np.sort(rng.permutation(len(candidates.cells))[:total])


SELECTORS: dict[str, Selector] = {
    "dasc": select_dasc,
    "confidence": select_confidence,
    "random": select_random,
    "equal": select_equal,
}
