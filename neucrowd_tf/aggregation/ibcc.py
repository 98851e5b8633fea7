"""IBCC: Dawid and Skene's model with Dirichlet priors, by variational Bayes."""

from __future__ import annotations

import dataclasses

import numpy as np

from neucrowd_tf.aggregation.base import normalise_counts
from neucrowd_tf.aggregation.dirichlet import divergence, expected_log
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import ConfusionModel, Sums
from neucrowd_tf.declare.declarations import estimator
from neucrowd_tf.declare.types import Floats

# Dirichlet prior counts of a right label, of each wrong label, and of each class.
RIGHT = 4.0
WRONG = 1.0
CLASS_PRIOR = 1.0


def diagonal_counts(num_classes: int, right: float, wrong: float) -> Floats:
    """Returns `[C, C]` prior counts: `right` on the diagonal and `wrong` elsewhere."""
    return np.eye(num_classes) * (right - wrong) + wrong


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """Variational parameters of IBCC, with their expected logarithms.

    Attributes:
        mass: `[C]` Dirichlet counts of the classes.
        counts: `[R, C observed, C true]` Dirichlet counts of the annotators' labels.
        log_mass, log_counts: expected logarithms under these.
    """

    mass: Floats
    counts: Floats
    log_mass: Floats
    log_counts: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class IBCCModel(ConfusionModel[Posterior]):
    """Variational Bayes over sums.

    Attributes:
        prior: `[C observed, C true]` Dirichlet counts of each annotator.
    """

    prior: Floats
    parameters_type = Posterior

    def m_step(self, sums: Sums, parameters: Posterior | None) -> Posterior:
        """Returns q(classes) and q(annotators)."""
        mass = sums["mass"] + CLASS_PRIOR
        counts = sums["counts"] + self.prior
        return Posterior(mass, counts, expected_log(mass), expected_log(counts, axis=1))

    def log_errors(self, parameters: Posterior) -> Floats:
        """Returns `[R * C observed, C true]`."""
        return parameters.log_counts.reshape(-1, len(self.prior))

    def log_priors(self, parameters: Posterior) -> Floats:
        """Returns `[C]`."""
        return parameters.log_mass

    def objective(self, sums: Sums, parameters: Posterior) -> float:
        """Returns the evidence lower bound."""
        q = parameters
        of_classes = divergence(q.mass, np.full_like(q.mass, CLASS_PRIOR), q.log_mass)
        prior = np.broadcast_to(self.prior, q.counts.shape)
        of_annotators = divergence(q.counts, prior, q.log_counts, axis=1)
        return float(sums["evidence"]) - of_classes - of_annotators

    def priors(self, parameters: Posterior) -> Floats:
        """Returns the expected class shares `[C]`."""
        return normalise_counts(parameters.mass)

    def errors(self, parameters: Posterior) -> Floats:
        """Returns the expected confusion matrices `[R, C true, C observed]`."""
        return normalise_counts(parameters.counts, axis=1).transpose(0, 2, 1)


@estimator
class IBCC(IterativeAggregator):
    """Independent Bayesian classifier combination.

    Every annotator's confusion matrix has a Dirichlet prior that expects more right labels than
    wrong ones.

    Attributes: see `IterativeAggregator`; `history_` is the evidence lower bound.

    References:
        Kim and Ghahramani (2012), Bayesian classifier combination; variational Bayes as in Simpson
        et al. (2013), Dynamic Bayesian combination of multiple imperfect classifiers; the priors
        are Li et al.'s (2019), Exploiting worker correlation for label aggregation in
        crowdsourcing.
    """

    def latent_model(self, num_classes: int) -> IBCCModel:
        """Returns IBCC as sums."""
        return IBCCModel(diagonal_counts(num_classes, RIGHT, WRONG))
