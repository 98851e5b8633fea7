"""Criteria that the study of `auto` compares with its own two: higher is better.

Each takes predictions `[N, C]` for held-out instances and those instances' annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from neucrowd_tf.aggregation.crowd_and_classifier import alternate, log_likelihoods
from neucrowd_tf.choice.evidence import (
    CRITERIA,
    FOLDS,
    ROUNDS,
    Evidence,
    joint_table,
    label_log_likelihood,
    pooled,
)
from neucrowd_tf.choice.pooling import HOTTEST

Array = NDArray[np.float64]
Criterion = Callable[[Array, Evidence], float]
_TINY = 1e-12


def consensus_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the share of instances whose prediction is the consensus label."""
    return float((probabilities.argmax(axis=1) == evidence.consensus).mean())


def label_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the share of single labels that are the predicted class."""
    right = probabilities.argmax(axis=1)[evidence.instances] == evidence.labels
    return float(np.average(right, weights=evidence.weights))


def weighted_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the same with labels weighted by their annotator's log odds of being right."""
    size = evidence.one_hot.shape[1] // evidence.num_classes
    agrees = (evidence.labels == evidence.consensus[evidence.instances]) * evidence.weights
    right = np.bincount(evidence.annotators, agrees, size) + 1.0
    total = np.bincount(evidence.annotators, evidence.weights, size) + 2.0
    odds = np.log(right / (total - right) * (evidence.num_classes - 1))
    weights = evidence.weights * np.maximum(odds, 0.0)[evidence.annotators]
    hits = probabilities.argmax(axis=1)[evidence.instances] == evidence.labels
    return float(hits @ weights / max(weights.sum(), _TINY))


def mutual_information(probabilities: Array, evidence: Evidence) -> float:
    """Returns the mutual information of predicted classes and labels, in nats."""
    joint = joint_table(probabilities, evidence)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def instance_log_likelihood(probabilities: Array, evidence: Evidence) -> float:
    """Returns the mean log likelihood of an instance's labels together."""
    logs = np.zeros(len(evidence.consensus))
    for fold in range(FOLDS):
        held_out = evidence.folds == fold
        errors = evidence.errors(probabilities * ~held_out[:, None])
        likely = log_likelihoods(evidence.one_hot, errors)[held_out]
        joint = np.log(np.maximum(probabilities[held_out], _TINY)) + likely
        logs[held_out] = logsumexp(joint, axis=1)
    return float(logs.mean())


def calibrated(criterion: Criterion) -> Criterion:
    """Returns a criterion at the temperature that is best for it."""

    def score(probabilities: Array, evidence: Evidence) -> float:
        logs = np.log(np.maximum(probabilities, _TINY))

        def loss(log_t: float) -> float:
            heated = np.exp(log_softmax(logs / np.exp(log_t), axis=1))
            return -criterion(heated, evidence)

        bound = float(np.log(HOTTEST))
        options = {"xatol": 0.02}
        best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options=options)
        return -loss(best.x)

    return score


def posterior_agreement(
    candidates: Mapping[str, Array], evidence: Evidence, *, balanced: bool = False
) -> dict[str, float]:
    """Returns each candidate's expected accuracy under the posterior of the others' mean.

    Args:
        candidates: predictions by name, at least two.
        evidence: the crowd's labels.
        balanced: whether all classes count equally.
    """
    total = np.sum(list(candidates.values()), axis=0)
    scores = {}
    for name, probabilities in candidates.items():
        others = (total - probabilities) / max(1, len(candidates) - 1)
        posterior = alternate(
            evidence.one_hot, others, others, pseudo_counts=pooled, max_iter=ROUNDS, least=1e-3
        ).probas
        guess = np.eye(posterior.shape[1])[probabilities.argmax(axis=1)]
        right = (guess * posterior).sum(axis=0)
        scores[name] = float(
            (right / posterior.sum(axis=0)).mean() if balanced else right.sum() / len(posterior)
        )
    return scores


SINGLE: dict[str, Criterion] = {
    "consensus": consensus_agreement,
    "labels": label_agreement,
    "weighted labels": weighted_agreement,
    "information": mutual_information,
    **CRITERIA,
    "likelihood of a label, calibrated": calibrated(label_log_likelihood),
    "likelihood of an instance": instance_log_likelihood,
    "likelihood of an instance, calibrated": calibrated(instance_log_likelihood),
}
