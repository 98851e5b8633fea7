"""How much each member of the average counts, by the crowd's labels of held-out instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from neucrowd_tf.choice.average import log_probabilities, mean_logits
from neucrowd_tf.choice.criteria import Evidence
from neucrowd_tf.choice.ranking import Known, Ranked, shifted

Array = NDArray[np.float64]
ROUNDS = 3  # of beliefs and annotators' matrices in turns, as `criteria.posterior` has them
# Weights are drawn to their mean: so much times M times the sum of squared distances is taken off
# the log likelihood. Ten times as much kept one good member among seven poor ones from counting.
DRAWN_TO_MEAN = 0.3
# So much of the weight is shared evenly: who imitates mistakes that annotators share makes their
# labels likely too, and no number of labels tells.
EVENLY = 0.5
MOST_ROWS = 20_000  # tell the weights as well as more would
KNOWN = 30.0  # log odds of a label known to be true
STEPS = 60


def beliefs_and_likelihoods(
    evidence: Evidence, predicted: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Returns `[N, C]` beliefs in the true classes and `[N, C]` log likelihoods of the labels.

    What is true comes from the labels and the predictions together, which count as those of one
    more annotator. Labels alone would show their own consensus to be right more often than it is:
    on sparse tables at .80 where it was .65.

    Args:
        evidence: the crowd's labels of N instances.
        predicted: `[N]` classes that a model predicts for them, held out.

    References:
        Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates.
    """
    size = evidence.num_classes
    guessed = np.eye(size)[predicted]
    beliefs = np.eye(size)[evidence.consensus]
    for _ in range(ROUNDS):
        prior = np.log((beliefs.sum(axis=0) + 1) / (len(beliefs) + size))
        model = beliefs.T @ guessed + 1 / size
        model /= model.sum(axis=1, keepdims=True)
        likely = evidence.likelihoods(evidence.matrices(beliefs))
        beliefs = softmax(likely + np.log(model)[:, predicted].T + prior, axis=1)
    return beliefs, likely


def fit_weights(predictions: Sequence[Array], likelihoods: Array, counts: Array) -> Array:
    """Returns `[M]` weights of at least 0, under which the members' mean makes labels likely:
    `sum_i v_i log sum_c q_i(c) exp(l_i(c))`, `q = softmax(sum_m w_m log p_m)`; drawn to their mean.

    Their sum is the inverse of a temperature; their shares are what is used.

    Args:
        predictions: `[N, C]` by member.
        likelihoods: `[N, C]` log likelihoods l of what is known of each instance, by true class.
        counts: `[N]` how much an instance counts, v.

    References:
        Wolpert (1992), Stacked generalization; Genest and Zidek (1986), Combining probability
        distributions (logarithmic pools).
    """
    logs = np.stack([log_probabilities(one) for one in predictions])
    members = len(logs)

    def loss(weights: Array) -> tuple[float, Array]:
        pooled = log_softmax(np.tensordot(weights, logs, 1), axis=1)
        joint = pooled + likelihoods
        seen = logsumexp(joint, axis=1)
        pull = (np.exp(joint - seen[:, None]) - np.exp(pooled)) * counts[:, None]
        off = weights - weights.mean()
        penalty = DRAWN_TO_MEAN * members * float(off @ off)
        slope = -np.tensordot(logs, pull, 2) + 2 * DRAWN_TO_MEAN * members * off
        return penalty - float(seen @ counts), slope

    start = np.full(members, 1 / members)
    bounds = [(0, None)] * members
    options = {"maxiter": STEPS}
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    return np.asarray(found)


def weigh(
    held_out: Mapping[str, Array],
    ranked: Ranked,
    evidence: Evidence,
    known: Known,
    *,
    balanced: bool = False,
) -> list[float]:
    """Returns the weights of `ranked.kept`, which sum to one: the mean of even weights and of those
    under which the crowd's labels are likeliest.

    Args:
        held_out: predictions `[N, C]` by candidate.
        ranked: which are kept, and their corrections.
        evidence: the crowd's labels of these instances.
        known: gold labels and validation truth, which are certain.
        balanced: whether classes count alike.
    """
    if len(ranked.kept) == 1:
        return [1.0]
    size = evidence.num_classes
    predicted = mean_logits(list(held_out.values())).argmax(axis=1)
    beliefs, likely = beliefs_and_likelihoods(evidence, predicted)
    counts = np.ones(len(beliefs))
    if balanced:
        counts = (beliefs / np.maximum(beliefs.mean(axis=0), 1 / len(beliefs))).sum(axis=1) / size
    certain = KNOWN * (np.eye(size) - 1)
    gold = np.flatnonzero(known.rows >= 0)
    likely[gold] = certain[known.rows[gold]]
    every = slice(None, None, -(-len(likely) // MOST_ROWS))
    # What is known comes gold labels first, which are among the rows.
    more = known.labels[len(gold) :]
    pooled = [
        shifted(
            np.concatenate([held_out[name][every], _more(known, name, len(gold))]),
            ranked.corrections[name],
        )
        for name in ranked.kept
    ]
    found = fit_weights(
        pooled,
        np.concatenate([likely[every], certain[more]]),
        np.concatenate([counts[every] / counts.mean(), np.ones(len(more))]),
    )
    even = np.full(len(found), 1 / len(found))
    shares = found / found.sum() if found.sum() > 0 else even
    return [float(share) for share in EVENLY * even + (1 - EVENLY) * shares]


def _more(known: Known, name: str, skipped: int) -> NDArray[Any]:
    """Returns what a candidate predicts for validation data, `[G - skipped, C]`."""
    return known.predictions[name][skipped:]
