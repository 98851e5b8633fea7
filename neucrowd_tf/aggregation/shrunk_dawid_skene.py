"""Dawid and Skene's model with every annotator drawn towards the crowd's average."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import Codes, normalise_counts
from neucrowd_tf.aggregation.dawid_skene import DawidSkeneModel
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.types import Floats
from neucrowd_tf.errors import quietly

# Added to every cell, so that no label is impossible.
LEAST_COUNT = 0.01


def average_confusion(crowd: Annotations, shares: Floats) -> Floats:
    """Returns the crowd's confusion matrix `[C true, C observed]` with vote shares as the truth.

    Args:
        crowd: with identities.
        shares: `[N, C]` shares of votes (a gold label has share 1).
    """
    counts = np.full((crowd.num_classes, crowd.num_classes), 1e-3)
    np.add.at(counts.T, crowd.labels, shares[crowd.instances])
    return normalise_counts(counts)


@estimator
class ShrunkDawidSkene(IterativeAggregator):
    """Dawid-Skene EM whose confusion matrices are shrunk to the crowd's average matrix.

    The average is computed once, from vote shares. If it were estimated again in each iteration,
    sparse crowds would collapse onto one class.

    Attributes: see `IterativeAggregator`; there is no ConvergenceWarning.

    Example:
        >>> from neucrowd_tf.datasets.bundled import load_cancer
        >>> labels = ShrunkDawidSkene().fit_predict(load_cancer(seed=0).annotations)
    """

    strength: Annotated[
        float, number(least=0), "labels of the average annotator, added per true class."
    ] = 4.0

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        with quietly():
            super()._fit(crowd, gold)

    def _model(self, crowd: Annotations, shard: Shard) -> DawidSkeneModel:
        average = average_confusion(crowd, shard.votes()).T
        return DawidSkeneModel((self.strength * average + LEAST_COUNT)[None])
