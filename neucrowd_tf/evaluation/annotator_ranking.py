"""Who labels well: accuracy against consensus, agreement, and scores of spammers and
adversaries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.aggregation.base import normalise_log
from neucrowd_tf.annotations import Annotations, as_annotations, statistics
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import wilson_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Labels as many as this, drawn from an annotator's own mix whatever the class, are added to each
# row of its counts: an annotator counts as a spammer until its labels say otherwise.
PSEUDO_LABELS = 1.0


def spam_scores(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]`: 1 where labels do not depend on the true class, 0 where they tell the classes
    apart without fail.

    One minus the score of Raykar and Yu, the mean squared distance between the rows of a confusion
    matrix. An annotator who always swaps two classes is no spammer: see `adversary_scores`.

    Args:
        errors: `[R, C true class, C observed class]`.

    References:
        Raykar and Yu (2012), Eliminating spammers and ranking annotators for crowdsourced labeling
        tasks, section 3.
    """
    size = errors.shape[-1]
    if size < 2:
        return np.zeros(len(errors))
    # Sum over pairs of rows of |row - row'|^2 = C * sum of |row|^2 - |sum of rows|^2.
    distances = size * np.einsum("rck,rck->r", errors, errors) - np.einsum(
        "rk,rk->r", errors.sum(axis=1), errors.sum(axis=1)
    )
    return np.clip(1.0 - distances / (size * (size - 1)), 0.0, 1.0)


def informedness(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]`: mean recall, scaled so that 1 is perfect and 0 is chance (any spammer); below
    0 is worse than chance.
    """
    size = errors.shape[-1]
    return np.ones(len(errors)) if size < 2 else (np.einsum("rcc->r", errors) - 1.0) / (size - 1)


def adversary_scores(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]`: 0 for chance or better, 1 for an annotator who is never right."""
    return np.clip(-informedness(errors) * max(errors.shape[-1] - 1, 1), 0.0, 1.0)


def leave_one_out_posteriors(crowd: Annotations, model: DawidSkene) -> NDArray[np.float64]:
    """Returns `[A, C]`: what the other annotators of an instance say of its class, under a fitted
    model's parameters.
    """
    if model.errors_ is None:
        raise DataError(
            "leave-one-out posteriors: expected a model with error matrices, received one without"
        )
    log_errors = np.log(np.maximum(model.errors_, 1e-300))
    total = crowd.one_hot() @ log_errors.transpose(0, 2, 1).reshape(-1, crowd.num_classes)
    posteriors: NDArray[np.float64] = (
        total[crowd.instances] - log_errors[crowd.annotators, :, crowd.labels]
    )
    normalise_log(posteriors, np.log(np.maximum(model.priors_, 1e-300)))
    return posteriors


def leave_one_out_agreement(crowd: Annotations) -> NDArray[np.float64]:
    """Returns `[R]`: the share of the other labels of an annotator's instances that equal its own;
    NaN without any other label.
    """
    votes = crowd.vote_counts()
    same = votes[crowd.instances, crowd.labels] - 1
    others = votes.sum(axis=1)[crowd.instances] - 1
    agreed = np.bincount(crowd.annotators, weights=same, minlength=crowd.num_annotators)
    met = np.bincount(crowd.annotators, weights=others, minlength=crowd.num_annotators)
    return np.divide(agreed, met, out=np.full(len(met), np.nan), where=met > 0)


def _evidence(crowd: Annotations, believed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns confusion matrices `[R, C true, C observed]` from `[A, C]` beliefs, drawn towards
    "the class does not matter".
    """
    size = crowd.num_classes
    keys = crowd.annotators.astype(np.int64) * size + crowd.labels
    counts = np.stack(
        [
            np.bincount(keys, weights=believed[:, c], minlength=crowd.num_annotators * size)
            for c in range(size)
        ]
    )
    counts = counts.reshape(size, crowd.num_annotators, size).transpose(1, 0, 2)
    given = counts.sum(axis=1, keepdims=True)
    total = given.sum(axis=2, keepdims=True)
    mix = np.divide(given, total, out=np.full_like(given, 1.0 / size), where=total > 0)
    matrices: NDArray[np.float64] = (counts + PSEUDO_LABELS * mix) / (
        counts.sum(axis=2, keepdims=True) + PSEUDO_LABELS
    )
    return matrices


def rank_annotators(
    annotations: Annotations | ArrayLike,
    *,
    consensus: ArrayLike | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Ranks annotators from best to worst, without or with the truth.

    Args:
        annotations: with identities; generated labels are left out.
        consensus: `[N]` class codes to judge by (the truth, after the fact), -1 where unknown. By
            default Dawid-Skene's labels; the scores then rest, for each label, on what the *other*
            annotators of the instance say.
        confidence: of the intervals of accuracy.

    Returns:
        a row an annotator (index `annotator`), the best first, with columns
        - num_labels;
        - accuracy, accuracy_low, accuracy_high: share of labels that equal the consensus, with
          Wilson's interval; NaN without any;
        - agreement: see `leave_one_out_agreement`;
        - informedness: what the rows are sorted by; 0 is chance, however skewed the classes are;
        - spam_score, adversary_score: see the functions;
        - rank: from 1.

    Raises:
        IdentitiesError: vote counts only.
        DataError: a consensus that cannot be used, or no annotation.
    """
    crowd = as_annotations(annotations)
    crowd.require_identities("the ranking of annotators")
    crowd = crowd.observed()
    if consensus is None:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # a ranking does not need the last digits
            model = DawidSkene().fit(crowd)
        judged, believed = model.labels_, leave_one_out_posteriors(crowd, model)
    else:
        judged = statistics.known_codes(crowd, consensus, "consensus")
        believed = np.vstack([np.eye(crowd.num_classes), np.zeros(crowd.num_classes)])[
            judged[crowd.instances]
        ]
    known = judged[crowd.instances] >= 0
    right = known & (judged[crowd.instances] == crowd.labels)
    trials = np.bincount(crowd.annotators[known], minlength=crowd.num_annotators)
    hits = np.bincount(crowd.annotators[right], minlength=crowd.num_annotators)
    low, high = wilson_interval(hits, trials, confidence)
    errors = _evidence(crowd, believed)
    columns: dict[str, Any] = {
        "num_labels": crowd.labels_per_annotator(),
        "accuracy": np.divide(hits, trials, out=np.full(len(hits), np.nan), where=trials > 0),
        "accuracy_low": low,
        "accuracy_high": high,
        "agreement": leave_one_out_agreement(crowd),
        "informedness": informedness(errors),
        "spam_score": spam_scores(errors),
        "adversary_score": adversary_scores(errors),
    }
    table = pd.DataFrame(columns, index=pd.Index(crowd.annotator_names, name="annotator"))
    table = table.sort_values("informedness", ascending=False, kind="stable")
    table["rank"] = np.arange(1, len(table) + 1)
    return table
