"""ActiveLab: which tasks to label again, by how sure crowd and classifier together are of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from neucrowd_tf.aggregation.crowdlab import Crowdlab

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

LEAST_WEIGHT = 1e-6


def activelab_scores(crowd: Annotations, probas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[N]`: the lower, the more a further label is worth.

    CROWDLAB's probability that the consensus label is right is averaged with 1 / C. The first
    weighs as much as the classifier and the instance's annotators, the second as much as an average
    annotator. So of two equally doubtful instances the one with fewer labels comes first.

    Args:
        crowd: with identities; N instances.
        probas: `[N, C]` a classifier's probabilities, out of sample.

    References:
        Goh and Mueller (2023), ActiveLab: active learning with re-labeling by multiple annotators,
        equations 1 to 4.
    """
    votes = crowd.vote_counts().astype(np.float64)
    if (votes.sum(axis=1) > 1).any():
        model = Crowdlab().fit(crowd, probabilities=calibrated(probas, votes))
        quality, weights, model_weight = model.quality_, model.weights_, model.model_weight_
    else:  # No agreement to weigh annotators by: the classifier judges the labels.
        labels = (votes + probas / 2.0).argmax(axis=1)
        quality = probas[np.arange(len(labels)), labels]
        weights, model_weight = np.ones(crowd.num_annotators), 1.0
    total = model_weight + np.bincount(
        crowd.instances, weights=weights[crowd.annotators], minlength=crowd.num_instances
    )
    average = float(weights[crowd.labels_per_annotator() > 0].mean())
    return np.asarray((total * quality + average / crowd.num_classes) / (total + average))


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
