"""Scores of predicted distributions against several annotators' labels, as LeWiDi scores them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import jensenshannon

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array

LEAST = 1e-12


def soft_label_scores(votes: ArrayLike, probabilities: ArrayLike) -> dict[str, float]:
    """Returns mean distances between predicted probabilities and vote shares.

    Args:
        votes: `[M, C]` vote counts; instances with fewer than two labels are left out.
        probabilities: `[M, C]` predictions.

    Returns:
        `soft_cross_entropy` (nats), `soft_manhattan` (0 to 2) and `soft_jensen_shannon` (the
        square root of the divergence in bits, 0 to 1); nothing if no instance has two labels.

    References:
        Leonardelli et al. (2023), SemEval-2023 task 11 (cross-entropy); the 2025 edition
        (Manhattan distance).
    """
    counts = np.asarray(votes, dtype=np.float64)
    p = np.asarray(probabilities, dtype=np.float64)
    several = counts.sum(axis=1) >= 2
    if not several.any():
        return {}
    shares = counts[several] / counts[several].sum(axis=1, keepdims=True)
    p = p[several] / p[several].sum(axis=1, keepdims=True)
    # Rounding may make the divergence of nearly equal shares negative, whose root is NaN.
    distances = np.nan_to_num(jensenshannon(shares, p, base=2, axis=1))
    return {
        "soft_cross_entropy": float(-(shares * np.log(np.maximum(p, LEAST))).sum(axis=1).mean()),
        "soft_manhattan": float(np.abs(shares - p).sum(axis=1).mean()),
        "soft_jensen_shannon": float(distances.mean()),
    }


def perspectivist_error(crowd: Annotations, answers: Array) -> float:
    """Returns the mean over annotators of the share of their labels that are predicted wrongly.

    Args:
        crowd: labels of M test instances, with identities.
        answers: `[M, R, C]` predicted probabilities of each annotator's label.

    References:
        The "perspectivist" task of LeWiDi 2025, for nominal labels.
    """
    wrong = answers[crowd.instances, crowd.annotators].argmax(axis=1) != crowd.labels
    labelled = np.bincount(crowd.annotators, minlength=crowd.num_annotators)
    errors = np.bincount(crowd.annotators, wrong, minlength=crowd.num_annotators)
    return float((errors[labelled > 0] / labelled[labelled > 0]).mean())
