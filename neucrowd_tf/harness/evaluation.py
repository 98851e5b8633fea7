"""What the truth says of a finished fit, for figures: evaluation.json. It is worked out after the
fit and enters none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.datasets import CrowdDataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = tuple(round(0.1 * part, 1) for part in range(1, 11))


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
        from neucrowd_tf.aggregation import majority_labels

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
    from scipy.stats import entropy

    right = probabilities.argmax(axis=1) == truth
    order = np.argsort(entropy(probabilities.astype(np.float64), axis=1), kind="stable")
    return [float(right[order[: max(1, round(share * len(order)))]].mean()) for share in SHARES]
