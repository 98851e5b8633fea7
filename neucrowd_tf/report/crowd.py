"""What the report says of a crowd: a consensus, and the instances ranked by how doubtful their
labels are.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene, Glad, MajorityVote
from neucrowd_tf.annotations import Annotations

if TYPE_CHECKING:
    from numpy.typing import NDArray

# GLAD takes seconds from here on; the report does without it then.
MOST_FOR_GLAD = 300_000


@dataclasses.dataclass(frozen=True)
class Consensus:
    """Labels inferred from annotations.

    Attributes:
        method: "Dawid and Skene", or "majority vote" where it is not known who voted.
        labels: `[N]` class codes, -1 for instances without annotations.
        probabilities: `[N, C]`.
        errors: `[R, C, C]` confusion matrices (annotator, true class, label) or None.
    """

    method: str
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    errors: NDArray[np.float64] | None


def consensus(annotations: Annotations) -> Consensus:
    """Infers one label an instance: by Dawid and Skene's EM, or from the votes where it is not
    known who voted.
    """
    known = annotations.has_identities
    stage = DawidSkene() if known else MajorityVote(ties="first")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stage.fit(annotations)
    labels = np.where(annotations.annotated, stage.labels_, -1)
    return Consensus(
        "Dawid and Skene" if known else "majority vote", labels, stage.probas_, stage.errors_
    )


def difficulties(annotations: Annotations) -> NDArray[np.float64] | None:
    """Returns GLAD's difficulty of each instance `[N]`; None where it is not known who voted, or
    for very many annotations.
    """
    if not annotations.has_identities or annotations.num_annotations > MOST_FOR_GLAD:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(Glad(max_iter=30).fit(annotations).difficulties_)


@dataclasses.dataclass(frozen=True)
class Doubts:
    """Instances with labels, the most doubtful first; arrays of `[M]`.

    Attributes:
        rows: positions of the instances.
        score: the mean of the measures' ranks, from 0 to 1.
        votes: how many labels each has; `share` is the share of them that the consensus label has.
        entropy: of the consensus, divided by log C.
        difficulty: GLAD's, or None.
        disagreement: one minus the model's probability of the consensus label, or None.
    """

    rows: NDArray[np.int64]
    score: NDArray[np.float64]
    votes: NDArray[np.int64]
    share: NDArray[np.float64]
    entropy: NDArray[np.float64]
    difficulty: NDArray[np.float64] | None
    disagreement: NDArray[np.float64] | None


def normalised_entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the entropy of each row of `[N, C]` divided by log C, from 0 to 1."""
    found: NDArray[np.float64] = entr(probabilities).sum(axis=1) / np.log(
        max(2, probabilities.shape[1])
    )
    return found


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns each value's rank among `[M]` from 0 to 1, equal ones sharing theirs."""
    return (rankdata(values) - 1) / max(1, len(values) - 1)


def rank_by_doubt(
    annotations: Annotations,
    agreed: Consensus,
    difficulty: NDArray[np.float64] | None = None,
    model: NDArray[np.float64] | None = None,
) -> Doubts:
    """Ranks the annotated instances by how doubtful their consensus label is.

    Each measure (entropy, GLAD's difficulty, disagreement with the model) is turned into ranks, as
    their scales cannot be compared, and the ranks are averaged. Equal scores are ordered by the
    share of votes, the lowest first.

    Args:
        annotations: of N instances.
        agreed: their consensus.
        difficulty: `[N]` or None.
        model: `[N, C]` probabilities that a model predicts for the same instances, or None; NaN
            rows were not predicted.
    """
    rows = np.flatnonzero(annotations.annotated)
    counts = annotations.vote_counts()[rows]
    labels = agreed.labels[rows]
    votes = counts.sum(axis=1)
    share = counts[np.arange(len(rows)), labels] / votes
    entropy = normalised_entropy(agreed.probabilities[rows])
    measures = [_rank(entropy)]
    hard = None if difficulty is None else difficulty[rows]
    if hard is not None:
        measures.append(_rank(hard))
    against = None
    if model is not None and len(model) == annotations.num_instances:
        against = 1.0 - model[rows, labels]
        filled = np.where(
            np.isfinite(against),
            against,
            np.nanmedian(against) if np.isfinite(against).any() else 0.0,
        )
        measures.append(_rank(filled))
    score = np.mean(measures, axis=0) if len(rows) else np.zeros(0)
    order = np.lexsort((rows, share, -score))
    return Doubts(
        rows=rows[order],
        score=score[order],
        votes=votes[order].astype(np.int64),
        share=share[order],
        entropy=entropy[order],
        difficulty=None if hard is None else hard[order],
        disagreement=None if against is None else against[order],
    )
