"""One temperature that makes an average's probabilities as sure as it is right."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.criteria import HOTTEST, Evidence
from neucrowd_tf.choice.weights import beliefs_and_likelihoods

Array = NDArray[np.float64]
BINS = 15


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A fitted temperature.

    Attributes:
        temperature: T.
        shift: `[C]` what is added to logits at that temperature: minus the log of the classes'
            shares for a balanced target, else zeros.
        probabilities: `[N, C]` the average's held-out predictions with both.
        before, after: expected calibration error without and with the temperature.
        against: what it was measured against.
    """

    temperature: float
    shift: Array
    probabilities: Array
    before: float
    after: float
    against: str


def expected_calibration_error(probabilities: Array, labels: NDArray[np.int64]) -> float:
    """Returns the mean gap between confidence and accuracy over bins of confidence, each weighted
    with its share of the rows.

    References:
        Guo et al. (2017), On calibration of modern neural networks, section 2.
    """
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    which = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(which, sure - right, BINS)).sum() / len(labels))


def consensus_mistakes(evidence: Evidence, predicted: NDArray[np.int64]) -> Array:
    """Returns `[C, C]`: how likely the consensus is each class (columns) where the true class is
    the row's.

    Args:
        evidence: the crowd's labels of N instances.
        predicted: `[N]` classes that a model predicts for them, held out.
    """
    beliefs, _ = beliefs_and_likelihoods(evidence, predicted)
    given = np.eye(evidence.num_classes)[evidence.consensus]
    joint = beliefs.T @ given + 1e-3
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def temperature_for(logits: Array, labels: NDArray[np.int64], mistakes: Array) -> float:
    """Returns the temperature with the least log loss of labels that have mistakes.

    Args:
        logits: `[N, C]`.
        labels: `[N]` class codes.
        mistakes: `[N, C, C]` or `[C, C]`, the probability of a label (last) given the true class.

    References:
        Patrini et al. (2017), Making deep neural networks robust to label noise: forward
        correction; Guo et al. (2017), section 4.2.
    """
    rows = np.arange(len(labels))
    seen = np.broadcast_to(mistakes, (len(labels), *mistakes.shape[-2:]))[rows, :, labels]

    def loss(log_t: float) -> float:
        likely = (softmax(logits / np.exp(log_t), axis=1) * seen).sum(axis=1)
        return -float(np.log(np.maximum(likely, 1e-12)).mean())

    bound = float(np.log(HOTTEST))
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x))


def calibrate(
    predictions: Sequence[NDArray[Any]],
    corrections: Sequence[Array],
    weights: Sequence[float],
    evidence: Evidence,
    gold: NDArray[np.int64],
) -> Calibration:
    """Fits the temperature of the mean of held-out predictions.

    It makes the consensus labels most likely, whose mistakes are allowed for as far as labels and
    predictions tell them (the consensus alone would make too unsure), and gold labels, which have
    none.

    Args:
        predictions: `[N, C]` by member.
        corrections: `[C]` by member, log shares that its logits lose for a balanced target.
        weights: how much each member counts.
        evidence: the crowd's labels of these N instances.
        gold: `[N]` class codes, -1 where unknown.
    """
    logits = mean_logits(predictions, weights)
    errors = consensus_mistakes(evidence, logits.argmax(axis=1))
    labels = np.where(gold >= 0, gold, evidence.consensus)
    mistakes = np.where((gold >= 0)[:, None, None], np.eye(logits.shape[1]), errors)
    temperature = temperature_for(logits, labels, mistakes)
    plain = softmax(logits / temperature, axis=1)
    shift = -np.average(corrections, axis=0, weights=weights) / temperature
    return Calibration(
        temperature,
        shift,
        np.asarray(softmax(logits / temperature + shift, axis=1)),
        expected_calibration_error(np.exp(logits), labels),
        expected_calibration_error(np.asarray(plain), labels),
        "consensus labels" if (gold < 0).any() else "gold labels",
    )
