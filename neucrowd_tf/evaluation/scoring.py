"""What is said of a fitted method: the scores of metrics.json, and for figures what the truth says,
evaluation.json. It is worked out after the fit and enters none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import entropy

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.datasets import UNKNOWN, CrowdDataset, Split
from neucrowd_tf.evaluation.cross_validation import concatenate
from neucrowd_tf.evaluation.without_truth import BASIS, score_without_truth
from neucrowd_tf.metrics import classification_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = tuple(round(0.1 * part, 1) for part in range(1, 11))


def score_split(
    split: Split, probabilities: NDArray[Any], class_names: NDArray[Any]
) -> dict[str, Any]:
    """Returns the metrics over the rows whose label is known, and how many these are."""
    known = np.flatnonzero(split.labels >= 0)
    if not len(known):
        return {"size": 0}
    labels, probabilities = split.labels[known], probabilities[known]
    scored = classification_metrics(labels, probabilities, class_names=class_names)
    return {"size": len(known), **scored}


def score_test(
    dataset: CrowdDataset, probabilities: NDArray[Any], seed: int
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Returns the labels `[M]` of the test rows, and what metrics.json says of predictions: by the
    truth, or else by what a model of the crowd believes, or, where it is not known who voted, by
    majority votes.

    Args:
        probabilities: `[M, C]`.
        seed: of simulated crowds.
    """
    test, crowd = dataset.test, dataset.test.annotations
    if dataset.test_is_truth or crowd is None or not crowd.has_identities:
        basis = "truth" if dataset.test_is_truth else "majority vote"
        scored = score_split(test, probabilities, dataset.class_names)
        return test.labels, {"test": scored, "test_labels": basis}
    rows = np.flatnonzero(crowd.annotated)
    scores = score_without_truth(
        concatenate([dataset.annotations, crowd]).observed(),
        dataset.annotations.num_instances + rows,
        probabilities[rows],
        class_names=dataset.class_names,
        seed=seed,
    )
    labels = np.full(len(test), UNKNOWN, dtype=np.int64)
    labels[rows] = scores.beliefs.argmax(axis=1)
    return labels, {
        "test": {"size": len(rows), **scores.metrics},
        "test_labels": BASIS,
        "test_meaning": scores.meaning,
        "test_simulated": scores.simulated,
    }


def evaluate(
    dataset: CrowdDataset, estimator: Any, probabilities: NDArray[Any], seed: int
) -> dict[str, Any]:
    """Returns what evaluation.json holds.

    Args:
        estimator: fitted. One that has more to tell has a method `evaluation(dataset)`, which
            returns numbers by name, and under "rounds" a dict of lists with an entry a round.
        probabilities: `[N, C]` what it predicts for the training instances.
        seed: draws ties of majority votes.

    Returns:
        `surest`: the accuracy on growing shares of the training instances, those with the lowest
            entropy first;
        `label_majority_vote`: the accuracy of majority votes, where there are any; and what the
            estimator's own method returns.
    """
    figures: dict[str, Any] = {}
    truth = dataset.truth
    if truth is not None and (truth >= 0).any():
        known = np.flatnonzero(truth >= 0)
        figures["surest"] = {
            "share": list(SHARES),
            "accuracy": accuracy_of_surest(probabilities[known], truth[known]),
        }
        votes = dataset.annotations.vote_counts()
        known = known[votes[known].sum(axis=1) > 0]
        labels = majority_labels(votes, "random", seed)
        figures["label_majority_vote"] = (
            float((labels[known] == truth[known]).mean()) if len(known) else None
        )
    if callable(getattr(estimator, "evaluation", None)):
        figures |= estimator.evaluation(dataset)
    return figures


def accuracy_of_surest(probabilities: NDArray[Any], truth: NDArray[np.int64]) -> list[float]:
    """Returns the accuracy over the share of the instances with the lowest entropy, for each of
    `SHARES`.

    References:
        CrowdInG, figure 2a.
    """
    right = probabilities.argmax(axis=1) == truth
    order = np.argsort(entropy(probabilities.astype(np.float64), axis=1), kind="stable")
    return [float(right[order[: max(1, round(share * len(order)))]].mean()) for share in SHARES]
