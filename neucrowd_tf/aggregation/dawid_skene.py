"""Dawid and Skene's model: every annotator has a confusion matrix, estimated together with the true
labels by EM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy import sparse

from neucrowd_tf.aggregation.base import (
    Aggregator,
    GoldLabels,
    apply_gold,
    as_numbers,
    coin_errors,
    expected_skills,
    resolve_prior,
    tolerance,
    vote_shares,
    warn_not_converged,
)
from neucrowd_tf.aggregation.majority_vote import majority_labels
from neucrowd_tf.aggregation.sums import TINY, ConfusionModel, Shard, Sums, keep_gold_only, run
from neucrowd_tf.arguments import argument, estimator, fitted, flag, whole
from neucrowd_tf.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.aggregation.base import Prior
    from neucrowd_tf.annotations import Annotations

InitialErrors: TypeAlias = "Mapping[Hashable, ArrayLike] | ArrayLike | None"

# Deviation: pseudo-counts are added to equation 2.3, so EM climbs the posterior under Dirichlet
# priors rather than the likelihood; an annotator's few labels then never make an answer impossible.
# smoothing=0 is the paper's. Fast Dawid-Skene begins with shares of votes, too.


@dataclasses.dataclass(frozen=True)
class EMResult:
    """What `dawid_skene_em` returns.

    Attributes:
        probas: `[N, C]`, from an E-step with `priors` and `errors`.
        priors: `[C]`.
        errors: `[R, C true class, C observed class]`.
        history: `[n_iter]` log posterior after each iteration: log likelihood plus smoothing times
            the sum of log errors.
        converged: whether the last iteration raised it by less than the tolerance.
    """

    probas: NDArray[np.float64]
    priors: NDArray[np.float64]
    errors: NDArray[np.float64]
    history: NDArray[np.float64]
    converged: bool


@dataclasses.dataclass(frozen=True)
class Confusion:
    """Parameters: class priors `[C]` and error matrices `[R, C observed, C true]`."""

    priors: NDArray[np.float64]
    errors: NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class DawidSkeneModel(ConfusionModel[Confusion]):
    """Dawid and Skene's EM over sums.

    Attributes:
        pseudo: `[R, C observed, C true]` pseudo-counts.
        prior: `[C]` class prior to hold, or None to estimate it.
        one_coin: one probability of being right for each annotator.
        hard: an instance counts for its most probable class alone (classification EM); the
            objective is then of the labels, too.
    """

    pseudo: NDArray[np.float64]
    prior: NDArray[np.float64] | None = None
    one_coin: bool = False
    hard: bool = False

    def log_errors(self, parameters: Confusion) -> NDArray[np.float64]:
        """Returns `[R * C observed, C true]`."""
        size = len(parameters.priors)
        return np.log(np.maximum(parameters.errors, TINY)).reshape(-1, size)

    def log_priors(self, parameters: Confusion) -> NDArray[np.float64]:
        """Returns `[C]`."""
        return np.log(np.maximum(parameters.priors, TINY))

    def e_step(self, shard: Shard, parameters: Confusion) -> tuple[NDArray[np.float64], Sums]:
        """Returns equation 2.5's posteriors, or each row's likeliest class where `hard`."""
        if not self.hard:
            return super().e_step(shard, parameters)
        scores = shard.one_hot @ self.log_errors(parameters) + self.log_priors(parameters)
        if shard.gold is not None:
            keep_gold_only(scores, shard.gold)
        rows, best = np.arange(len(scores)), scores.argmax(axis=1)
        evidence = scores[rows, best].sum()
        scores[:] = 0.0
        scores[rows, best] = 1.0
        return scores, {"evidence": evidence}

    def m_step(self, sums: Sums, parameters: Confusion | None) -> Confusion:
        """Returns equations 2.3 and 2.4."""
        errors = _m_step_errors(sums["counts"], self.pseudo, self.one_coin)
        priors = self.prior if self.prior is not None else sums["mass"] / sums["instances"]
        return Confusion(priors, errors)

    def objective(self, sums: Sums, parameters: Confusion) -> float:
        """Returns the log posterior of the parameters (and of the labels where `hard`)."""
        return float(sums["evidence"]) + float(
            (self.pseudo * np.log(np.maximum(parameters.errors, TINY))).sum()
        )


def _m_step_errors(
    counts: NDArray[np.float64], smoothing: NDArray[np.float64], one_coin: bool
) -> NDArray[np.float64]:
    """Returns error matrices `[R, C observed, C true]` from expected counts and pseudo-counts of
    that layout.
    """
    smoothed = counts + smoothing
    size = counts.shape[-1]
    if one_coin:
        right = np.einsum("rcc->r", smoothed)
        total = smoothed.sum(axis=(1, 2))
        skill = np.divide(right, total, out=np.full(len(total), 1.0 / size), where=total > 0)
        return coin_errors(skill, size)
    total = smoothed.sum(axis=1, keepdims=True)
    return np.divide(smoothed, total, out=np.full_like(smoothed, 1.0 / size), where=total > 0)


def dawid_skene_em(
    one_hot: sparse.csr_matrix,
    start: NDArray[np.float64],
    *,
    prior: NDArray[np.float64] | None = None,
    smoothing: float | NDArray[np.float64] = 0.01,
    one_coin: bool = False,
    hard: bool = False,
    gold: NDArray[np.int64] | None = None,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> EMResult:
    """Runs EM in log space from given posteriors; ends with an E-step, so that probabilities and
    parameters agree.

    Args:
        one_hot: `[N, R * C]` CSR with the weight of each annotation (one, as a rule) at column
            `annotator * C + label`.
        start: `[N, C]` posteriors to begin with.
        prior: `[C]` class prior to hold, or None to estimate it.
        smoothing: pseudo-counts that broadcast to `[R, C true, C observed]` (a Dirichlet prior of 1
            + smoothing). The one-coin variant sums them over right and wrong answers of an
            annotator, divided by C.
        one_coin: one probability of being right for each annotator, errors equally likely among the
            other classes.
        hard: whether an instance counts for its likeliest class alone; the probabilities returned
            are the posteriors under the last parameters all the same.
        gold: `[N]` known class codes, -1 where unknown.
        max_iter: most iterations.
        tol: stops when the objective rises by less than this for each annotation (for each unit of
            weight).

    References:
        Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
        algorithm: equations 2.3 (errors), 2.4 (prior), 2.5 (posterior); ICED, equations 2.1 and 2.2
        (the same joint and posterior, with Psi the errors and Phi the prior).
    """
    num_classes = start.shape[1]
    pseudo = np.broadcast_to(
        np.asarray(smoothing, dtype=np.float64),
        (one_hot.shape[1] // num_classes, num_classes, num_classes),
    ).transpose(0, 2, 1)
    if one_coin:
        pseudo = (
            pseudo / num_classes
        )  # the matrix is one row drawn C times: as many pseudo-answers as one row has
    shard = Shard(one_hot, num_classes, gold)
    begin = apply_gold(np.ascontiguousarray(start, dtype=np.float64).copy(), gold)
    model = DawidSkeneModel(pseudo, prior, one_coin, hard)
    found = run(model, shard, max_iter=max_iter, tol=tol, start=begin)
    probas, last = found.beliefs, found.parameters
    if hard:
        probas, _ = dataclasses.replace(model, hard=False).e_step(shard, last)
    return EMResult(
        probas, last.priors, last.errors.transpose(0, 2, 1), found.history, found.converged
    )


@estimator
class DawidSkene(Aggregator):
    """Dawid-Skene EM on sparse annotations, started from majority vote.

    Attributes: see `Aggregator`, and
        n_iter_: iterations done.
        history_: `[n_iter_]` the log posterior after each, which never falls.
        converged_: whether it stopped before `max_iter`; a ConvergenceWarning otherwise.

    An annotator without labels has uniform errors. Where all annotators agree, the errors are near
    the identity. Where each gave a label or two, any labels explain the data, and the likeliest
    solution may put all instances into one class: hold the prior uniform.

    References:
        Dawid and Skene (1979), Applied Statistics 28(1). `hard=True` is Sinha, Rao and
        Balasubramanian (2018), Fast Dawid-Skene.
    """

    needs_identities: ClassVar[str | None] = "Dawid-Skene"

    smoothing: float | ArrayLike = argument(
        0.01,
        None,
        "pseudo-count for every cell of every confusion matrix; or an array that broadcasts to"
        " `[R, C true class, C observed class]`, for what is known of annotators beforehand.",
    )
    prior: Prior = argument(
        "update",
        None,
        '"update" estimates the class prior, "uniform" holds it uniform, an array `[C]` or'
        " `{class: probability}` holds that.",
    )
    one_coin: bool = argument(
        False, flag, "one probability of being right for each annotator instead of a matrix."
    )
    hard: bool = argument(
        False,
        flag,
        "an instance counts for its likeliest class alone while estimating (Fast Dawid-Skene):"
        " fewer iterations.",
    )
    initial_errors: InitialErrors = argument(
        None,
        None,
        "error matrices to start from instead of the majority vote: `[R, C true, C observed]`, or"
        " `{annotator: [C, C]}`, where annotators left out start from majority vote.",
    )
    max_iter: int = argument(100, whole(1), "most EM iterations.")
    tol: float = argument(
        1e-7, tolerance, "stops when the objective rises by less than this for each annotation."
    )
    n_iter_: int = fitted()
    history_: NDArray[np.float64] = fitted()
    converged_: bool = fitted()

    def fit(
        self,
        annotations: Annotations | ArrayLike,
        gold_labels: GoldLabels = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Estimates labels, prior and confusion matrices.

        Args:
            annotations: `Annotations` with identities, or a dense `[N, R]` matrix with -1 for
                missing.
            gold_labels: see `gold_codes`; these instances keep their labels and teach the confusion
                matrices.
            weights: `[A]` weight of each annotation, or None for one each.

        Raises:
            IdentitiesError: vote counts only.
            DataError: no annotation, or gold labels, weights, prior or initial errors that cannot
                be used.
            UsageError: an argument out of range.
        """
        crowd, gold = self._start(annotations, gold_labels)
        prior = resolve_prior(self.prior, crowd.class_names)
        smoothing = self._smoothing(crowd)
        one_hot = crowd.one_hot() if weights is None else _weighted_one_hot(crowd, weights)
        start = apply_gold(vote_shares(one_hot, crowd.num_classes), gold)
        if self.initial_errors is not None:
            start = self._start_from_errors(crowd, one_hot, start, prior, smoothing, gold)
        found = dawid_skene_em(
            one_hot,
            start,
            prior=prior,
            smoothing=smoothing,
            one_coin=self.one_coin,
            hard=self.hard,
            gold=gold,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.probas_, self.priors_, self.errors_ = found.probas, found.priors, found.errors
        self.skills_ = expected_skills(found.errors, found.priors)
        self.labels_ = majority_labels(found.probas, self.ties, self.seed)
        self.history_, self.n_iter_, self.converged_ = (
            found.history,
            len(found.history),
            found.converged,
        )
        if not found.converged:
            change = (
                np.diff(found.history)[-1] / crowd.num_annotations if self.n_iter_ > 1 else np.inf
            )
            warn_not_converged("DawidSkene", self.max_iter, change, self.tol, stacklevel=3)
        return self

    def _smoothing(self, crowd: Annotations) -> NDArray[np.float64]:
        pseudo = as_numbers(self.smoothing, "smoothing")
        shape = (crowd.num_annotators, crowd.num_classes, crowd.num_classes)
        try:
            np.broadcast_to(pseudo, shape)
        except ValueError:
            raise DataError(
                f"smoothing: expected a number or an array that broadcasts to {shape}, received"
                f" shape {pseudo.shape}"
            ) from None
        if not np.isfinite(pseudo).all() or (pseudo < 0).any():
            raise UsageError(
                "smoothing: expected numbers from 0, received"
                f" {pseudo.min() if pseudo.size else pseudo}"
            )
        return pseudo

    def _start_from_errors(
        self,
        crowd: Annotations,
        one_hot: sparse.csr_matrix,
        start: NDArray[np.float64],
        prior: NDArray[np.float64] | None,
        smoothing: NDArray[np.float64],
        gold: NDArray[np.int64] | None,
    ) -> NDArray[np.float64]:
        """Returns posteriors under `initial_errors`, with majority vote's errors for annotators
        that it leaves out.
        """
        size = crowd.num_classes
        shape = (crowd.num_annotators, size, size)
        pseudo = np.broadcast_to(smoothing, shape).transpose(0, 2, 1)
        errors = _m_step_errors(np.asarray(one_hot.T @ start).reshape(shape), pseudo, self.one_coin)
        if isinstance(self.initial_errors, Mapping):
            position = {name: code for code, name in enumerate(crowd.annotator_names.tolist())}
            for name, matrix in self.initial_errors.items():
                if name not in position:
                    raise DataError(
                        f"initial_errors: expected annotators of the data, received {name!r}"
                    )
                errors[position[name]] = _error_matrix(
                    matrix, (size, size), f"initial_errors[{name!r}]"
                ).T
        else:
            errors = _error_matrix(self.initial_errors, shape, "initial_errors").transpose(0, 2, 1)
        held = prior if prior is not None else start[crowd.annotated].mean(axis=0)
        model = DawidSkeneModel(pseudo)
        return model.e_step(Shard(one_hot, size, gold), Confusion(held, errors))[0]


def _weighted_one_hot(crowd: Annotations, weights: ArrayLike) -> sparse.csr_matrix:
    array = as_numbers(weights, "weights")
    if (
        array.shape != crowd.labels.shape
        or not np.isfinite(array).all()
        or (array < 0).any()
        or not array.any()
    ):
        raise DataError(
            f"weights: expected {len(crowd.labels)} finite numbers from 0, not all 0, received"
            f" shape {array.shape}"
        )
    columns = crowd.annotators.astype(np.int64) * crowd.num_classes + crowd.labels
    return sparse.csr_matrix(
        (array, (crowd.instances, columns)),
        shape=(crowd.num_instances, crowd.num_annotators * crowd.num_classes),
    )


def _error_matrix(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.float64]:
    """Returns matrices `[..., C true, C observed]` whose rows sum to one; counts are normalised."""
    array = as_numbers(values, what)
    if array.shape != shape:
        raise DataError(
            f"{what}: expected shape {shape} (true class, observed class), received {array.shape}"
        )
    total = array.sum(axis=-1, keepdims=True)
    if not np.isfinite(array).all() or (array < 0).any() or (total <= 0).any():
        raise DataError(f"{what}: expected numbers from 0 with a positive sum in each row")
    normalised: NDArray[np.float64] = array / total
    return normalised
