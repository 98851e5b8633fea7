"""The form in which iterative truth-inference methods are written: sums over annotations.

A method is a `LatentModel`. Given its parameters, what it believes of an instance depends on that
instance's annotations alone (`e_step`), and its next parameters depend on sums over instances alone
(`sums`, `m_step`). So the annotations may lie in shards, on several machines, and the beliefs need
not be kept between iterations:

    sums = total(model.statistics(shard) for shard in shards)
    while not converged:
        parameters = model.m_step(sums, parameters)
        sums = total(model.statistics(shard, parameters) for shard in shards)
        objective = model.objective(sums, parameters)

`run` does this for one shard in memory, where the beliefs are kept for the last step.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from neucrowd_tf.aggregation.base import (
    Codes,
    apply_gold,
    expected_counts,
    normalise_log,
    vote_shares,
)
from neucrowd_tf.declare.types import Floats, Indices

Parameters = TypeVar("Parameters")
Sums: TypeAlias = "dict[str, Floats]"

# The least probability of which a logarithm is taken: zero would make an instance impossible under
# every class.
TINY = 1e-300


@dataclasses.dataclass(frozen=True, eq=False)
class Shard:
    """The annotations of some instances.

    Attributes:
        one_hot: `[n, R * C]` CSR with the weight of each annotation (one, as a rule) at column
            `annotator * C + label`.
        num_classes: C.
        gold: `[n]` class codes, -1 where unknown; None without gold labels.
    """

    one_hot: sparse.csr_matrix
    num_classes: int
    gold: Codes | None = None

    @property
    def num_annotators(self) -> int:
        """R, the number of annotators."""
        return int(self.one_hot.shape[1] // self.num_classes)

    @cached_property
    def transposed(self) -> sparse.csc_matrix:
        """`one_hot.T`, `[R * C, n]`."""
        return self.one_hot.T

    @cached_property
    def annotator_weights(self) -> sparse.csr_matrix:
        """`[n, R]` CSR with the summed weight of an annotator's labels of an instance."""
        weights = sparse.csr_matrix(
            (self.one_hot.data, self.one_hot.indices // self.num_classes, self.one_hot.indptr),
            shape=(self.one_hot.shape[0], self.num_annotators),
            copy=True,  # the sums are formed in place, and `one_hot` is shared
        )
        weights.sum_duplicates()
        return weights

    @cached_property
    def cells(self) -> tuple[Codes, Codes, Codes]:
        """`[A]` instance, annotator and label of each stored entry of `one_hot`, in its order."""
        rows = np.repeat(np.arange(self.one_hot.shape[0]), np.diff(self.one_hot.indptr))
        columns = self.one_hot.indices.astype(np.int64)
        return rows, columns // self.num_classes, columns % self.num_classes

    @cached_property
    def used(self) -> Floats:
        """`[n]` one where an instance has an annotation or a gold label, else zero."""
        labelled = np.diff(self.one_hot.indptr) > 0
        if self.gold is not None:
            labelled = labelled | (self.gold >= 0)
        return labelled.astype(np.float64)

    def votes(self) -> Floats:
        """Returns `[n, C]` shares of the votes, gold labels in their place."""
        return apply_gold(vote_shares(self.one_hot, self.num_classes), self.gold)


def total(parts: Iterable[Sums]) -> Sums:
    """Returns the sums over all shards from those of each; shards without sums are skipped."""
    added: Sums = {}
    for sums in filter(None, parts):
        if added:
            added = {key: added[key] + value for key, value in sums.items()}
        else:
            added = dict(sums)
    return added


class LatentModel(abc.ABC, Generic[Parameters]):
    """A method whose parameters are a function of sums over instances.

    Attributes:
        parameters_type: the dataclass of its parameters, all arrays.
    """

    parameters_type: ClassVar[type]

    def start(self, shard: Shard) -> Floats:
        """Returns the beliefs `[n, K]` to begin with: shares of votes."""
        return shard.votes()

    @abc.abstractmethod
    def e_step(self, shard: Shard, parameters: Parameters) -> tuple[Floats, Sums]:
        """Returns the beliefs `[n, K]` and the terms of the objective that instances add to."""

    @abc.abstractmethod
    def sums(self, shard: Shard, beliefs: Floats) -> Sums:
        """Returns what the next parameters depend on, summed over the shard's instances."""

    @abc.abstractmethod
    def m_step(self, sums: Sums, parameters: Parameters | None) -> Parameters:
        """Returns the next parameters; `parameters` are the last ones, None the first time."""

    @abc.abstractmethod
    def objective(self, sums: Sums, parameters: Parameters) -> float:
        """Returns what the iterations raise, from the `statistics` under `parameters`."""

    def probas(self, beliefs: Floats, parameters: Parameters) -> Floats:
        """Returns class probabilities `[n, C]` from the beliefs under these parameters."""
        return beliefs

    def priors(self, parameters: Parameters) -> Floats:
        """Returns the class prior `[C]`; by default that is a parameter of this name."""
        return parameters.priors  # type: ignore[attr-defined]

    def errors(self, parameters: Parameters) -> Floats | None:
        """Returns `[R, C true, C observed]`, or None if the method has no such probabilities."""
        return None

    def soft(self) -> LatentModel[Parameters]:
        """Returns the model whose E-step gives posteriors; another one only for hard EM."""
        return self

    def statistics(self, shard: Shard, parameters: Parameters | None = None) -> Sums:
        """Returns a shard's part in the sums: `sums` of its beliefs, and those of `e_step`."""
        if parameters is None:
            return self.sums(shard, self.start(shard))
        beliefs, evidence = self.e_step(shard, parameters)
        return {**self.sums(shard, beliefs), **evidence}


@dataclasses.dataclass(frozen=True, eq=False)
class Fit(Generic[Parameters]):
    """What `run` returns.

    Attributes:
        beliefs: `[N, K]` from an E-step of the soft model with `parameters`.
        parameters: of the last M-step.
        history: `[n_iter]` the objective after each iteration.
        converged: whether the last iteration raised it, for each unit of weight, by less than the
            tolerance.
        change: by how much it did; infinity after one iteration.
    """

    beliefs: Floats
    parameters: Parameters
    history: Floats
    converged: bool
    change: float


def run(
    model: LatentModel[Parameters],
    shard: Shard,
    *,
    max_iter: int,
    tol: float,
    beliefs: Floats | None = None,
    resume_from: Fit[Parameters] | None = None,
) -> Fit[Parameters]:
    """Iterates on annotations in memory; ends with an E-step, so that beliefs and parameters agree.

    Args:
        model: the method.
        shard: all annotations.
        max_iter: most iterations, from 1.
        tol: stops when the objective rises by less than this for each unit of weight.
        beliefs: `[N, K]` to begin with instead of the model's own.
        resume_from: an earlier run to go on with, whose iterations count.

    Raises:
        ValueError: a `max_iter` below 1, or both `beliefs` and `resume_from`.
    """
    if max_iter < 1:
        raise ValueError(f"max_iter: expected a whole number from 1, received {max_iter}")
    if beliefs is not None and resume_from is not None:
        raise ValueError("run: expected beliefs or resume_from, received both")
    scale = float(shard.one_hot.data.sum()) or 1.0  # without annotations
    parameters: Any = None  # set by the first iteration, or by `resume_from`
    history = []
    change = np.inf
    if resume_from is not None:
        parameters = resume_from.parameters
        history = resume_from.history.tolist()
        change = resume_from.change
        beliefs = resume_from.beliefs
        if model.soft() is not model:  # the run to resume had the soft model's beliefs
            beliefs = model.e_step(shard, parameters)[0]
    elif beliefs is None:
        beliefs = model.start(shard)
    sums = model.sums(shard, beliefs)
    for _ in range(max_iter - len(history)):
        parameters = model.m_step(sums, parameters)
        beliefs, evidence = model.e_step(shard, parameters)
        sums = model.sums(shard, beliefs)
        history.append(model.objective({**sums, **evidence}, parameters))
        if len(history) > 1:
            change = (history[-1] - history[-2]) / scale
            if change < tol:
                break
    if model.soft() is not model:
        beliefs = model.soft().e_step(shard, parameters)[0]
    return Fit(beliefs, parameters, np.array(history), change < tol, float(change))


class ConfusionModel(LatentModel[Parameters]):
    """A model in which an annotator's labels depend on the class alone.

    Its sums are counts `[R, C, C]`, class mass `[C]` and the number of instances.
    """

    @abc.abstractmethod
    def log_errors(self, parameters: Parameters) -> Floats:
        """Returns `[R * C observed, C true]` log probabilities, or their expectations."""

    @abc.abstractmethod
    def log_priors(self, parameters: Parameters) -> Floats:
        """Returns `[C]` log class priors, or their expectations."""

    def e_step(self, shard: Shard, parameters: Parameters) -> tuple[Floats, Sums]:
        """Returns `[n, C]` posteriors and their log evidence."""
        scores = shard.one_hot @ self.log_errors(parameters)
        keep_gold_only(scores, shard.gold)
        evidence = normalise_log(scores, self.log_priors(parameters))
        return scores, {"evidence": evidence.sum()}

    def sums(self, shard: Shard, beliefs: Floats) -> Sums:
        """Returns expected counts `[R, C observed, C true]`, class mass and number of instances."""
        counts = expected_counts(shard.transposed, beliefs)
        mass = np.einsum("nc,n->c", beliefs, shard.used)  # a BLAS call is slower on this shape
        return {"counts": counts, "mass": mass, "instances": shard.used.sum()}


def keep_gold_only(scores: Floats, gold: Codes | None, classes: Codes | None = None) -> None:
    """Makes every class but the gold one impossible, in place, where there is a gold label.

    Args:
        scores: `[n, K]` log likelihoods.
        gold: `[n]` class codes, -1 if unknown; None without gold labels.
        classes: `[K]` the class of each column; by default column k is class k.
    """
    if gold is None:
        return
    if classes is None:
        classes = np.arange(scores.shape[1])
    rows = np.flatnonzero(gold >= 0)
    scores[rows] = np.where(classes == gold[rows, None], scores[rows], -np.inf)


def counts_against(shard: Shard, labels: Codes) -> Floats:
    """Returns counts `[R, C observed, C reference]` of annotators' labels against `labels` `[n]`.

    Instances with -1 are left out.
    """
    chosen = np.eye(shard.num_classes)[labels] * (labels >= 0)[:, None]
    return expected_counts(shard.transposed, chosen)


def skills_against(shard: Shard, labels: Codes) -> Floats:
    """Returns `[R]` the share of an annotator's labels that are `labels` `[n]`, -1 if unknown.

    It is 1 / C for annotators without a comparable label.
    """
    rows, annotators, observed = shard.cells
    expected = labels[rows]
    weight = shard.one_hot.data
    right = np.bincount(annotators, weight * (observed == expected), shard.num_annotators)
    compared = np.bincount(annotators, weight * (expected >= 0), shard.num_annotators)
    chance = np.full(shard.num_annotators, 1.0 / shard.num_classes)
    return np.divide(right, compared, out=chance, where=compared > 0)


def skills_of(counts: Floats | Indices, default: float) -> Floats:
    """Returns `[R]` the share of counts `[R, C, C]` on the diagonal; `default` without counts."""
    right = np.einsum("rcc->r", counts)
    labels = counts.sum(axis=(1, 2))
    return np.divide(right, labels, out=np.full(len(counts), default), where=labels > 0)
