"""Majority vote, with a named and seeded rule for ties."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.aggregation.base import Aggregator, Codes, Ties, apply_gold, normalise_counts
from neucrowd_tf.aggregation.sums import skills_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import annotator_confusion
from neucrowd_tf.declare import estimator
from neucrowd_tf.errors import UsageError


def majority_labels(
    votes: NDArray[np.integer | np.floating], ties: Ties = "random", seed: int = 0
) -> Codes:
    """Returns `[N]` the class with the most votes of each row of `votes` `[N, C]`.

    Args:
        votes: `[N, C]` numbers of votes, or weights from 0.
        ties: "random" draws among the tied classes with `seed`; "first" takes the lowest code;
            "prior" takes the tied class that has the most votes over all rows (the lowest code if
            that is tied too).
        seed: for "random".

    A row without votes gets the class with the most votes over all rows, whatever the rule.
    """
    if ties not in ("random", "first", "prior"):
        raise UsageError(f"ties: expected 'random', 'first' or 'prior', received {ties!r}")
    labels = votes.argmax(axis=1)
    total = votes.sum(axis=0)
    top = votes.max(axis=1, initial=0)
    labels[top == 0] = total.argmax()
    if ties == "first":
        return labels
    is_top = votes == top[:, None]
    tied = np.flatnonzero((is_top.sum(axis=1) > 1) & (top > 0))
    # The highest of one number a class wins; numbers in (0, 1] keep untied classes (0) out.
    rank = (
        1.0 - np.random.default_rng([seed, 0]).random((len(tied), votes.shape[1]))
        if ties == "random"
        else (total + 1.0) / (total.max() + 1.0)
    )
    labels[tied] = (is_top[tied] * rank).argmax(axis=1)
    return labels


@estimator
class MajorityVote(Aggregator):
    """The label that most annotators gave; works on vote counts alone.

    Attributes: see `Aggregator`. `errors_` and `skills_` count agreement with `labels_`, without
    smoothing. Where there is no evidence (a class that an annotator never met, an annotator without
    labels) the row is uniform and the skill 1 / C.
    """

    needs_identities: ClassVar[bool] = False

    ties: Ties = "random"

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        """Counts the votes; gold labels replace them."""
        votes = crowd.vote_counts()
        self.labels_ = majority_labels(votes, self.ties, self.seed)
        self.priors_ = votes.sum(axis=0) / votes.sum()
        cast = votes.sum(axis=1, keepdims=True)
        self.probas_ = np.where(cast > 0, votes / np.maximum(cast, 1), self.priors_)
        if gold is not None:
            self.labels_ = np.where(gold >= 0, gold, self.labels_)
            apply_gold(self.probas_, gold)
        self.errors_ = self.skills_ = None
        if crowd.has_identities:
            counts = annotator_confusion(crowd, self.labels_)
            self.errors_ = normalise_counts(counts, 0.0)
            self.skills_ = skills_of(counts, 1.0 / crowd.num_classes)
