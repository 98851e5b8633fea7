"""Scores of a fitted method for metrics.json, and figures against the truth for evaluation.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import entropy

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.datasets import UNKNOWN, CrowdDataset, Split
from neucrowd_tf.evaluation.cross_validation import concatenate
from neucrowd_tf.evaluation.without_truth import BASIS, MEANING, score_without_truth
from neucrowd_tf.metrics import classification_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))


def score_split(
    split: Split, probabilities: NDArray[Any], class_names: NDArray[Any]
) -> dict[str, Any]:
    """Returns the metrics over the labelled rows, and their number as "size"."""
    rows = np.flatnonzero(split.labels >= 0)
    if not len(rows):
        return {"size": 0}
    labels, probabilities = split.labels[rows], probabilities[rows]
    scored = classification_metrics(labels, probabilities, class_names=class_names)
    return {"size": len(rows), **scored}


def score_test(
    dataset: CrowdDataset, probabilities: NDArray[Any]
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Returns the labels `[M]` of the test rows, and the scores of predictions for metrics.json.

    Predictions are scored by the truth; else by the posterior under a model of the crowd; else, if
    only vote counts are available, by majority votes.

    Args:
        dataset: with test rows.
        probabilities: `[M, C]`.
    """
    test, crowd = dataset.test, dataset.test.annotations
    if dataset.test_is_truth or crowd is None or not crowd.has_identities:
        basis = "truth" if dataset.test_is_truth else "majority vote"
        scored = score_split(test, probabilities, dataset.class_names)
        return test.labels, {"test": scored, "test_labels": basis}
    rows = np.flatnonzero(crowd.annotated)
    metrics, posterior = score_without_truth(
        concatenate([dataset.annotations, crowd]).observed(),
        dataset.annotations.num_instances + rows,
        probabilities[rows],
        class_names=dataset.class_names,
    )
    labels = np.full(len(test), UNKNOWN, dtype=np.int64)
    labels[rows] = posterior.argmax(axis=1)
    scores = {"test": {"size": len(rows), **metrics}, "test_labels": BASIS}
    return labels, scores | {"test_meaning": MEANING}


def evaluate(
    dataset: CrowdDataset, estimator: Any, probabilities: NDArray[Any], seed: int
) -> dict[str, Any]:
    """Returns the content of evaluation.json.

    Args:
        dataset: the training instances, with or without truth.
        estimator: fitted. It may have a method `evaluation(dataset)` that returns further numbers
            by name, and under "rounds" a dict of lists with one entry per round.
        probabilities: `[N, C]` its predictions for the training instances.
        seed: draws ties of majority votes.

    Returns:
        `surest`: the accuracy on growing shares of the training instances, those with the lowest
            entropy first;
        `label_majority_vote`: the accuracy of majority votes, None without any; and the result of
            the estimator's own method.
    """
    figures: dict[str, Any] = {}
    truth = dataset.truth
    if truth is not None and (truth >= 0).any():
        rows = np.flatnonzero(truth >= 0)
        figures["surest"] = {
            "share": list(SHARES),
            "accuracy": accuracy_of_surest(probabilities[rows], truth[rows]),
        }
        votes = dataset.annotations.vote_counts()
        rows = rows[votes[rows].sum(axis=1) > 0]
        labels = majority_labels(votes, "random", seed)
        figures["label_majority_vote"] = (
            float((labels[rows] == truth[rows]).mean()) if len(rows) else None
        )
    if callable(getattr(estimator, "evaluation", None)):
        figures |= estimator.evaluation(dataset)
    return figures


def accuracy_of_surest(probabilities: NDArray[Any], truth: NDArray[np.int64]) -> list[float]:
    """Returns the accuracy over the instances with the lowest entropy, for each of `SHARES`.

    References:
        CrowdInG, figure 2a.
    """
    right = probabilities.argmax(axis=1) == truth
    order = np.argsort(entropy(probabilities.astype(np.float64), axis=1), kind="stable")
    return [float(right[order[: max(1, round(share * len(order)))]].mean()) for share in SHARES]
