"""ActiveLab: which tasks to label again, by how sure crowd and classifier together are of them."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.aggregation.crowd_and_classifier import calibrated
from neucrowd_tf.aggregation.crowdlab import Crowdlab
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats


def activelab_scores(crowd: Annotations, probas: Floats) -> Floats:
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
        quality = model.quality_
        weights = model.weights_
        model_weight = model.model_weight_
    else:  # No agreement to weigh annotators by: the classifier judges the labels.
        labels = (votes + probas / 2.0).argmax(axis=1)
        quality = probas[np.arange(len(labels)), labels]
        weights = np.ones(crowd.num_annotators)
        model_weight = 1.0
    total = model_weight + np.bincount(
        crowd.instances, weights=weights[crowd.annotators], minlength=crowd.num_instances
    )
    average = float(weights[crowd.labels_per_annotator() > 0].mean())
    return (total * quality + average / crowd.num_classes) / (total + average)
