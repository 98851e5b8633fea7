"""The weights and the temperature of the average, fitted to held-out instances' labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from neucrowd_tf.declare.types import Floats, Indices
from neucrowd_tf.methods.auto.average import log_probabilities, mean_logits
from neucrowd_tf.methods.auto.candidate_selection import Selected, shifted
from neucrowd_tf.methods.auto.evidence import Evidence

# Weights are shrunk to their mean: this times M times the sum of squared distances from it is
# subtracted from the log likelihood. With ten times as much, one good member among seven poor ones
# had no effect.
SHRINKAGE = 0.3
# This share of the weight is divided evenly. A member that imitates mistakes which annotators share
# also makes their labels likely, and no number of labels shows that.
EVENLY = 0.75
MOST_ROWS = 20_000  # more would not change the weights
CERTAIN = 30.0  # log odds of a true label
STEPS = 60  # of the optimiser of weights, at most
HOTTEST = 10.0  # the largest temperature; the smallest is its inverse


def fit_weights(predictions: Sequence[Floats], likelihoods: Floats, counts: Floats) -> Floats:
    """Returns `[M]` non-negative weights under which the members' mean makes labels likely.

    They maximise `sum_i v_i log sum_c q_i(c) exp(l_i(c))` with `q = softmax(sum_m w_m log p_m)`,
    shrunk to their mean. Their sum is the inverse of a temperature; only their shares are used.

    Args:
        predictions: `[N, C]` by member.
        likelihoods: `[N, C]` log likelihoods l of each instance's labels by true class.
        counts: `[N]` weights v of the instances.

    References:
        Wolpert (1992), Stacked generalization; Genest and Zidek (1986), Combining probability
        distributions (logarithmic pools).
    """
    logs = log_probabilities(predictions)
    members = len(logs)

    def loss(weights: Floats) -> tuple[float, Floats]:
        pooled = log_softmax(np.tensordot(weights, logs, 1), axis=1)
        joint = pooled + likelihoods
        evidence = logsumexp(joint, axis=1)
        pull = (np.exp(joint - evidence[:, None]) - np.exp(pooled)) * counts[:, None]
        distances = weights - weights.mean()
        penalty = SHRINKAGE * members * float(distances @ distances)
        gradient = -np.tensordot(logs, pull, 2) + 2 * SHRINKAGE * members * distances
        return penalty - float(evidence @ counts), gradient

    start = np.full(members, 1 / members)
    bounds = [(0, None)] * members
    options = {"maxiter": STEPS}
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return best.x


def weigh(held_out: Mapping[str, Floats], selected: Selected, evidence: Evidence) -> list[float]:
    """Returns the weights of `selected.members`, which sum to one.

    They are a mean of even weights (`EVENLY`) and of those of `fit_weights`. Members that make
    other mistakes than the rest have together half of the even weights.

    Args:
        held_out: predictions `[N, C]` by candidate.
        selected: the members and their corrections.
        evidence: the crowd's labels of these instances, and true labels, which are certain.
    """
    if len(selected.members) == 1:
        return [1.0]
    size = evidence.num_classes
    posterior = evidence.posterior(mean_logits(list(held_out.values())).argmax(axis=1))
    probas = posterior.probas
    likelihoods = posterior.log_likelihoods
    counts = np.ones(len(probas))
    if selected.balanced:
        counts = (probas / np.maximum(probas.mean(axis=0), 1 / len(probas))).sum(axis=1) / size
    known = evidence.gold >= 0
    likelihoods[known] = CERTAIN * (np.eye(size) - 1)[evidence.gold[known]]
    rows = slice(None, None, math.ceil(len(probas) / MOST_ROWS))
    predictions = []
    for name in selected.members:
        predictions.append(shifted(held_out[name][rows], selected.corrections[name]))
    weights = fit_weights(predictions, likelihoods[rows], counts[rows] / counts.mean())
    apart = np.isin(selected.members, list(selected.unlike))
    sizes = np.where(apart, apart.sum(), (~apart).sum())
    even = 1 / sizes / (1 / sizes).sum()
    shares = even
    if weights.sum() > 0:
        shares = weights / weights.sum()
    return (EVENLY * even + (1 - EVENLY) * shares).tolist()


# --------------------------------------------------------------------------- temperature


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted temperature.

    Attributes:
        temperature: T.
        shift: `[C]` added to logits at that temperature: minus the log class shares for a balanced
            target, else zeros.
        probabilities: `[N, C]` the average's held-out predictions with both.
    """

    temperature: float
    shift: Floats
    probabilities: Floats


def consensus_mistakes(evidence: Evidence, predicted: Indices) -> Floats:
    """Returns `[C, C]` the probability of each consensus class (columns) by true class (rows).

    Args:
        evidence: the crowd's labels of N instances.
        predicted: `[N]` held-out classes of a model.
    """
    consensus = np.eye(evidence.num_classes)[evidence.consensus]
    joint = evidence.posterior(predicted).probas.T @ consensus + 1e-3
    return joint / joint.sum(axis=1, keepdims=True)


def temperature_for(logits: Floats, emitted: Floats) -> float:
    """Returns the temperature with the least log loss of noisy labels.

    Args:
        logits: `[N, C]`.
        emitted: `[N, C]` the probability of each instance's label by true class.

    References:
        Patrini et al. (2017), Making deep neural networks robust to label noise: forward
        correction; Guo et al. (2017), section 4.2.
    """

    def loss(log_t: float) -> float:
        likelihoods = (softmax(logits / np.exp(log_t), axis=1) * emitted).sum(axis=1)
        return -float(np.log(np.maximum(likelihoods, 1e-12)).mean())

    bound = float(np.log(HOTTEST))
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x))


def calibrate(
    held_out: Mapping[str, Floats], selected: Selected, weights: Sequence[float], evidence: Evidence
) -> Calibration:
    """Fits the temperature of the mean of held-out predictions.

    It makes consensus labels and gold labels most likely. Estimated mistakes of the consensus are
    allowed for: without them predictions would become too uncertain. Gold labels have no mistakes.

    Args:
        held_out: predictions `[N, C]` by candidate.
        selected: the members and their corrections.
        weights: of the members.
        evidence: the crowd's labels of these N instances, and true labels.
    """
    known = evidence.gold >= 0
    logits = mean_logits([held_out[name] for name in selected.members], weights)
    errors = consensus_mistakes(evidence, logits.argmax(axis=1))
    labels = np.where(known, evidence.gold, evidence.consensus)
    emitted = np.where(known[:, None], np.eye(logits.shape[1])[labels], errors.T[labels])
    temperature = temperature_for(logits, emitted)
    corrections = [selected.corrections[name] for name in selected.members]
    shift = -np.average(corrections, axis=0, weights=weights) / temperature
    return Calibration(temperature, shift, softmax(logits / temperature + shift, axis=1))
