"""Scores of a fitted method for metrics.json, and figures against the truth for evaluation.json."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import entropy

from neucrowd_tf.aggregation.families import PEOPLE, Sources
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets import UNKNOWN, CrowdDataset, Split
from neucrowd_tf.declare.types import Array, Estimator, Fields, Indices
from neucrowd_tf.evaluation.cross_validation import whole_crowd
from neucrowd_tf.evaluation.metrics import classification_metrics
from neucrowd_tf.evaluation.soft_labels import perspectivist_error, soft_label_scores
from neucrowd_tf.evaluation.without_truth import (
    BASIS,
    GOLD_MEANING,
    LEAST_GOLD,
    MEANING,
    NO_TRUTH,
    score_without_truth,
)

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))


def score_split(split: Split, probabilities: Array, class_names: Array) -> Fields:
    """Returns the metrics over the labelled rows, and their number as "size"."""
    rows = np.flatnonzero(split.labels >= 0)
    if not len(rows):
        return {"size": 0}
    labels = split.labels[rows]
    probabilities = probabilities[rows]
    scored = classification_metrics(labels, probabilities, class_names=class_names)
    return {"size": len(rows), **scored}


def score_test(
    dataset: CrowdDataset,
    probabilities: Array,
    estimator: Estimator = None,
    gold: Indices | None = None,
    sources: Sources = PEOPLE,
) -> tuple[Indices, Fields]:
    """Returns the labels `[M]` of the test rows, and the scores of predictions for metrics.json.

    Predictions are scored by the truth; else by the crowd's posterior and gold labels; else, if
    only vote counts are available, by majority votes. Where test rows have several labels, the
    distances to their shares are added, and beside the truth the accuracy by majority votes.

    Args:
        dataset: with test rows.
        probabilities: `[M, C]`.
        estimator: the fitted method, of which `predict_annotators` is used.
        gold: class codes of `whole_crowd`'s instances, -1 if unknown.
        sources: which annotators are models, or count once.
    """
    test = dataset.test
    crowd = dataset.test.annotations
    soft = soft_scores(dataset, probabilities, estimator)
    if dataset.test_is_truth or crowd is None or not crowd.has_identities:
        basis = "truth" if dataset.test_is_truth else "majority vote"
        scored = score_split(test, probabilities, dataset.class_names) | soft
        if dataset.test_is_truth and crowd is not None and crowd.annotated.all():
            majority = majority_labels(crowd.vote_counts(), "random", 0)
            scored["majority_accuracy"] = float((probabilities.argmax(axis=1) == majority).mean())
        return test.labels, {"test": scored, "test_labels": basis}
    rows = np.flatnonzero(crowd.annotated)
    whole = whole_crowd(dataset).observed()
    places = whole.num_instances - len(test) + rows  # test rows come last
    metrics, posterior = score_without_truth(
        whole,
        places,
        probabilities[rows],
        gold=gold,
        class_names=dataset.class_names,
        sources=sources,
    )
    labels = np.full(len(test), UNKNOWN, dtype=np.int64)
    labels[rows] = posterior.argmax(axis=1)
    checked = 0 if gold is None else int((gold[places] >= 0).sum())
    meaning = MEANING if checked < LEAST_GOLD else GOLD_MEANING.format(checked)
    if checked:
        few = f"Of these items {checked} have gold labels; {LEAST_GOLD} would measure the accuracy."
        meaning = meaning.replace(NO_TRUTH, few)
    scores = {"test": {"size": len(rows), **metrics, **soft}, "test_labels": BASIS}
    return labels, scores | {"test_meaning": meaning}


def soft_scores(
    dataset: CrowdDataset, probabilities: Array, estimator: Estimator = None
) -> dict[str, float]:
    """Returns the scores against test rows' vote shares, and against each annotator's labels.

    The latter are for methods that predict annotators' labels, and count annotators of the
    training rows. Nothing is returned if no test row has two labels.

    Args:
        dataset, probabilities, estimator: see `score_test`.
    """
    crowd = dataset.test.annotations
    if crowd is None:
        return {}
    scores = soft_label_scores(crowd.vote_counts(), probabilities)
    predict = getattr(estimator, "predict_annotators", None)
    if not scores or not crowd.has_identities or not callable(predict):
        return scores
    answers = np.asarray(predict(dataset.test.features))
    names = pd.Index(dataset.annotations.annotator_names)
    codes = names.get_indexer(pd.Index(crowd.annotator_names))
    seen = codes[crowd.annotators] >= 0
    if seen.any() and answers.shape[1] == len(names):
        scores["perspectivist_error"] = perspectivist_error(crowd.select(seen), answers[:, codes])
    return scores


def evaluate(
    dataset: CrowdDataset, estimator: Estimator, probabilities: Array, seed: int
) -> Fields:
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
    figures: Fields = {}
    truth = dataset.truth
    if truth is not None and (truth >= 0).any():
        rows = np.flatnonzero(truth >= 0)
        surest = accuracy_of_surest(probabilities[rows], truth[rows])
        figures["surest"] = {"share": list(SHARES), "accuracy": surest}
        votes = dataset.annotations.vote_counts()
        rows = rows[votes[rows].sum(axis=1) > 0]
        labels = majority_labels(votes, "random", seed)
        figures["label_majority_vote"] = None
        if len(rows):
            figures["label_majority_vote"] = float((labels[rows] == truth[rows]).mean())
    if callable(getattr(estimator, "evaluation", None)):
        figures |= estimator.evaluation(dataset)
    return figures


def accuracy_of_surest(probabilities: Array, truth: Indices) -> list[float]:
    """Returns the accuracy over the instances with the lowest entropy, for each of `SHARES`.

    References:
        CrowdInG, figure 2a.
    """
    right = probabilities.argmax(axis=1) == truth
    order = np.argsort(entropy(probabilities.astype(np.float64), axis=1), kind="stable")
    return [float(right[order[: max(1, round(share * len(order)))]].mean()) for share in SHARES]
