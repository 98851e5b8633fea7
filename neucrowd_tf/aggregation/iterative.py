"""The base of the aggregators that are a `LatentModel`: one `fit` for all of them."""

from __future__ import annotations

from typing import Annotated

from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    expected_skills,
    tolerance,
    warn_not_converged,
)
from neucrowd_tf.aggregation.sums import Fit, LatentModel, Shard, run
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, fitted, whole
from neucrowd_tf.declare.types import Floats


# Deviation: IBCC, EBCC, BWA, stopping. Paper: When no posterior moves by more than 0.001. Here:
# When the objective rises by less than 1e-6 an annotation. Why: Beliefs need not be kept between
# iterations. Effect: results/truth_inference.csv.
@estimator
class IterativeAggregator(Aggregator):
    """Base of the methods that iterate over sums until their objective stops rising.

    Attributes: see `Aggregator`, and
        n_iter_, converged_, history_: `[n_iter_]` the objective after each iteration, which never
            falls; a ConvergenceWarning if it still rises after `max_iter`.
    """

    max_iter: Annotated[int, whole(1), "largest number of iterations."] = 100
    tol: Annotated[
        float, tolerance, "stops when the objective rises by less than this for each annotation."
    ] = 1e-6
    n_iter_: int = fitted()
    history_: Floats = fitted()
    converged_: bool = fitted()

    def latent_model(self, num_classes: int) -> LatentModel:
        """Returns the method as sums, for any annotations of so many classes.

        Raises:
            NotImplementedError: the method needs to see all annotations first.
        """
        raise NotImplementedError

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        shard = Shard(crowd.one_hot(), crowd.num_classes, gold)
        model = self._model(crowd, shard)
        result = self._run(shard, model)
        self.history_ = result.history
        self.n_iter_ = len(result.history)
        self.converged_ = result.converged
        self._store(result, shard, model)
        self._conclude(gold)
        if not result.converged:
            warn_not_converged(type(self).__name__, self.max_iter, result.change, self.tol)

    def _model(self, crowd: Annotations, shard: Shard) -> LatentModel:
        return self.latent_model(shard.num_classes)

    def _run(self, shard: Shard, model: LatentModel) -> Fit:
        return run(model, shard, max_iter=self.max_iter, tol=self.tol)

    def _store(self, result: Fit, shard: Shard, model: LatentModel) -> None:
        """Sets `probas_`, `priors_`, `errors_` and `skills_`."""
        self.probas_ = model.probas(result.beliefs, result.parameters)
        self.priors_ = model.priors(result.parameters)
        self.errors_ = model.errors(result.parameters)
        if self.errors_ is not None:
            self.skills_ = expected_skills(self.errors_, self.priors_)
