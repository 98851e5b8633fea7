"""Label certainty, true-label inference on real and synthetic annotations, permuted classes."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from neucrowd_tf.aggregation.base import count_votes, normalise_counts, vote_shares
from neucrowd_tf.aggregation.dawid_skene import Confusion, dawid_skene_em
from neucrowd_tf.aggregation.sums import Fit
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare.types import Array, Floats, Indices

PRIORS = ("uniform", "update", "start")
EM = ("soft", "hard")


def label_certainty(votes: Array, epsilon: float = 0.01) -> Floats:
    """Returns how certain each instance's label is: `1 / (1 - sum_c p_c ** 2 + epsilon)`.

    With labels as one-hot vectors y, `E ||y - E y||^2 = 1 - sum_c p_c ** 2`, where p are the shares
    of the votes: 0 when all annotators agree, largest when the votes are spread evenly. An instance
    without votes scores as one with evenly spread votes.

    Args:
        votes: `[N, C]` counts from 0.
        epsilon: above 0; the certainty of a unanimous instance is its inverse.

    Returns:
        `[N]`.

    References:
        ICED, definition 2 and equation 2.4.
    """
    # Deviation: ICED eq. 2.4. Paper: The variance of "crowdsourced labels". Here: The variance of
    # one-hot labels, `1 / (1 - sum p^2 + eps)`, eps 0.01 (`epsilon`). Why: It means the same for C
    # classes (for two it is twice the scalar variance, so an eps of 0.01 counts as one of 0.005); a
    # tiny eps makes synthetic points between unanimous and split instances exact copies of the
    # former. Effect: not measured.
    shares = normalise_counts(np.asarray(votes, dtype=np.float64), 0.0)
    variance = np.maximum(1.0 - np.square(shares).sum(axis=1), 0.0)
    return 1.0 / (variance + epsilon)


@dataclasses.dataclass(frozen=True, eq=False)
class Inference:
    """The result of EM, its classes in the order of the votes.

    Attributes:
        probas: `[N, C]` posteriors.
        priors: `[C]`.
        errors: `[R, C true, C observed]`.
        permutation: `[C]` EM's class c was class `permutation[c]`; usually the identity.
    """

    probas: Floats
    priors: Floats
    errors: Floats
    permutation: Indices

    @property
    def labels(self) -> Indices:
        """`[N]` the most probable class; the lowest code among equals."""
        return self.probas.argmax(axis=1)


def find_permutation(probas: Floats, votes: Floats) -> Indices:
    """Returns which class each class of EM stands for, by the votes of its instances.

    Classes are matched by the shares of votes: row c of a matrix has the shares among the instances
    that EM puts into class c. In shares, a rare class counts as much as a common one. So classes
    are not exchanged if a common class has only lost half of its instances to a rare one.

    Args:
        probas: `[N, C]` posteriors.
        votes: `[N, C]` vote counts.

    Returns:
        `[C]`.
    """
    cast = probas.T @ votes
    total = cast.sum(axis=1)
    permutation = np.arange(len(cast))
    # Classes that no annotator uses, or that EM left empty, give no evidence and stay in place.
    present = np.flatnonzero((total > 1e-6) & (votes.sum(axis=0) > 0))
    shares = cast[np.ix_(present, present)] / total[present, None]
    rows, columns = linear_sum_assignment(shares, maximize=True)
    # Rounding must not permute classes that are equally good either way.
    if shares[rows, columns].sum() - np.trace(shares) > 1e-6:
        permutation[present] = present[columns]
    return permutation


def in_place(result: Fit[Confusion], votes: Floats) -> Inference:
    """Returns EM's result with permuted classes put back in place by the votes `[N, C]`."""
    permutation = find_permutation(result.beliefs, votes)
    last = result.parameters
    back = np.argsort(permutation)
    errors = last.errors.transpose(0, 2, 1)
    return Inference(result.beliefs[:, back], last.priors[back], errors[:, back], permutation)


def infer_labels(
    one_hot: sparse.csr_matrix,
    num_classes: int,
    *,
    prior: str = "uniform",
    em: str = "soft",
    smoothing: float = 0.01,
    max_iter: int = 100,
    tol: float = 1e-7,
    seed: int = 0,
) -> Inference:
    """Runs Dawid-Skene from majority vote and puts permuted classes back in place.

    Args:
        one_hot: `[N, R * C]` CSR, a one at column `annotator * C + label` for each annotation.
        num_classes: C.
        prior: "uniform" keeps the class prior uniform over the classes that annotators use;
            "update" estimates it; "start" estimates it after a first E-step with a uniform one.
        em: "soft" counts posteriors in the M-step; "hard" counts each instance only for its most
            probable class, as published.
        smoothing: pseudo-count of every cell of the confusion matrices.
        max_iter: largest number of iterations.
        tol: see `dawid_skene_em`.
        seed: breaks the ties of the majority votes that "hard" EM starts from.

    References:
        ICED, section 2.3: equation 2.1 and the updates of Psi and Phi below it (the M-step),
        equation 2.2 (the E-step); algorithm 1, line 4.
    """
    # Deviation: ICED section 2.3. Paper: The class prior is re-estimated in each M-step. Here: The
    # prior is held uniform (as `iced_printed`; `prior="update"` for section 2.3's words, as
    # `iced_literal`; `"start"` where it begins uniform, as 2.4 and 3.3 say). Why: Our reading of
    # section 3.2 and figure 2, where D&S assumes a uniform prior; re-estimated, D&S is at or above
    # majority vote from the start. Effect: claim iced_uniform_prior.
    hard = em == "hard"
    votes = count_votes(one_hot, num_classes)
    # Deviation: ICED section 2.3. Paper: Counts of determinate labels in the M-step, from the
    # current labels. Here: Soft posteriors, started from shares of votes (`em="hard"` for the
    # published form, started from majority votes); no prior for a class that no annotator uses.
    # Why: As in Dawid and Skene; a class without evidence would attract unclear instances. Effect:
    # claim iced_hard_em.
    if hard:
        start = np.eye(num_classes)[majority_labels(votes, "random", seed)]
    else:
        start = vote_shares(one_hot, num_classes)
    # There is no evidence about errors in a class that no annotator uses. With a prior of its own,
    # such a class would attract unclear instances.
    used = votes.sum(axis=0) > 0
    even = used / used.sum()
    if prior == "start":  # section 2.4: a "uniform prior is used for initialization"
        start = dawid_skene_em(one_hot, start, prior=even, smoothing=smoothing, max_iter=1).beliefs
        if hard:
            start = np.eye(num_classes)[start.argmax(axis=1)]
    result = dawid_skene_em(
        one_hot,
        start,
        prior=even if prior == "uniform" else None,
        smoothing=smoothing,
        hard=hard,
        max_iter=max_iter,
        tol=tol,
    )
    return in_place(result, votes)
