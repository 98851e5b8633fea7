"""GLAD: annotators' abilities, instances' difficulties and true labels, estimated by EM."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from neucrowd_tf.aggregation.base import (
    Codes,
    Prior,
    apply_gold,
    coin_errors,
    normalise_log,
    resolve_prior,
    warn_not_converged,
)
from neucrowd_tf.aggregation.blas import one_blas_thread
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.aggregation.sums import TINY, keep_gold_only
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, fitted
from neucrowd_tf.declare.types import Floats

# Deviation: GLAD 1. Paper: Two classes. Here: C classes, wrong labels equally likely. Why: Data
# with more classes. Effect: none for two classes; the paper has no others.
# Deviation: GLAD 4. Paper: Gradient ascent to the end of each M-step. Here: At most 5 L-BFGS steps
# from the last parameters. Why: The bound rises all the same, and EM is faster. Effect: not
# measured.
MEAN = 1.0  # of the abilities and of the easiness, which have standard deviation 1
# exp(b) stays finite whatever a line search tries.
LARGEST_LOG = 50.0


def _log_wrong(x: Floats) -> Floats:
    """Returns log s(-x) = -(max(x, 0) + log(1 + exp(-|x|))), s the logistic function.

    This is several times faster than logaddexp.
    """
    wrong = -np.maximum(x, 0.0)
    wrong -= np.log1p(np.exp(-np.abs(x)))
    return wrong


class _Model:
    """Sums over annotations under parameters `theta` `[R + N]`.

    These are the abilities and the log inverse difficulties.
    """

    def __init__(self, crowd: Annotations, gold: Codes | None = None) -> None:
        order = np.argsort(crowd.instances, kind="stable")
        self.instances = crowd.instances[order].astype(np.intp)
        self.annotators = crowd.annotators[order].astype(np.intp)
        self.num_instances, self.num_annotators = crowd.shape
        self.num_classes = crowd.num_classes
        self.cells = self.instances * crowd.num_classes + crowd.labels[order]
        self.gold = gold
        self.log_others = float(np.log(max(crowd.num_classes - 1, 1)))
        # The curvature of an ability grows with the annotator's labels; in these units L-BFGS needs
        # half the steps.
        self.units = np.concatenate(
            [1.0 / np.sqrt(1.0 + crowd.labels_per_annotator()), np.ones(crowd.num_instances)]
        )

    def strengths(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Returns `[A]` ability, inverse difficulty and their product for each annotation."""
        ability = theta[: self.num_annotators][self.annotators]
        inverse = np.exp(np.minimum(theta[self.num_annotators :], LARGEST_LOG))[self.instances]
        return ability, inverse, ability * inverse

    def posterior(self, theta: Floats, priors: Floats) -> tuple[Floats, float]:
        """Returns posteriors `[N, C]` and the objective (E-step, equation 3 of the paper).

        The objective is the log likelihood plus the log priors of the parameters. With x = ability
        * inverse difficulty and s the logistic function, log P(label | class) is log s(x) if they
        agree and otherwise log s(-x) - log(C - 1). The difference is x + log(C - 1), so the sum
        over annotations needs the cell of the label only.
        """
        x = self.strengths(theta)[2]
        sums = np.bincount(
            self.cells, weights=x + self.log_others, minlength=self.num_instances * self.num_classes
        )
        scores = sums.astype(np.float64, copy=False).reshape(self.num_instances, self.num_classes)
        keep_gold_only(scores, self.gold)
        with np.errstate(divide="ignore"):
            evidence = normalise_log(scores, np.log(np.maximum(priors, TINY)))
        wrong = np.sum(_log_wrong(x) - self.log_others)
        return scores, float(evidence.sum() + wrong) - 0.5 * float(np.sum((theta - MEAN) ** 2))

    def expected(self, theta: Floats, right: Floats) -> tuple[float, Floats]:
        """Returns minus the expected complete log likelihood (Q) and its gradient `[R + N]`.

        Args:
            theta: `[R + N]`.
            right: `[A]` posterior probability that each annotation is right.
        """
        ability, inverse, x = self.strengths(theta)
        value = np.sum(right * x) + np.sum(_log_wrong(x))  # log s(x) = x + log s(-x)
        # d/dx; the logistic function by tanh, which is the fastest.
        residual = right - 0.5 * (1.0 + np.tanh(0.5 * x))
        residual *= inverse
        gradient = theta - MEAN
        distance = 0.5 * np.sum(gradient**2)
        gradient[: self.num_annotators] -= np.bincount(
            self.annotators, weights=residual, minlength=self.num_annotators
        )
        residual *= ability
        gradient[self.num_annotators :] -= np.bincount(
            self.instances, weights=residual, minlength=self.num_instances
        )
        return float(distance - value), gradient

    def m_step(self, theta: Floats, right: Floats, steps: int) -> Floats:
        """Returns parameters with a higher expected log likelihood (equation 4 of the paper).

        L-BFGS starts from `theta`.
        """

        def scaled(point: Floats) -> tuple[float, Floats]:
            value, gradient = self.expected(point * self.units, right)
            return value, gradient * self.units

        start = theta / self.units
        options = {"maxiter": steps, "maxcor": 5}
        result = minimize(scaled, start, jac=True, method="L-BFGS-B", options=options)
        return result.x * self.units


