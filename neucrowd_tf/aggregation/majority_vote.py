"""Majority vote."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neucrowd_tf.aggregation.base import Aggregator, Codes, apply_gold, normalise_counts, with_gold
from neucrowd_tf.aggregation.sums import skills_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import annotator_confusion
from neucrowd_tf.annotations.votes import Ties, majority_labels
from neucrowd_tf.declare.declarations import estimator


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
        self.labels_ = with_gold(self.labels_, gold)
        apply_gold(self.probas_, gold)
        self.errors_ = self.skills_ = None
        if crowd.has_identities:
            counts = annotator_confusion(crowd, self.labels_)
            self.errors_ = normalise_counts(counts, 0.0)
            self.skills_ = skills_of(counts, 1.0 / crowd.num_classes)
