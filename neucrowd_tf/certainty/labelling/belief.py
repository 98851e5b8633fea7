"""Annotators' confusion matrices from inferred labels, and what a classifier adds to them."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.special import expit, logit

from neucrowd_tf.aggregation.base import coin_errors
from neucrowd_tf.aggregation.crowd_and_classifier import calibrated, combine, error_matrices
from neucrowd_tf.aggregation.sums import TINY
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats, Indices, Integers, Mask

# An annotator counts as one of the crowd's average on a class until labels as many as these say
# otherwise.
PSEUDO_LABELS = 8.0
LEAST = 1e-9
# See `with_less_lean`. On the public crowds of `benchmarks.certainty` this finds as many wrong
# labels as no correction does.
LEANING = 0.25
KEPT = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Belief:
    """Probabilities given the labels at hand.

    Attributes:
        probas: `[N, C]` of each task's class.
        errors: `[R, C true class, C observed class]` of each annotator's label.
        accuracy: the crowd's.
    """

    probas: Floats
    errors: Floats
    accuracy: float


def belief_of(crowd: Annotations, probas: Floats, people: Mask | None = None) -> Belief:
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


def with_less_lean(probas: Floats, votes: Integers) -> Floats:
    """Returns probabilities `[N, C]` in which the same split of votes is more alike for all labels.

    Two votes of three for one class may be right far more often than two of three for another, if
    annotators lean, and without gold labels nothing shows towards which. Likewise a model may trust
    the wrong annotators. So with probability `LEANING` it only counts how votes are split: other
    differences between items of one class keep `KEPT` of their log odds.

    Args:
        probas: `[N, C]` of the inferred labels; those that are certain stay.
        votes: `[N, C]` vote counts.
    """
    size = probas.shape[1]
    labels = probas.argmax(axis=1)
    top = probas.max(axis=1)
    splits = np.unique(np.sort(votes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    scores = logit(np.clip(top, LEAST, 1.0 - LEAST))

    def mean(groups: Indices) -> Floats:
        """Returns `[N]` the mean score of each item's group."""
        return (np.bincount(groups, scores) / np.maximum(np.bincount(groups), 1))[groups]

    beyond = scores - mean(splits * size + labels)
    even = np.maximum(expit(mean(splits) + KEPT * beyond), 1.0 / size)
    by_split = probas * ((1.0 - even) / np.maximum(1.0 - top, LEAST))[:, None]
    by_split[np.arange(len(probas)), labels] = even
    certain = top == 1.0
    by_split[certain] = probas[certain]
    by_split /= by_split.sum(axis=1, keepdims=True)
    return LEANING * by_split + (1.0 - LEANING) * probas


def evidence_of(crowd: Annotations, probas: Floats) -> Floats:
    """Returns `[N, C]` what a classifier adds to the labels.

    Its probabilities are scaled to the temperature at which they fit the votes, and divided by
    their mean, which the crowd's labels contain already.

    Args:
        crowd: the labels.
        probas: `[N, C]` of the classifier, out of sample.
    """
    scaled = calibrated(probas, crowd.vote_counts().astype(np.float64))
    return scaled / scaled.mean(axis=0)


def with_evidence(probas: Floats, evidence: Floats) -> Floats:
    """Returns probabilities `[N, C]` by labels and a classifier, see `evidence_of`.

    They are multiplied as if labels and features were independent given the class.
    """
    return combine(np.log(np.maximum(probas, TINY)), evidence)
