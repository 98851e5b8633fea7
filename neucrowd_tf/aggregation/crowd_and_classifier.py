"""What a crowd's labels and a classifier's probabilities together say of each true label.

The crowd's part is Dawid and Skene's: given the true label, annotators label independently, each
by a confusion matrix. The classifier's probabilities are the prior of each instance:

    P(c | labels of i, x_i)  ~  p(c | x_i) * prod_r E[r, c, l_ir]

`alternate` finds posteriors and confusion matrices in turns; `combine` is the last step alone.
CROWDLAB, a weighted mean instead of a posterior, is :mod:`neucrowd_tf.aggregation.crowdlab`.

References:
    Raykar et al. (2010), Learning from crowds, section 2.4, with C classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, softmax

from neucrowd_tf.aggregation.base import expected_counts, normalise_counts
from neucrowd_tf.aggregation.optimisation import minimize_scalar
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats

Prior: TypeAlias = Floats | Callable[[Floats], Floats]
PseudoCounts: TypeAlias = float | Floats | Callable[[Floats], Floats]

# A classifier never excludes a class: in posteriors each of its probabilities is at least LEAST.
LEAST = 1e-12
LEAST_CALIBRATED = 1e-6  # likewise before they are calibrated


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """Posteriors of the true labels, with what they follow from.

    Attributes:
        probas: `[N, C]`.
        errors: `[R, C true, C observed]`; each row sums to one.
        log_likelihoods: `[N, C]` of each instance's labels given its true label.
    """

    probas: Floats
    errors: Floats
    log_likelihoods: Floats


def evidence(annotations: Annotations) -> sparse.csr_matrix:
    """Returns `[N, R * C]` label counts, or `[N, C]` vote counts as if one annotator gave them."""
    if annotations.has_identities:
        return annotations.one_hot()
    return sparse.csr_matrix(annotations.vote_counts().astype(np.float64))


def error_matrices(
    one_hot: sparse.csr_matrix, probas: Floats, pseudo_counts: PseudoCounts
) -> Floats:
    """Returns confusion matrices `[R, C true, C observed]` from expected counts.

    Args:
        one_hot: `[N, R * C]` label counts at column `annotator * C + label`.
        probas: `[N, C]` of the true labels; a row of zeros leaves an instance out.
        pseudo_counts: added to the counts: a number, what broadcasts to `[R, C, C]`, or a function
            that returns this for counts `[R, C true, C observed]`.
    """
    counts = expected_counts(one_hot.T, probas).transpose(0, 2, 1)
    if callable(pseudo_counts):
        pseudo_counts = pseudo_counts(counts)
    return normalise_counts(counts, pseudo_counts)


def log_likelihoods(one_hot: sparse.csr_matrix, errors: Floats) -> Floats:
    """Returns `[N, C]` log probabilities of each instance's labels given its true label."""
    num_classes = errors.shape[-1]
    return one_hot @ np.log(errors).transpose(0, 2, 1).reshape(-1, num_classes)


def combine(log_likelihoods: Floats, prior: Floats) -> Floats:
    """Returns posteriors `[N, C]`.

    Args:
        log_likelihoods: `[N, C]` of the labels given the true label, up to a constant per row.
        prior: `[N, C]` (or `[C]`) probabilities; values below `LEAST` count as `LEAST`.
    """
    return softmax(np.log(np.maximum(prior, LEAST)) + log_likelihoods, axis=1)


def alternate(
    one_hot: sparse.csr_matrix,
    prior: Prior,
    start: Floats,
    *,
    pseudo_counts: PseudoCounts,
    max_iter: int,
) -> Posterior:
    """Finds confusion matrices and posteriors in turns.

    Args:
        one_hot: `[N, R * C]` label counts, see `evidence`.
        prior: `[N, C]` a classifier's probabilities, or a function from the last posteriors to
            these (a classifier that is recalibrated, for example).
        start: `[N, C]` probabilities of the true labels to begin with.
        pseudo_counts: see `error_matrices`.
        max_iter: turns.
    """
    probas = start
    for _ in range(max_iter):
        class_prior = prior(probas) if callable(prior) else prior
        errors = error_matrices(one_hot, probas, pseudo_counts)
        logs = log_likelihoods(one_hot, errors)
        probas = combine(logs, class_prior)
    return Posterior(probas, errors, logs)


def calibrated(probas: Floats, targets: Floats) -> Floats:
    """Returns probabilities `[N, C]` at the temperature that fits `targets` best.

    That is p^(1/T), normalised, where T makes the targets' shares most likely.

    Args:
        probas: `[N, C]`.
        targets: `[N, C]` vote counts or probabilities; rows of zeros are left out.
    """
    total = targets.sum(axis=1)
    used = total > 0
    shares = targets[used] / total[used, None]
    logs = np.log(np.maximum(probas, LEAST_CALIBRATED))

    def scaled(log_temperature: float) -> Floats:
        return log_softmax(logs / np.exp(log_temperature), axis=1)

    def cross_entropy(log_temperature: float) -> float:
        return -float((shares * scaled(log_temperature)[used]).sum())

    best = minimize_scalar(cross_entropy, bounds=(-5.0, 5.0))
    return np.exp(scaled(float(best.x)))
