"""What the aggregators share that are a `LatentModel` and nothing else: one `fit`."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.base import Aggregator, apply_gold, tolerance, warn_not_converged
from neucrowd_tf.aggregation.majority_vote import majority_labels
from neucrowd_tf.aggregation.sums import Fit, LatentModel, Shard, run
from neucrowd_tf.arguments import argument, estimator, fitted, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations


# Deviation: IBCC, EBCC and BWA stop by their objective, not by how far a posterior moves, so that
# beliefs need not be kept.
@estimator
class IterativeAggregator(Aggregator):
    """Base of the methods that iterate over sums until their objective stops rising.

    Attributes: see `Aggregator`, and
        n_iter_, converged_, history_: `[n_iter_]` the objective after each iteration, which never
            falls; a ConvergenceWarning where it still rises after `max_iter`.
    """

    max_iter: int = argument(100, whole(1), "most iterations.")
    tol: float = argument(
        1e-6, tolerance, "stops when the objective rises by less than this for each annotation."
    )
    n_iter_: int = fitted()
    history_: NDArray[np.float64] = fitted()
    converged_: bool = fitted()

    def _fit(self, crowd: Annotations, gold: NDArray[np.int64] | None) -> None:
        shard = Shard(crowd.one_hot(), crowd.num_classes, gold)
        found = self._best(shard)
        self.history_, self.n_iter_ = found.history, len(found.history)
        self.converged_ = found.converged
        self._store(found, shard)
        rows = np.flatnonzero(~self.annotated_)
        self.probas_[rows] = self.priors_
        apply_gold(self.probas_, gold)
        self.labels_ = majority_labels(self.probas_, self.ties, self.seed)
        if not found.converged:
            warn_not_converged(type(self).__name__, self.max_iter, found.change, self.tol)

    def _best(self, shard: Shard) -> Fit[Any]:
        return run(self._model(shard), shard, max_iter=self.max_iter, tol=self.tol)

    @abc.abstractmethod
    def _model(self, shard: Shard) -> LatentModel[Any]:
        """Returns the method for annotations of this size."""

    @abc.abstractmethod
    def _store(self, found: Fit[Any], shard: Shard) -> None:
        """Sets `probas_`, `priors_`, `errors_` and `skills_`."""
