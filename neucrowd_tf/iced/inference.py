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
from neucrowd_tf.aggregation.majority_vote import majority_labels
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


PRIORS = ("uniform", "update", "start", "separate")
EM = ("soft", "hard", "majority")


def infer_labels(
    one_hot: sparse.csr_matrix,
    num_classes: int,
    *,
    prior: str = "uniform",
    em: str = "soft",
    real: int | None = None,
    smoothing: float = 0.01,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> Inference:
    """Runs Dawid-Skene from majority vote and puts permuted classes back in place.

    Args:
        one_hot: `[N, R * C]` CSR, a one at column `annotator * C + label` for each annotation.
        num_classes: C.
        prior: "uniform" holds the class prior uniform over the classes that annotators use;
            "update" estimates it; "start" does so after a first E-step under a uniform one;
            "separate" estimates one of the real rows, which is the one returned, and one of the
            synthetic rows.
        em: "soft" counts posteriors in the M-step, "hard" each instance for its likeliest class
            alone, as printed; "majority" is no EM but the majority vote.
        real: how many of the rows, the first ones, are real; all of them by default.
        smoothing, max_iter, tol: see `dawid_skene_em`.

    Raises:
        UsageError: another prior or em.

    References:
        ICED, section 2.3: equation 2.1 and the updates of Psi and Phi below it (the M-step),
        equation 2.2 (the E-step); algorithm 1, line 4.
    """
    # Deviation: section 2.3 re-estimates the prior in each M-step, sections 2.4 and 3.2 speak of an
    # inference that assumes a uniform one, and figure 2 shows what only the latter gives (D&S far
    # below majority vote before synthesis).
    if prior not in PRIORS:
        raise UsageError(f"prior: expected one of {', '.join(PRIORS)}, received {prior!r}")
    if em not in EM:
        raise UsageError(f"em: expected 'soft', 'hard' or 'majority', received {em!r}")
    # Deviation: soft posteriors in the M-step instead of counts of hard labels, as in Dawid and
    # Skene, and shares of votes to start from.
    start = vote_shares(one_hot, num_classes)
    by_class = (one_hot.data, one_hot.indices % num_classes, one_hot.indptr)
    votes = sparse.csr_matrix(by_class, shape=start.shape).toarray()
    if em != "soft":
        start = np.eye(num_classes)[majority_labels(votes, "random", 0)]
    if em == "majority":
        counted = dawid_skene_em(one_hot, start, smoothing=smoothing, max_iter=1)
        return Inference(start, start.mean(axis=0), counted.errors, np.arange(num_classes))
    # A class that nobody uses has no evidence about errors, and under a prior of its own it would
    # attract unclear instances.
    used = votes.sum(axis=0) > 0
    even = used / used.sum()
    held = even if prior == "uniform" else None
    if prior == "start":  # section 2.4: a "uniform prior is used for initialization"
        first = dawid_skene_em(one_hot, start, prior=even, smoothing=smoothing, max_iter=1).probas
        start = np.eye(num_classes)[first.argmax(axis=1)] if em == "hard" else first
    apart = prior == "separate" and real is not None and real < len(start)
    found = dawid_skene_em(
        _with_origin(one_hot, num_classes, real or 0) if apart else one_hot,
        start,
        prior=held,
        smoothing=_smoothing(one_hot.shape[1] // num_classes, smoothing) if apart else smoothing,
        hard=em == "hard",
        max_iter=max_iter,
        tol=tol,
    )
    priors, errors = found.priors, found.errors
    if apart:
        of_real = priors * errors[-1, :, 0]
        priors, errors = of_real / of_real.sum(), errors[:-1]
    permutation = find_permutation(found.probas, votes)
    back = np.argsort(permutation)
    return Inference(found.probas[:, back], priors[back], errors[:, back, :], permutation)


def _with_origin(one_hot: sparse.csr_matrix, num_classes: int, real: int) -> sparse.csr_matrix:
    """Returns the annotations with those of one more annotator, who says of each row whether it is
    real (class 0) or synthetic (class 1).

    Its "confusion matrix" is p(origin | class), so p(class) p(origin | class) is a class prior for
    each origin, and EM estimates both without a word about either.
    """
    rows = one_hot.shape[0]
    origin = (np.arange(rows) >= real).astype(np.int64)
    cells = (np.ones(rows), (np.arange(rows), origin))
    said = sparse.csr_matrix(cells, shape=(rows, num_classes))
    return sparse.hstack([one_hot, said], format="csr")


def _smoothing(annotators: int, smoothing: float) -> NDArray[np.float64]:
    """Returns pseudo-counts `[R + 1, 1, 1]`: none for the origin of rows, which is known."""
    return np.append(np.full(annotators, smoothing), 0.0)[:, None, None]
