"""True-label inference on real and synthetic annotations together, and the check for permuted
classes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from neucrowd_tf.aggregation.base import vote_shares
from neucrowd_tf.aggregation.dawid_skene import dawid_skene_em
from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Inference:
    """The result of EM.

    Attributes:
        probas: `[N, C]` posteriors, classes in the order of the votes.
        priors: `[C]`.
        errors: `[R, C true, C observed]`.
        permutation: `[C]`: EM's class c was class `permutation[c]`; the identity where nothing was
            mended.
    """

    probas: NDArray[np.float64]
    priors: NDArray[np.float64]
    errors: NDArray[np.float64]
    permutation: NDArray[np.int64]

    @property
    def labels(self) -> NDArray[np.int64]:
        """`[N]` the most probable class; the lowest code among equals."""
        return self.probas.argmax(axis=1)

    @property
    def mended(self) -> bool:
        """Whether EM's classes were permuted."""
        return bool((self.permutation != np.arange(len(self.permutation))).any())


def find_permutation(probas: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns `[C]` which class each class of EM stands for, by the votes cast in it.

    Row c of the matrix that is matched holds the shares of the votes that instances of EM's class c
    got, so a rare class weighs as much as a common one, and a common class that has lost half of
    its instances to a rare one is no permutation.

    Args:
        probas: `[N, C]` posteriors.
        votes: `[N, C]` vote counts.
    """
    given = probas.T @ votes
    total = given.sum(axis=1)
    permutation = np.arange(len(given))
    # Classes that nobody uses, or that EM left empty, say nothing; they stay where they are.
    known = np.flatnonzero((total > 1e-6) & (votes.sum(axis=0) > 0))
    shares = given[np.ix_(known, known)] / total[known, None]
    rows, columns = linear_sum_assignment(shares, maximize=True)
    # Rounding must not permute classes that are equally good either way.
    if shares[rows, columns].sum() - np.trace(shares) > 1e-6:
        permutation[known] = known[columns]
    return permutation


def infer_labels(
    one_hot: sparse.csr_matrix,
    num_classes: int,
    *,
    prior: str = "uniform",
    smoothing: float = 0.01,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> Inference:
    """Runs Dawid-Skene from majority vote and puts permuted classes back in place.

    Args:
        one_hot: `[N, R * C]` CSR, a one at column `annotator * C + label` for each annotation.
        num_classes: C.
        prior: "uniform" holds the class prior uniform over the classes that annotators use;
            "update" estimates it.
        smoothing, max_iter, tol: see `dawid_skene_em`.

    Raises:
        UsageError: another prior.

    References:
        ICED, section 2.3: equation 2.1 and the updates of Psi and Phi below it (the M-step),
        equation 2.2 (the E-step); algorithm 1, line 4.
    """
    # Deviation: section 2.3 re-estimates the prior in each M-step, sections 2.4 and 3.2 speak of an
    # inference that assumes a uniform one, and figure 2 shows what only the latter gives (D&S far
    # below majority vote before synthesis).
    if prior not in ("uniform", "update"):
        raise UsageError(f"prior: expected 'uniform' or 'update', received {prior!r}")
    # Deviation: soft posteriors in the M-step instead of counts of hard labels, as in Dawid and
    # Skene.
    start = vote_shares(one_hot, num_classes)
    by_class = (one_hot.data, one_hot.indices % num_classes, one_hot.indptr)
    votes = sparse.csr_matrix(by_class, shape=start.shape).toarray()
    # A class that nobody uses has no evidence about errors, and under a prior of its own it would
    # attract unclear instances.
    used = votes.sum(axis=0) > 0
    held = used / used.sum() if prior == "uniform" else None
    em = dawid_skene_em(one_hot, start, prior=held, smoothing=smoothing, max_iter=max_iter, tol=tol)
    permutation = find_permutation(em.probas, votes)
    back = np.argsort(permutation)
    return Inference(em.probas[:, back], em.priors[back], em.errors[:, back, :], permutation)
