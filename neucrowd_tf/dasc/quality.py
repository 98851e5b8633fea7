"""Scores of the selected pseudo-annotations against the truth (figures 4 and 5), after `fit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.datasets import CrowdDataset


class SelfTrained(Protocol):
    """The results of a fitted self-training."""

    selections_: list[NDArray[np.int32]]
    rows_: NDArray[np.int64]
    history_: dict[str, list[Any]]
    round_accuracy_: list[float]
    best_round_: int

    def staged_predict_proba(self, features: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yields class probabilities `[M, C]` by the model of each round."""
        ...


def majority_classes(counts: ArrayLike) -> NDArray[np.bool_]:
    """Returns which classes `[C]` are the most frequent half, the larger half if C is odd.

    Args:
        counts: `[C]` observed annotations of each class.
    """
    n = np.asarray(counts)
    result = np.zeros(len(n), dtype=bool)
    result[np.argsort(-n, kind="stable")[: (len(n) + 1) // 2]] = True
    return result


def selection_quality(
    selections: Sequence[NDArray[np.integer[Any]]], truth: ArrayLike, counts: ArrayLike
) -> list[dict[str, float]]:
    """Scores each round's selection against the instances' true classes.

    Args:
        selections: an array `[M, 3]` of (instance, annotator, label) codes for each round, as
            `DASC.selections_` holds them.
        truth: `[N]` class codes of the instances, -1 where unknown (such instances do not count).
        counts: `[C]` observed annotations of each class, which say what majority classes are.

    Returns:
        for each round: `accuracy`; `precision_majority`, the mean over majority classes of the
            share of pseudo-annotations with that label which are right; `recall_minority`, the mean
            over minority classes of the share of pseudo-annotations on such instances which say so.
            A class without any is left out of its mean; a mean of none is NaN.

    Raises:
        DataError: a selection names an instance that `truth` does not have.

    References:
        DASC, section 4.2 (figure 5).
    """
    codes, majority = np.asarray(truth), majority_classes(counts)
    scores = []
    for number, selected in enumerate(selections, 1):
        if len(selected) and selected[:, 0].max() >= len(codes):
            raise DataError(
                f"truth: expected a class for instance {selected[:, 0].max()} of round {number},"
                f" received {len(codes)} classes"
            )
        actual = codes[selected[:, 0]]
        labelled = actual >= 0
        actual, codes_of = actual[labelled], selected[labelled, 2]
        right = actual == codes_of
        precision = [
            right[codes_of == c].mean() for c in np.flatnonzero(majority) if (codes_of == c).any()
        ]
        recall = [
            right[actual == c].mean() for c in np.flatnonzero(~majority) if (actual == c).any()
        ]
        scores.append(
            {
                "round": float(number),
                "accuracy": float(right.mean()) if len(right) else float("nan"),
                "precision_majority": float(np.mean(precision)) if precision else float("nan"),
                "recall_minority": float(np.mean(recall)) if recall else float("nan"),
            }
        )
    return scores


def round_scores(estimator: SelfTrained, dataset: CrowdDataset) -> dict[str, Any]:
    """Scores each round of a fit that was made in this process.

    Args:
        estimator: fitted on the dataset.
        dataset: with test instances; without truth, selections are not scored.

    Returns:
        `rounds`, a dict of lists with an entry a round: `annotations` (in training),
            `imbalance_ratio`, `val_accuracy`,
        `test_accuracy`, and `precision_majority` and `recall_minority` of the selection that the
        round trained on (round 0 has none); `best_round`; `start_accuracy` and
        `last_round_accuracy`, on the test split.
    """
    counts = np.bincount(dataset.annotations.observed().labels, minlength=dataset.num_classes)
    truth = (
        np.full(dataset.annotations.num_instances, -1) if dataset.truth is None else dataset.truth
    )
    quality = selection_quality(estimator.selections_, truth[estimator.rows_], counts)
    labelled = np.flatnonzero(dataset.test.labels >= 0)
    features, labels = dataset.test.features[labelled], dataset.test.labels[labelled]
    accuracies = []
    if len(labelled):
        for probabilities in estimator.staged_predict_proba(features):
            accuracies.append(float((np.asarray(probabilities).argmax(axis=1) == labels).mean()))
    rounds: dict[str, list[Any]] = {
        name: list(estimator.history_[name]) for name in ("round", "annotations", "imbalance_ratio")
    }
    rounds |= {"val_accuracy": list(estimator.round_accuracy_), "test_accuracy": accuracies}
    # A round's selection is what its training annotations were chosen by, so it stands beside the
    # round that trains on it.
    for name in ("precision_majority", "recall_minority"):
        rounds[name] = [None, *(scores[name] for scores in quality)][: len(rounds["round"])]
    whole: dict[str, Any] = {"rounds": rounds, "best_round": estimator.best_round_}
    if accuracies:
        whole |= {"start_accuracy": accuracies[0], "last_round_accuracy": accuracies[-1]}
    return whole
