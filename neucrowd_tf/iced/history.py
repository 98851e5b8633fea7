"""What the rounds leave: labels, candidates, counts; and warnings about classes that lacked
instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.iced.inference import Inference

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INFERENCE = ("probas", "priors", "errors", "permutation")


class RoundHistory:
    """The rounds so far; its arrays are part of each checkpoint, and all else that a round depends
    on follows from the networks' weights and the seed.

    Args:
        inference: of the real annotations alone, before any synthesis (D&S-orig).

    Attributes:
        inference: the last one.
        labels: `[rounds + 1, N]` inferred labels of the real instances.
        permutations: `[rounds + 1, C]`, see `Inference`.
        candidates: `[rounds, N]` the class that each instance was a candidate of.
        synthetic: `[rounds, C]` how many instances were made of each class.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.labels = inference.labels[None].astype(np.int16)
        self.permutations = inference.permutation[None].astype(np.int16)
        self.candidates = self.labels[:0]
        self.synthetic = np.zeros((0, len(inference.priors)), np.int64)

    def add(
        self, candidates: NDArray[np.int64], counts: NDArray[np.int64], inference: Inference
    ) -> float:
        """Adds a round and returns the share of the inferred labels that it changed."""

        def joined(rows: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([rows, row[None].astype(rows.dtype)])

        self.inference = inference
        self.labels = joined(self.labels, inference.labels[: self.labels.shape[1]])
        self.permutations = joined(self.permutations, inference.permutation)
        self.candidates = joined(self.candidates, candidates)
        self.synthetic = joined(self.synthetic, counts)
        return float(np.mean(self.labels[-1] != self.labels[-2]))

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        rows = {name: value for name, value in vars(self).items() if name != "inference"}
        return rows | {name: getattr(self.inference, name) for name in _INFERENCE}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `get_state` returned."""
        self.inference = Inference(*(state[name] for name in _INFERENCE))
        self.labels, self.permutations = state["labels"], state["permutations"]
        self.candidates, self.synthetic = state["candidates"], state["synthetic"]


def settled(changed: Sequence[float], tol: float | None) -> bool:
    """Whether the last round changed no larger share of the inferred labels than `tol`; the first
    one, which brings in synthetic instances, does not count.

    Args:
        changed: the share that each round changed, so far.
        tol: None never stops.

    References:
        ICED, algorithm 1, line 6.
    """
    return tol is not None and len(changed) > 1 and changed[-1] <= tol


def shortages(
    history: RoundHistory,
    used: NDArray[np.bool_],
    names: NDArray[Any],
    k: int,
    balance: str = "synthesis",
) -> list[str]:
    """Returns what kept classes from being balanced, and permuted classes, as sentences for a
    warning.

    Args:
        used: `[C]` whether any annotator gave the class.
        names: `[C]` of the classes.
        k: neighbours that were asked for.
        balance: without synthesis no class can be short of candidates.
    """
    rounds, size = len(history.candidates), len(names)
    counts = (history.candidates[:, :, None] == np.arange(size)).sum(axis=1)
    shown = [repr(name) for name in names.tolist()]

    def classes(cases: NDArray[np.bool_]) -> str:
        return ", ".join(
            f"{shown[c]} in {n} of {rounds} rounds"
            for c, n in enumerate(cases.sum(axis=0))
            if n and used[c]
        )

    said = []
    if not used.all():
        unused = ", ".join(shown[c] for c in np.flatnonzero(~used))
        said.append(f"no annotator used the class {unused}: it is never synthesised or inferred")
    synthesised = balance == "synthesis"
    if few := classes((counts < 2) & synthesised):
        said.append(f"fewer than two candidates, too few to synthesise from: class {few}")
    if short := classes((counts >= 2) & (counts <= k) & synthesised):
        said.append(
            f"fewer than k = {k} neighbours among the candidates, so k was shrunk: class {short}"
        )
    mended = int((history.permutations != np.arange(size)).any(axis=1).sum())
    if mended:
        said.append(
            f"the inference permuted the classes in {mended} of {rounds + 1} runs; they were put"
            " back in place by the votes"
        )
    return said