@estimator
class Glad(IterativeAggregator):
    """Generative model of Labels, Abilities and Difficulties for C classes.

    The probability that annotator r labels instance i rightly is s(a_r * exp(b_i)), s the logistic
    function; wrong labels are equally likely. a_r and b_i are normal with mean and standard
    deviation 1.

    Attributes: see `IterativeAggregator` (`history_` is the log likelihood plus the parameters' log
    priors; `errors_` have `skills_` on the diagonal and equal errors elsewhere), and
        abilities_: `[R]` a_r; below zero for an adversary.
        difficulties_: `[N]` exp(-b_i); larger is harder.
        skills_: `[R]` probability of being right, averaged over the difficulties of all instances.

    If all annotators agree, abilities and difficulties are bounded by their priors.

    References:
        Whitehill et al. (2009), Whose vote should count more: equations 1 (model), 3 (E-step), 4
        (M-step) for two classes.
    """

    m_step_iter: ClassVar[int] = 5  # most steps of L-BFGS in an M-step

    prior: Annotated[
        Prior, '"update" estimates the class prior, "uniform" or an array `[C]` fixes it.'
    ] = "uniform"
    tol: float = 1e-5
    abilities_: Floats = fitted()
    difficulties_: Floats = fitted()

    # On vectors of this size a second thread costs more than it gives.
    @one_blas_thread()
    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        """Runs EM from the priors' means."""
        model = _Model(crowd, gold)
        size = crowd.num_classes
        prior = resolve_prior(self.prior, size)
        theta = np.full(crowd.num_annotators + crowd.num_instances, MEAN)
        priors = np.full(size, 1.0 / size) if prior is None else prior
        probas, objective = model.posterior(theta, priors)
        history = []
        change = np.inf
        for _ in range(self.max_iter):
            theta = model.m_step(theta, probas.reshape(-1)[model.cells], self.m_step_iter)
            if prior is None:
                priors = probas[self.annotated_].mean(axis=0)
            probas, reached = model.posterior(theta, priors)
            change = (reached - objective) / crowd.num_annotations
            objective = reached
            history.append(objective)
            if change < self.tol:
                break
        self.history_ = np.array(history)
        self.n_iter_ = len(history)
        self.converged_ = change < self.tol
        self.probas_ = apply_gold(probas, gold)
        self.priors_ = priors
        self.labels_ = self.decide(probas)
        self.abilities_ = theta[: crowd.num_annotators].copy()
        easiness = np.minimum(theta[crowd.num_annotators :], LARGEST_LOG)
        self.difficulties_ = np.exp(-easiness)
        # A mean over quantiles stands for the mean over all instances, which would be R x N.
        levels = np.exp(np.quantile(easiness[self.annotated_], (np.arange(200) + 0.5) / 200))
        with np.errstate(over="ignore"):
            self.skills_ = np.mean(1.0 / (1.0 + np.exp(-self.abilities_[:, None] * levels)), axis=1)
        self.errors_ = coin_errors(self.skills_ if size > 1 else np.ones_like(self.skills_), size)
        if not self.converged_:
            warn_not_converged("Glad", self.max_iter, change, self.tol)
