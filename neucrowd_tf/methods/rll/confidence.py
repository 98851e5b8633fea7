"""Label confidence (RLL, section III-B): how far each example's label can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats, Floats32, Integers
from neucrowd_tf.errors import UsageError


def _votes_for(votes: ArrayLike, labels: Integers) -> tuple[Floats, Floats]:
    """Returns the votes for each example's own label, and all its votes, `[N]` each."""
    counts = np.asarray(votes, dtype=np.float64)
    return counts[np.arange(len(counts)), labels], counts.sum(axis=1)


def mle_confidence(votes: ArrayLike, labels: Integers) -> Floats32:
    """Returns the share of votes for each example's own label, `[N]`; 0 without votes.

    Args:
        votes: `[N, C]` how often each class was given.
        labels: `[N]` class codes that the examples are trained with.

    References:
        RLL, section III-B, eq. (1).
    """
    # Deviation: RLL (1). Paper: To the letter the share of positive votes of every example; the
    # text calls it "confidence about the crowdsourced labels". Here: The share of votes for the
    # label that the example is trained with, as in the released code. Why: To the letter a sure
    # negative example would weigh nothing in (3), and a doubtful one more. Effect: claim
    # rll_equation_1.
    votes_for, total = _votes_for(votes, labels)
    share = np.divide(votes_for, total, out=np.zeros_like(votes_for), where=total > 0)
    return share.astype(np.float32)


def class_prior(labels: Integers, num_classes: int) -> Floats:
    """Returns the share of each class among labels `[N]`, `[C]`."""
    counts = np.bincount(labels, minlength=num_classes).astype(np.float64)
    return counts / counts.sum()


def beta_parameters(
    prior: ArrayLike, *, mass: float = 1.0, alpha: float | None = None, beta: float | None = None
) -> tuple[Floats, Floats]:
    """Returns the Beta prior of the confidence in each class's label.

    Args:
        prior: `[C]` class prior; class c gets Beta(mass * prior[c], mass * (1 - prior[c])), whose
            mean is the prior.
        mass: how many votes the prior counts as.
        alpha, beta: with two classes, parameters in place of the class prior: Beta(alpha, beta) for
            the positive class and Beta(beta, alpha) for the negative one.

    Returns:
        two `[C]` arrays, for and against the label.

    Raises:
        UsageError: one of alpha and beta alone, or for more than two classes.
    """
    share = np.clip(prior, 1e-6, 1.0 - 1e-6)  # a Beta distribution has positive parameters
    if alpha is not None and beta is not None and len(share) == 2:
        return np.array([beta, alpha]), np.array([alpha, beta])
    if alpha is not None or beta is not None:
        raise UsageError(
            f"alpha, beta: expected both or neither, and two classes, received {alpha}, {beta} and"
            f" {len(share)} classes"
        )
    return mass * share, mass * (1.0 - share)


def bayesian_confidence(
    votes: ArrayLike, labels: Integers, parameters: tuple[Floats, Floats]
) -> Floats32:
    """Returns the posterior mean of the confidence in each example's own label, `[N]`.

    An example with label c and v votes for it out of d has the posterior Beta(alpha_c + v, beta_c +
    d - v). Without votes the prior mean is left.

    Args:
        votes: `[N, C]` how often each class was given.
        labels: `[N]` class codes that the examples are trained with.
        parameters: from `beta_parameters`.

    References:
        RLL, section III-B, eq. (2).
    """
    # Deviation: RLL (2). Paper: To the letter alpha and positive votes on top for every example;
    # released code: alpha 3, beta 2. Here: The beta side for negative examples, whose own votes
    # count; C classes: own label against the rest. Why: As for (1). Effect: claim rll_equation_2.
    votes_for, total = _votes_for(votes, labels)
    in_favour, against = np.asarray(parameters)[:, labels]
    alpha = in_favour + votes_for
    beta = against + (total - votes_for)
    return (alpha / (alpha + beta)).astype(np.float32)


def subsample_annotations(
    annotations: Annotations, per_instance: int, seed: int | Sequence[int]
) -> Annotations:
    """Returns annotations with at most `per_instance` labels per instance (d of table III).

    Labels are drawn at random. From vote counts, each instance's votes are drawn without
    replacement (hypergeometric), which is the same distribution.

    Args:
        annotations: with or without identities.
        per_instance: d, at least 1; instances with fewer labels keep all of them.
        seed: draws the labels.

    References:
        RLL, section IV-E.
    """
    draw = np.random.default_rng(seed)
    if not annotations.has_identities:
        votes = annotations.vote_counts().astype(np.int64)
        size = np.minimum(votes.sum(axis=1), per_instance)
        drawn = np.zeros_like(votes)
        for code in range(votes.shape[1]):
            others = votes[:, code + 1 :].sum(axis=1)
            drawn[:, code] = draw.hypergeometric(votes[:, code], others, size)
            size -= drawn[:, code]
        return Annotations.from_votes(
            drawn, instance_names=annotations.instance_names, class_names=annotations.class_names
        )
    order = np.lexsort((draw.random(len(annotations.labels)), annotations.instances))
    ordered = annotations.instances[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    return annotations.select(np.sort(order[np.arange(len(order)) - starts < per_instance]))
