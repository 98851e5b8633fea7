"""Annotators' confusion matrices from inferred labels, and what a classifier adds to them."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.aggregation.base import coin_errors
from neucrowd_tf.aggregation.crowd_and_classifier import calibrated, combine, error_matrices
from neucrowd_tf.aggregation.sums import TINY
from neucrowd_tf.annotations import Annotations

# An annotator counts as one of the crowd's average on a class until labels as many as these say
# otherwise.
PSEUDO_LABELS = 8.0


@dataclasses.dataclass(frozen=True)
class Belief:
    """Probabilities given the labels at hand.

    Attributes:
        probas: `[N, C]` of each task's class.
        errors: `[R, C true class, C observed class]` of each annotator's label.
        accuracy: the crowd's.
    """

    probas: NDArray[np.float64]
    errors: NDArray[np.float64]
    accuracy: float


def belief_of(
    crowd: Annotations, probas: NDArray[np.float64], people: NDArray[np.bool_] | None = None
) -> Belief:
    """Returns what follows from inferred probabilities: annotators' matrices, shrunk to the crowd.

    `PSEUDO_LABELS` of an annotator as accurate as the crowd are added for each true class.

    Args:
        crowd: with identities.
        probas: `[N, C]` of the inferred labels, recalibrated.
        people: `[R]` whether each annotator is a person; the crowd's accuracy is theirs alone.
    """
    right = probas[crowd.instances, crowd.labels]
    if people is not None and people[crowd.annotators].any():
        right = right[people[crowd.annotators]]
    accuracy = float(right.mean())
    pseudo_counts = PSEUDO_LABELS * coin_errors(np.array([accuracy]), crowd.num_classes)
    return Belief(probas, error_matrices(crowd.one_hot(), probas, pseudo_counts), accuracy)


def evidence_of(crowd: Annotations, probas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[N, C]` what a classifier adds to the labels.

    Its probabilities are scaled to the temperature at which they fit the votes, and divided by
    their mean, which the crowd's labels contain already.

    Args:
        crowd: the labels.
        probas: `[N, C]` of the classifier, out of sample.
    """
    scaled = calibrated(probas, crowd.vote_counts().astype(np.float64))
    return np.asarray(scaled / scaled.mean(axis=0))


def with_evidence(
    probas: NDArray[np.float64], evidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns probabilities `[N, C]` by labels and a classifier, see `evidence_of`.

    They are multiplied as if labels and features were independent given the class.
    """
    return combine(np.log(np.maximum(probas, TINY)), evidence)
