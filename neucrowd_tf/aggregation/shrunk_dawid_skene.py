"""Dawid and Skene's model with every annotator drawn towards the crowd's average."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neucrowd_tf.aggregation.base import (
    Aggregator,
    apply_gold,
    vote_shares,
    without_convergence_warnings,
)
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.arguments import argument, estimator, fitted, number, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

# Added to every cell, so that no label is impossible.
LEAST_COUNT = 0.01


def average_confusion(crowd: Annotations, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the crowd's confusion matrix `[C true, C observed]` with vote shares as the truth.

    Args:
        crowd: with identities.
        shares: `[N, C]` shares of votes (a gold label has share 1).
    """
    counts = np.full((crowd.num_classes, crowd.num_classes), 1e-3)
    np.add.at(counts.T, crowd.labels, shares[crowd.instances])
    matrix: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
    return matrix


@estimator
class ShrunkDawidSkene(Aggregator):
    """Dawid-Skene EM whose confusion matrices are shrunk to the crowd's average matrix.

    The average is computed once, from vote shares. If it were estimated again in each iteration,
    sparse crowds would collapse onto one class.

    Attributes: see `Aggregator`, and
        n_iter_, history_, converged_: as in `DawidSkene`.

    Example:
        >>> from neucrowd_tf.datasets.bundled import load_cancer
        >>> labels = ShrunkDawidSkene().fit_predict(load_cancer(seed=0).annotations)
    """

    needs_identities: ClassVar[str | None] = "shrunk Dawid-Skene"

    strength: float = argument(
        4.0, number(least=0), "labels of the average annotator added for each true class."
    )
    max_iter: int = argument(100, whole(1), "most EM iterations.")
    n_iter_: int = fitted()
    history_: NDArray[np.float64] = fitted()
    converged_: bool = fitted()

    def _fit(self, crowd: Annotations, gold: NDArray[np.int64] | None) -> None:
        shares = apply_gold(vote_shares(crowd.one_hot(), crowd.num_classes), gold)
        pseudo_counts = self.strength * average_confusion(crowd, shares) + LEAST_COUNT
        model = DawidSkene(
            smoothing=pseudo_counts,
            max_iter=self.max_iter,
            tol=1e-6,
            ties=self.ties,
            seed=self.seed,
        )
        with without_convergence_warnings():
            model.fit(crowd, gold)
        for name in ("probas_", "priors_", "errors_", "skills_", "labels_"):
            setattr(self, name, getattr(model, name))
        self.history_, self.n_iter_ = model.history_, model.n_iter_
        self.converged_ = model.converged_
