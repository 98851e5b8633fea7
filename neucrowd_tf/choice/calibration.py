"""One temperature that makes an average's probabilities as sure as it is right."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.criteria import HOTTEST, Evidence

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


def temperature_for(logits: Array, labels: NDArray[np.int64]) -> float:
    """Returns the temperature with the least log loss."""

    def loss(log_t: float) -> float:
        scaled = log_softmax(logits / np.exp(log_t), axis=1)
        return -float(scaled[np.arange(len(labels)), labels].mean())

    bound = float(np.log(HOTTEST))
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x))


def calibrate(
    predictions: Sequence[NDArray[Any]],
    corrections: Sequence[Array],
    evidence: Evidence,
    gold: NDArray[np.int64],
) -> Calibration:
    """Fits the temperature of the mean of held-out predictions.

    The labels are the consensus' (it errs, but elsewhere than a model that has not seen the
    instance: a temperature from likelihoods of annotations takes shared mistakes for certainty, see
    `results/choice.md`), and gold ones where they are known.

    Args:
        predictions: `[N, C]` by member.
        corrections: `[C]` by member, log shares that its logits lose for a balanced target.
        evidence: the crowd's labels of these N instances.
        gold: `[N]` class codes, -1 where unknown.
    """
    logits = mean_logits(predictions)
    labels = np.where(gold >= 0, gold, evidence.consensus)
    temperature = temperature_for(logits, labels)
    plain = softmax(logits / temperature, axis=1)
    shift = -np.mean(corrections, axis=0) / temperature
    return Calibration(
        temperature,
        shift,
        np.asarray(softmax(logits / temperature + shift, axis=1)),
        expected_calibration_error(np.exp(logits), labels),
        expected_calibration_error(np.asarray(plain), labels),
        "consensus labels" if (gold < 0).any() else "gold labels",
    )
