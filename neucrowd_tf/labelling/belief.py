"""Posteriors of items and annotators that have few labels.

The model is Dawid and Skene's, with each annotator's confusion matrix drawn towards that of the
crowd.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.crowd_and_classifier import (
    alternate,
    calibrated,
    combine,
    error_matrices,
)
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.sums import TINY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

# An annotator is taken for one of the crowd's average on a class until labels as many as these say
# otherwise. Chosen between three values by how well the labels held back in the first draw of four
# replays are predicted (docs/relabelling.md).
PSEUDO_LABELS = 8.0
# The accuracy of annotators where no task has two labels, which alone would show it.
UNKNOWN_ACCURACY = 0.7
MOST_ACCURATE = 0.98
# Of annotators and a classifier together.
MOST_ITERATIONS, CONVERGED = 100, 1e-4


@dataclasses.dataclass(frozen=True)
class Belief:
    """Probabilities given the labels at hand.

    Attributes:
        probas: `[N, C]` of each task's class.
        errors: `[R, C true class, C observed class]` of each annotator's label.
        accuracy: the crowd's, from how often two labels of a task agree.
    """

    probas: NDArray[np.float64]
    errors: NDArray[np.float64]
    accuracy: float


def crowd_accuracy(crowd: Annotations) -> float:
    """Returns the common accuracy a of annotators that explains how often labels agree.

    If mistakes are spread evenly over the other classes, two labels of an item agree with
    probability a^2 + (1 - a)^2 / (C - 1).
    """
    votes = crowd.vote_counts().astype(np.float64)
    num_labels = votes.sum(axis=1)
    pairs = float((num_labels * (num_labels - 1)).sum())
    size = crowd.num_classes
    if size < 2:
        return 1.0
    if not pairs:
        return UNKNOWN_ACCURACY
    agreed = float((votes * (votes - 1)).sum()) / pairs
    accuracy = (1.0 + np.sqrt((size - 1) * max(size * agreed - 1.0, 0.0))) / size
    return float(np.clip(accuracy, 1.0 / size, MOST_ACCURATE))


def believe(
    crowd: Annotations, gold: Any = None, people: NDArray[np.bool_] | None = None
) -> Belief:
    """Fits Dawid and Skene's model with a prior from the crowd.

    `PSEUDO_LABELS` of the crowd's accuracy are added to each annotator's labels of each class. The
    class prior is held at the shares of the labels: if items have one label each, nothing else
    prevents a solution in which all are of one class.

    Args:
        crowd: with identities.
        gold: labels that are known, as `DawidSkene.fit` takes them.
        people: `[R]` whether each annotator is a person; the crowd's accuracy is theirs alone.

    Returns:
        what is believed; an annotator without labels is one of the crowd's average.
    """
    from sklearn.exceptions import ConvergenceWarning

    accuracy = crowd_accuracy(
        crowd if people is None or people.all() else crowd.select(people[crowd.annotators])
    )
    row = _average(accuracy, crowd.num_classes)
    shares = crowd.vote_counts().sum(axis=0) + 1.0
    prior = shares / shares.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DawidSkene(smoothing=PSEUDO_LABELS * row, prior=prior, max_iter=200)
        model.fit(crowd, gold)
    if model.errors_ is None:  # for the type checker: there are identities
        raise ValueError("expected annotators' errors")
    return Belief(model.probas_, model.errors_, accuracy)


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
    pseudo_counts = PSEUDO_LABELS * _average(accuracy, crowd.num_classes)
    return Belief(probas, error_matrices(crowd.one_hot(), probas, pseudo_counts), accuracy)


def _average(accuracy: float, size: int) -> NDArray[np.float64]:
    """Returns `[C, C]` the confusion of an annotator of that accuracy, mistakes falling evenly."""
    row = np.full((size, size), (1.0 - accuracy) / max(size - 1, 1))
    np.fill_diagonal(row, accuracy)
    return row


def believe_with_model(crowd: Annotations, probas: NDArray[np.float64]) -> Belief:
    """Fits annotators and the temperature of a classifier together.

    In Dawid and Skene's model each item has a prior of its own: the classifier's probabilities
    raised to 1 / T and normalised.

    Each iteration finds the T that fits the tasks' probabilities best, the annotators' confusions
    (drawn towards the crowd's as `believe` draws them), and the probabilities that follow. So it
    does not matter how sure the classifier says that it is: one that was calibrated to labels of a
    noisy crowd is as unsure as the crowd, and counts for too little in a mean with its votes.

    Args:
        crowd: with identities.
        probas: `[N, C]` of the classifier, best out of sample: where it has learnt a task's own
            labels, they count twice.

    References:
        Raykar et al. (2010), Learning from crowds, section 2 (annotators and a classifier's
        probabilities in one likelihood).
    """
    start = believe(crowd)
    together = alternate(
        crowd.one_hot(),
        lambda posterior: calibrated(probas, posterior),
        start.probas,
        pseudo_counts=PSEUDO_LABELS * _average(start.accuracy, crowd.num_classes),
        max_iter=MOST_ITERATIONS,
        tol=CONVERGED,
    )
    return Belief(together.probas, together.errors, start.accuracy)


def informed(belief: Belief, crowd: Annotations, probas: NDArray[np.float64]) -> Belief:
    """Returns a belief that takes a classifier's word into account, too.

    Its probabilities are scaled to the temperature at which they fit the votes, divided by their
    mean (which the crowd's labels know already) and multiplied with the belief's, as if labels and
    features were independent given the class.

    Args:
        belief: from the labels.
        crowd: the labels.
        probas: `[N, C]` of the classifier, out of sample.
    """
    together = with_evidence(belief.probas, evidence_of(crowd, probas))
    return dataclasses.replace(belief, probas=together)


def evidence_of(crowd: Annotations, probas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[N, C]` what a classifier adds to the labels, see `informed`."""
    scaled = calibrated(probas, crowd.vote_counts().astype(np.float64))
    return np.asarray(scaled / scaled.mean(axis=0))


def with_evidence(
    probas: NDArray[np.float64], evidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns probabilities `[N, C]` by labels and a classifier, see `informed`."""
    return combine(np.log(np.maximum(probas, TINY)), evidence)
