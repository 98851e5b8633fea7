"""Dirichlet distributions as variational Bayes needs them: expected logarithms and divergences."""

from __future__ import annotations

from scipy.special import digamma, gammaln

from neucrowd_tf.declare.types import Floats


def expected_log(counts: Floats, axis: int = -1) -> Floats:
    """Returns E[log p] under Dirichlet(counts), whose categories lie along `axis`."""
    return digamma(counts) - digamma(counts.sum(axis=axis, keepdims=True))


def divergence(counts: Floats, prior: Floats, logs: Floats, axis: int = -1) -> float:
    """Returns the sum of KL(Dirichlet(counts) || Dirichlet(prior)) over all other axes.

    Args:
        counts: parameters, categories along `axis`.
        prior: parameters of the same shape.
        logs: `expected_log(counts, axis)`.
        axis: of the categories.
    """
    normaliser = gammaln(counts.sum(axis=axis)) - gammaln(prior.sum(axis=axis))
    terms = gammaln(prior) - gammaln(counts) + (counts - prior) * logs
    return float(normaliser.sum() + terms.sum())
