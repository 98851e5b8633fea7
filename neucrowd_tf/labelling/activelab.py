"""ActiveLab: which tasks to label again, by how sure crowd and classifier together are of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

LEAST_WEIGHT = 1e-6


def activelab_scores(crowd: Annotations, probas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[N]`: the lower, the more a further label is worth.

    CROWDLAB's probability that the consensus label is right is averaged with 1 / C, the weight of
    the first being that of the classifier and of the annotators who labelled the task, the weight
    of the second that of an average annotator. So tasks with few labels come before equally
    doubtful ones with many.

    Args:
        crowd: with identities; N tasks.
        probas: `[N, C]` a classifier's probabilities, out of sample.

    References:
        Goh and Mueller (2023), ActiveLab: active learning with re-labeling by multiple annotators,
        equations 1 to 4; Goh et al. (2022), CROWDLAB, section 3.
    """
    size = crowd.num_classes
    votes = crowd.vote_counts().astype(np.float64)
    given = votes.sum(axis=1)
    probas = calibrated(probas, votes)
    # Ties of the vote go to the class that the classifier finds likelier.
    consensus = (votes + probas / (probas.max() + 1.0)).argmax(axis=1)
    quality, _, _ = _crowdlab(crowd, votes, given, consensus, probas)
    consensus = quality.argmax(axis=1)  # CROWDLAB's likeliest, and the weights that follow from it
    quality, weights, model_weight = _crowdlab(crowd, votes, given, consensus, probas)
    heard = np.bincount(
        crowd.instances, weights=weights[crowd.annotators], minlength=crowd.num_instances
    )
    known = heard + model_weight
    average = float(weights.mean())
    best = quality[np.arange(len(quality)), consensus]
    return np.asarray((known * best + average / size) / (known + average))


def calibrated(probas: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns probabilities raised to 1 / T and normalised, T being what makes the shares of votes
    `[N, C]` likeliest. The authors' package scales too, but searches otherwise and ends at flatter
    probabilities.
    """
    given = votes.sum(axis=1) > 0
    shares = votes[given] / votes[given].sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(probas, LEAST_WEIGHT))

    def scaled(log_temperature: float) -> NDArray[np.float64]:
        found: NDArray[np.float64] = log_softmax(logs / np.exp(log_temperature), axis=1)
        return found

    best = minimize_scalar(
        lambda value: -float((shares * scaled(value)[given]).sum()), bounds=(-5.0, 5.0)
    )
    return np.exp(scaled(float(best.x)))


def _crowdlab(
    crowd: Annotations,
    votes: NDArray[np.float64],
    given: NDArray[np.float64],
    consensus: NDArray[np.int64],
    probas: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Returns CROWDLAB's class probabilities `[N, C]`, the annotators' weights `[R]` and the
    classifier's.
    """
    size = crowd.num_classes
    several = given > 1
    if not several.any():  # nothing to weigh annotators by
        return probas, np.ones(crowd.num_annotators), 1.0
    rows = several[crowd.instances]
    instances, annotators = crowd.instances[rows], crowd.annotators[rows]
    labels = crowd.labels[rows]
    own = votes[np.arange(len(votes)), consensus] / np.maximum(given, 1)
    agreement = float(own[several].mean())
    others = (votes[instances, labels] - 1.0, given[instances] - 1.0)
    agreed, met = (
        np.bincount(annotators, weights=part, minlength=crowd.num_annotators) for part in others
    )
    overall = agreed.sum() / met.sum()
    with_others = np.divide(agreed, met, out=np.full(len(met), overall), where=met > 0)
    # What is left wrong by always saying the commonest class.
    base = np.bincount(consensus[several], minlength=size).max() / several.sum()
    base_error = max(1.0 - base, LEAST_WEIGHT)
    weights = np.maximum(1.0 - (1.0 - with_others) / base_error, LEAST_WEIGHT)
    model_error = float(np.mean(probas[several].argmax(axis=1) != consensus[several]))
    model_weight = max(1.0 - model_error / base_error, LEAST_WEIGHT) * np.sqrt(given.mean())
    # Each label's distribution: `agreement` on its class, the rest on the others.
    heard = np.zeros_like(probas)
    np.add.at(heard, (crowd.instances, crowd.labels), weights[crowd.annotators])
    total = heard.sum(axis=1, keepdims=True)
    elsewhere = (1.0 - agreement) / max(size - 1, 1)
    crowd_part = heard * agreement + (total - heard) * elsewhere
    mixed = (model_weight * probas + crowd_part) / (model_weight + total)
    return mixed, weights, float(model_weight)
