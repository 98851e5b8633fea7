"""What the report says of a crowd: a consensus, and the instances ranked by how doubtful their
labels are.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import entr
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


def normalised_entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the entropy of each row of `[N, C]` divided by log C, from 0 to 1."""
    found: NDArray[np.float64] = entr(probabilities).sum(axis=1) / np.log(
        max(2, probabilities.shape[1])
    )
    return found


def rank_by_doubt(
    annotations: Annotations,
    agreed: Consensus,
    difficulty: NDArray[np.float64] | None = None,
    model: NDArray[np.float64] | None = None,
) -> pd.DataFrame:
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

    Returns:
        a row an annotated instance, the most doubtful first, with columns
        - rows: its position;
        - votes: how many labels it has; share: the share of them that the consensus label has;
        - entropy: of the consensus, divided by log C;
        - difficulty: GLAD's; disagreement: one minus the model's probability of the consensus
          label; where these are given;
        - score: the mean of the measures' ranks, from 0 to 1.
    """
    rows = np.flatnonzero(annotations.annotated)
    counts, labels = annotations.vote_counts()[rows], agreed.labels[rows]
    votes = counts.sum(axis=1)
    share = counts[np.arange(len(rows)), labels] / votes
    table = pd.DataFrame({"rows": rows, "votes": votes, "share": share})
    table["entropy"] = normalised_entropy(agreed.probabilities[rows])
    if difficulty is not None:
        table["difficulty"] = difficulty[rows]
    if model is not None and len(model) == annotations.num_instances:
        table["disagreement"] = 1.0 - model[rows, labels]
    measures = table.drop(columns=["rows", "votes", "share"])
    ranks = measures.fillna(measures.median()).fillna(0.0).rank()  # from 1, equal ones share theirs
    table["score"] = (ranks - 1).mean(axis=1) / max(1, len(rows) - 1)
    return table.sort_values(["score", "share"], ascending=[False, True], kind="stable")
