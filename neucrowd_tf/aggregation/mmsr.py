"""M-MSR: skills by a robust rank-one completion of how often annotators agree."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import tolerance
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.aggregation.weighted_vote import WeightedVote
from neucrowd_tf.declare.declarations import estimator, fitted, whole
from neucrowd_tf.declare.types import Floats, Mask


def agreement_matrix(shard: Shard) -> tuple[Floats, Floats]:
    """Returns `[R, R]` how often two annotators agree and the number of their common instances.

    Agreement is scaled so that chance gives 0 and certainty 1. The diagonals are 0.
    """
    size = shard.num_classes
    labelled = shard.annotator_weights.astype(bool).astype(np.float64)
    common = np.asarray((labelled.T @ labelled).todense())
    labels = shard.one_hot.tocsc()
    agree = np.zeros_like(common)
    for c in range(size):
        of_class = labels[:, c::size].astype(bool).astype(np.float64)  # repeated labels count once
        agree += np.asarray((of_class.T @ of_class).todense())
    np.fill_diagonal(common, 0.0)
    share = np.divide(agree, common, out=np.zeros_like(agree), where=common > 0)
    scaled = (share * size - 1.0) / max(size - 1, 1)
    return np.where(common > 0, scaled, 0.0), common


def trimmed_means(values: Floats, observed: Mask, last: Floats, trim: int) -> Floats:
    """Returns `[R]` the trimmed mean of each column of `values` `[R, R]` over its observed rows.

    The `trim` largest of the values above `last` `[R]` and the `trim` smallest of those below it
    are left out. If no value remains the mean is `last`.
    """
    order = np.argsort(np.where(observed, values, np.inf), axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    count = observed.sum(axis=0)
    below = (observed & (values < last)).sum(axis=0)
    above = (observed & (values > last)).sum(axis=0)
    start = np.minimum(below, trim)
    end = count - np.minimum(above, trim)
    rank = np.arange(len(values))[:, None]
    inner = (rank >= start) & (rank < end)
    number = inner.sum(axis=0)
    total = np.where(inner, ranked, 0.0).sum(axis=0)
    return np.where(number > 0, total / np.maximum(number, 1), last)


# Deviation: M-MSR, signs. Paper: A construction from the sign graph. Here: Signs of the leading
# eigenvector of the agreements' signs. Why: The same where agreements are consistent. Effect: not
# measured.
def signs_of(agreement: Floats) -> Floats:
    """Returns `[R]` +1 or -1, such that annotators of one sign agree more often than by chance.

    They are the signs of the leading eigenvector of the agreements' signs; most are +1.
    """
    vectors = np.linalg.eigh(np.sign((agreement + agreement.T) / 2.0))[1]
    signs = np.where(vectors[:, -1] < 0, -1.0, 1.0)
    if signs.sum() >= 0:
        return signs
    return -signs


@estimator
class Mmsr(WeightedVote):
    """Matrix mean-subsequence-reduced: skills from how often annotators agree.

    The scaled agreement of two annotators is the product of their skills. Alternating trimmed means
    complete the matrix, which outvotes adversaries. A vote weighs log((C - 1) p / (1 - p)).

    Attributes: see `WeightedVote`, and n_iter_ and converged_.

    References:
        Ma and Olshevsky (2020), Adversarial crowdsourcing through robust rank-one matrix
        completion, algorithm 1.
    """

    max_iter: Annotated[int, whole(1), "largest number of rounds of means."] = 1000
    tol: Annotated[
        float, tolerance, "stops when the product of the two factors moves by less than this."
    ] = 1e-8
    n_iter_: int = fitted()
    converged_: bool = fitted()

    def _weigh(self, shard: Shard) -> tuple[Floats, Floats]:
        size = shard.num_classes
        instances = max(float(shard.used.sum()), 1.0)
        agreement, common = agreement_matrix(shard)
        observed = common > 0
        right = self._complete(np.abs(agreement), observed) * signs_of(agreement)
        # Within what N instances can tell from chance and from certainty.
        edge = min(1.0 / np.sqrt(instances), 0.5)
        right = np.clip(right, -1.0 / max(size - 1, 1) + edge, 1.0 - edge)
        skills = right * (size - 1) / size + 1.0 / size
        skills[~observed.any(axis=0)] = 1.0 / size
        if size == 1 or not observed.any():
            return np.ones(len(skills)), skills
        return np.log(skills * (size - 1) / (1.0 - skills)), skills

    def _complete(self, magnitudes: Floats, observed: Mask) -> Floats:
        """Returns `[R]` factors whose products are the observed magnitudes, but for outliers."""
        degrees = observed.sum(axis=0)
        least = min(degrees[degrees > 0].tolist(), default=0)
        trim = max(least // 2 - 1, 0)
        rng = np.random.default_rng([self.seed, 0])
        u, v = rng.uniform(size=(2, len(magnitudes)))
        self.converged_ = False
        for step in range(1, self.max_iter + 1):
            previous = u, v
            v = trimmed_means(_ratios(magnitudes, u), observed, v, trim)
            u = trimmed_means(_ratios(magnitudes, v), observed, u, trim)
            self.n_iter_ = step
            # |u v' - u0 v0'| in the Frobenius norm, without the matrices.
            moved = (u @ u) * (v @ v) - 2.0 * (u @ previous[0]) * (v @ previous[1])
            moved += (previous[0] @ previous[0]) * (previous[1] @ previous[1])
            if np.sqrt(max(moved, 0.0)) < self.tol * max(len(u), 1):
                self.converged_ = True
                break
        ends = np.linalg.norm(u), np.linalg.norm(v)
        if min(ends) > 0:
            return u / np.sqrt(ends[0] / ends[1])
        return u


def _ratios(magnitudes: Floats, factor: Floats) -> Floats:
    return magnitudes / np.maximum(factor, 1e-12)[:, None]
