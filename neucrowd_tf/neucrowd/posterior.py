"""What the crowd and a classifier together say of each instance's class: the posterior that
`neucrowd_joint` trains against.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.annotations import Annotations

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PSEUDO = 0.1  # an answer that nobody gave is rare, not impossible
_LEAST = 1e-4  # how sure a classifier may be that an instance is not of a class


def crowd_posterior(annotations: Annotations) -> NDArray[np.float64]:
    """Returns `[N, C]` class probabilities from the annotations alone: Dawid-Skene's posterior, or
    the shares of votes where it is not known who voted.

    References:
        Dawid and Skene (1979), equation 2.5.
    """
    if not annotations.has_identities:
        votes = annotations.vote_counts().astype(np.float64)
        return votes / votes.sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is only where the rounds begin
        return np.asarray(DawidSkene().fit(annotations).probas_)


def refreshed_posterior(
    annotations: Annotations, posterior: NDArray[Any], predicted: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns `[N, C]` posteriors in which a classifier's probabilities are each instance's prior,
    and annotators' confusion matrices, estimated from the last posterior, judge its annotations.

    Without identities the shares of votes are all that annotations say, and are returned again.

    Args:
        posterior: `[N, C]` of the last round.
        predicted: `[N, C]` probabilities from classifiers that were not trained on the instance:
            one that was would only repeat the posterior it learnt.

    References:
        Raykar et al. (2010), Learning from crowds, section 2.4, with C classes.
    """
    if not annotations.has_identities:
        return crowd_posterior(annotations)
    classes = annotations.num_classes
    answers = np.full((annotations.num_annotators, classes, classes), _PSEUDO)  # given, true
    np.add.at(
        answers, (annotations.annotators, annotations.labels), posterior[annotations.instances]
    )
    log_errors = np.log(answers / answers.sum(axis=1, keepdims=True))
    scores = np.log(np.maximum(predicted, _LEAST))
    np.add.at(scores, annotations.instances, log_errors[annotations.annotators, annotations.labels])
    return np.asarray(softmax(scores, axis=1))


def posterior_assurance(posterior: NDArray[Any]) -> NDArray[np.float32]:
    """Returns definition 2's assurance with a posterior `[N, C]` in place of shares of votes:
    `(C max q - 1) / (C - 1)`.

    References:
        NeuCrowd, definition 2.
    """
    classes = posterior.shape[1]
    return ((classes * posterior.max(axis=1) - 1.0) / (classes - 1.0)).astype(np.float32)
