"""Validation data out of the training data, judged by authentic annotations alone."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.validation import hold_out


def held_out(data: TrainingData, fraction: float, seed: int) -> TrainingData:
    """Returns the data with a share of its instances as validation data, labelled by the majority
    of their authentic annotations.

    Instances that have generated annotations only are never held out, and generated ones do not
    vote.

    Args:
        data: without validation data.
        fraction: the share of the instances with authentic annotations.
        seed: draws the split and ties.
    """
    from neucrowd_tf.aggregation import MajorityVote

    authentic = data.annotations.observed()
    judged = np.flatnonzero(authentic.annotated)
    consensus = np.asarray(MajorityVote(seed=seed).fit(authentic[judged]).labels_, dtype=np.int64)
    part, kept = hold_out(
        TrainingData(data.features[judged], authentic[judged], None, data.rows[judged]),
        consensus,
        fraction,
        seed,
    )
    rows = np.union1d(judged[kept], np.flatnonzero(~authentic.annotated))
    return TrainingData(
        data.features[rows], data.annotations[rows], part.validation, data.rows[rows]
    )
