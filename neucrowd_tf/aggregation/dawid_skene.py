"""Dawid and Skene's model: annotators' confusion matrices and true labels, estimated by EM."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy import sparse

from neucrowd_tf.aggregation.base import Prior, coin_errors, normalise_counts, resolve_prior
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import (
    TINY,
    ConfusionModel,
    Fit,
    Shard,
    Sums,
    keep_gold_only,
    run,
    skills_of,
)
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.types import Floats

# Deviation: Dawid and Skene 2.3. Paper: Relative frequencies. Here: Pseudo-counts of 0.01 are added
# to every cell (`smoothing`), so EM climbs the posterior under Dirichlet priors rather than the
# likelihood. Why: An annotator's few labels would make a label impossible. Effect: not measured.


@dataclasses.dataclass(frozen=True, eq=False)
class Confusion:
    """Parameters: class priors `[C]` and error matrices `[R, C observed, C true]`."""

    priors: Floats
    errors: Floats

    @cached_property
    def log_errors(self) -> Floats:
        """The logarithms of `errors`, which are computed once for all shards."""
        return np.log(np.maximum(self.errors, TINY))


@dataclasses.dataclass(frozen=True, eq=False)
class DawidSkeneModel(ConfusionModel[Confusion]):
    """Dawid and Skene's EM over sums.

    Attributes:
        pseudo: `[R or 1, C observed, C true]` pseudo-counts.
        prior: `[C]` class prior to hold, or None to estimate it.
        one_coin: one probability of being right for each annotator.
        hard: an instance counts for its most probable class alone (classification EM); the
            objective is then of the labels, too.
    """

    pseudo: Floats
    prior: Floats | None = None
    one_coin: bool = False
    hard: bool = False
    parameters_type = Confusion

    def log_errors(self, parameters: Confusion) -> Floats:
        """Returns `[R * C observed, C true]`."""
        return parameters.log_errors.reshape(-1, len(parameters.priors))

    def log_priors(self, parameters: Confusion) -> Floats:
        """Returns `[C]`."""
        return np.log(np.maximum(parameters.priors, TINY))

    def e_step(self, shard: Shard, parameters: Confusion) -> tuple[Floats, Sums]:
        """Returns equation 2.5's posteriors, or each row's likeliest class where `hard`."""
        if not self.hard:
            return super().e_step(shard, parameters)
        scores = shard.one_hot @ self.log_errors(parameters) + self.log_priors(parameters)
        keep_gold_only(scores, shard.gold)
        rows = np.arange(len(scores))
        best = scores.argmax(axis=1)
        evidence = scores[rows, best].sum()
        scores[:] = 0.0
        scores[rows, best] = 1.0
        return scores, {"evidence": evidence}

    def m_step(self, sums: Sums, parameters: Confusion | None) -> Confusion:
        """Returns equations 2.3 and 2.4."""
        if self.prior is not None:
            priors = self.prior
        else:
            priors = sums["mass"] / sums["instances"]
        smoothed = sums["counts"] + self.pseudo
        size = smoothed.shape[-1]
        if self.one_coin:
            return Confusion(priors, coin_errors(skills_of(smoothed, 1.0 / size), size))
        return Confusion(priors, normalise_counts(smoothed, axis=1))

    def objective(self, sums: Sums, parameters: Confusion) -> float:
        """Returns the log posterior of the parameters (and of the labels where `hard`)."""
        return float(sums["evidence"]) + float((self.pseudo * parameters.log_errors).sum())

    def errors(self, parameters: Confusion) -> Floats:
        """Returns `[R, C true, C observed]`."""
        return parameters.errors.transpose(0, 2, 1)

    def soft(self) -> DawidSkeneModel:
        """Returns the model that gives posteriors."""
        if self.hard:
            return dataclasses.replace(self, hard=False)
        return self


def dawid_skene_em(
    one_hot: sparse.csr_matrix,
    start: Floats,
    *,
    prior: Floats | None = None,
    smoothing: float = 0.01,
    hard: bool = False,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> Fit[Confusion]:
    """Runs EM in log space from given posteriors.

    It ends with an E-step, so that beliefs and parameters agree.

    Args:
        one_hot: `[N, R * C]` CSR with the weight of each annotation (one, as a rule) at column
            `annotator * C + label`.
        start: `[N, C]` posteriors to begin with.
        prior: `[C]` class prior to hold, or None to estimate it.
        smoothing: pseudo-count of every cell (a Dirichlet prior of 1 + smoothing).
        hard: whether an instance counts for its most probable class alone; the probabilities
            returned are the posteriors under the last parameters all the same.
        max_iter: most iterations.
        tol: stops when the objective rises by less than this for each annotation (for each unit of
            weight).

    References:
        Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
        algorithm: equations 2.3 (errors), 2.4 (prior), 2.5 (posterior); ICED, equations 2.1 and 2.2
        (the same joint and posterior, with Psi the errors and Phi the prior).
    """
    size = start.shape[1]
    model = DawidSkeneModel(np.full((1, size, size), smoothing), prior, hard=hard)
    beliefs = np.ascontiguousarray(start, dtype=np.float64)
    return run(model, Shard(one_hot, size), max_iter=max_iter, tol=tol, beliefs=beliefs)


@estimator
class DawidSkene(IterativeAggregator):
    """Dawid-Skene EM on sparse annotations, started from majority vote.

    Attributes: see `IterativeAggregator`; `history_` is the log posterior.

    An annotator without labels has uniform errors. If all annotators agree, the errors are near the
    identity. If each gave a label or two, any labels explain the data, and the most probable
    solution may put all instances into one class: hold the prior uniform.

    References:
        Dawid and Skene (1979), Applied Statistics 28(1). `hard=True` is Sinha, Rao and
        Balasubramanian (2018), Fast Dawid-Skene.
    """

    smoothing: Annotated[
        float, number(least=0), "pseudo-count of every cell of every confusion matrix."
    ] = 0.01
    prior: Annotated[
        Prior, '"update" estimates the class prior, "uniform" or an array `[C]` fixes it.'
    ] = "update"
    one_coin: Annotated[
        bool, "whether an annotator has one accuracy instead of a confusion matrix."
    ] = False
    hard: Annotated[
        bool,
        "whether an instance counts only for its most probable class in the M-step (Fast"
        " Dawid-Skene), which needs fewer iterations.",
    ] = False
    tol: float = 1e-7

    def latent_model(self, num_classes: int) -> DawidSkeneModel:
        """Returns the method as sums; its prior is estimated."""
        # One coin is one row drawn C times: it has as many pseudo-labels as one row.
        if self.one_coin:
            pseudo = self.smoothing / num_classes
        else:
            pseudo = self.smoothing
        counts = np.full((1, num_classes, num_classes), pseudo)
        return DawidSkeneModel(counts, None, self.one_coin, self.hard)

    def _model(self, crowd: Annotations, shard: Shard) -> DawidSkeneModel:
        prior = resolve_prior(self.prior, shard.num_classes)
        return dataclasses.replace(self.latent_model(shard.num_classes), prior=prior)
