"""What is believed of tasks and annotators where labels are few: Dawid and Skene's model, each
annotator's confusion drawn towards that of the crowd.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.labelling.activelab import calibrated

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
    """Returns the accuracy a that annotators would all have if their mistakes fell evenly on the
    other classes: two labels of a task then agree with probability a^2 + (1 - a)^2 / (C - 1).
    """
    votes = crowd.vote_counts().astype(np.float64)
    given = votes.sum(axis=1)
    pairs = float((given * (given - 1)).sum())
    size = crowd.num_classes
    if size < 2:
        return 1.0
    if not pairs:
        return UNKNOWN_ACCURACY
    agreed = float((votes * (votes - 1)).sum()) / pairs
    accuracy = (1.0 + np.sqrt((size - 1) * max(size * agreed - 1.0, 0.0))) / size
    return float(np.clip(accuracy, 1.0 / size, MOST_ACCURATE))


def believe(crowd: Annotations, gold: Any = None) -> Belief:
    """Fits Dawid and Skene's model, `PSEUDO_LABELS` of the crowd's accuracy added to each
    annotator's labels of each class, and the prior held at the shares of the labels: where tasks
    have one label each, nothing else keeps the likeliest solution from calling all of them one
    class.

    Args:
        crowd: with identities.
        gold: labels that are known, as `DawidSkene.fit` takes them.
    """
    from sklearn.exceptions import ConvergenceWarning

    size = crowd.num_classes
    accuracy = crowd_accuracy(crowd)
    row = np.full((size, size), (1.0 - accuracy) / max(size - 1, 1))
    np.fill_diagonal(row, accuracy)
    shares = crowd.vote_counts().sum(axis=0) + 1.0
    prior = shares / shares.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DawidSkene(smoothing=PSEUDO_LABELS * row, prior=prior, max_iter=200)
        model.fit(crowd, gold)
    if model.errors_ is None:  # for the type checker: there are identities
        raise ValueError("expected annotators' errors")
    return Belief(model.probas_, model.errors_, accuracy)


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
    scaled = calibrated(probas, crowd.vote_counts().astype(np.float64))
    joint = belief.probas * scaled / scaled.mean(axis=0)
    return dataclasses.replace(belief, probas=joint / joint.sum(axis=1, keepdims=True))
