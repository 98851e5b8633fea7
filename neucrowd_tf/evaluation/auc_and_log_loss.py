"""AUC and log loss, of which scores of tests and the figures that choose epochs are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from neucrowd_tf.errors import one_at_a_time


@one_at_a_time()
def mean_roc_auc(codes: NDArray[np.integer], probabilities: NDArray[np.floating]) -> float:
    """Returns the area under the ROC curve.

    For two classes this is the curve of class 1. For more it is the mean of the one-against-rest
    curves of the classes that occur in `codes`. It is NaN if only one class occurs.

    Args:
        codes: `[M]` class codes.
        probabilities: `[M, C]`.
    """
    present = np.unique(codes)
    if len(present) < 2:
        return float("nan")
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(codes, probabilities[:, 1]))
    curves = [roc_auc_score(codes == code, probabilities[:, code]) for code in present]
    return float(np.mean(curves))


def mean_log_loss(codes: NDArray[np.integer], probabilities: NDArray[np.floating]) -> float:
    """Returns the mean of `log_losses`."""
    return float(log_losses(codes, probabilities).mean())


def log_losses(
    codes: NDArray[np.integer], probabilities: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Returns `[M]` negative log probabilities of the classes, in nats.

    Probabilities are clipped as in scikit-learn, at the smallest step of float64 beside 1.

    Args:
        codes: `[M]` class codes.
        probabilities: `[M, C]`; rows of float32 that sum to one only roughly are scaled.
    """
    scores = probabilities.astype(np.float64)
    likelihoods = scores[np.arange(len(codes)), codes] / scores.sum(axis=1)
    smallest = np.finfo(np.float64).eps
    return -np.log(np.clip(likelihoods, smallest, 1.0 - smallest))
