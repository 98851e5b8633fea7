"""Metrics of predicted class probabilities against true classes, mostly scikit-learn's.

Every metric is defined for splits in which some class does not occur; the docstrings say how.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics as sk

from neucrowd_tf.declare.types import Array, Fields, Floats, Indices
from neucrowd_tf.errors import DataError, one_at_a_time
from neucrowd_tf.evaluation.auc_and_log_loss import mean_log_loss, mean_roc_auc

CALIBRATION_BINS = 10


def check_predictions(codes: ArrayLike, probabilities: ArrayLike) -> tuple[Indices, Floats]:
    """Returns codes `[M]` as int64 and probabilities `[M, C]` as float64, both checked.

    The values are unchanged: scaling the rows could break ties between scores.

    Raises:
        DataError: no rows, shapes that do not match, codes out of range, or rows that are no
            distribution.
    """
    truth = np.asarray(codes)
    scores = np.asarray(probabilities, dtype=np.float64)
    if truth.shape != scores.shape[:1] or scores.ndim != 2 or not scores.size:
        raise DataError(
            "metrics: expected codes of shape [M] and probabilities of shape [M, C], M > 0,"
            f" received {truth.shape} and {scores.shape}"
        )
    if truth.dtype.kind not in "iub" or truth.min() < 0 or truth.max() >= scores.shape[1]:
        raise DataError(f"metrics: expected class codes from 0 to {scores.shape[1] - 1}")
    if not (scores >= 0).all() or not (np.abs(scores.sum(axis=1) - 1.0) < 1e-3).all():
        raise DataError("metrics: expected probabilities that sum to 1")
    return truth.astype(np.int64), scores


def roc_auc(codes: ArrayLike, probabilities: ArrayLike) -> float:
    """Returns the area under the ROC curve; NaN if only one class occurs. See `mean_roc_auc`."""
    return mean_roc_auc(*check_predictions(codes, probabilities))


def log_loss(codes: ArrayLike, probabilities: ArrayLike) -> float:
    """Returns the mean negative log probability of the true class, in nats. See `mean_log_loss`."""
    truth, scores = check_predictions(codes, probabilities)
    if scores.shape[1] == 1:
        return 0.0
    return mean_log_loss(truth, scores)


@one_at_a_time()
def brier_score(codes: ArrayLike, probabilities: ArrayLike) -> float:
    """Returns the Brier score on scikit-learn's scale.

    It is mean (p_1 - y)^2 for two classes and mean sum_c (p_c - y_c)^2 for more.
    """
    truth, scores = check_predictions(codes, probabilities)
    if scores.shape[1] == 2:
        return float(sk.brier_score_loss(truth, scores[:, 1], pos_label=1))
    return float(np.mean(np.sum((scores - np.eye(scores.shape[1])[truth]) ** 2, axis=1)))


def calibration_error(confidence: Floats, correct: Array, bins: int = CALIBRATION_BINS) -> float:
    """Returns the expected calibration error over equal bins of confidence.

    The error is the gap between mean confidence and accuracy in a bin, weighted with the bin's
    share of the rows. A confidence on the border of two bins is in the upper one.

    Args:
        confidence: `[M]` probability of each predicted class.
        correct: `[M]` whether each prediction is correct, or the probability that it is.
        bins: number of bins.

    References:
        Guo et al. (2017), On calibration of modern neural networks, equation 3.
    """
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, confidence - correct, bins)).sum() / len(confidence))


def expected_calibration_error(codes: ArrayLike, probabilities: ArrayLike) -> float:
    """Returns the `calibration_error` of the predicted classes' probabilities."""
    truth, scores = check_predictions(codes, probabilities)
    return calibration_error(scores.max(axis=1), scores.argmax(axis=1) == truth)


@one_at_a_time()
def classification_metrics(
    codes: ArrayLike,
    probabilities: ArrayLike,
    *,
    class_names: Sequence[Hashable] | Array | None = None,
) -> Fields:
    """Scores predicted probabilities.

    The predicted class is the most probable one, the first of several equal ones.

    Args:
        codes: `[M]` true class codes.
        probabilities: `[M, C]`, rows sum to one.
        class_names: `[C]` names for `per_class`; by default the codes.

    Returns:
        - accuracy;
        - balanced_accuracy: mean recall over the classes that occur in `codes`;
        - f1: macro, over the classes that occur in `codes` or among the predictions;
        - f1_positive: of class 1, for two classes only;
        - auc, log_loss, brier, ece: see the functions of this module;
        - per_class: for each class name (as text) precision, recall, f1 and support, zero where
          undefined.

    Raises:
        DataError: see `check_predictions`.
    """
    truth, scores = check_predictions(codes, probabilities)
    num_classes = scores.shape[1]
    predicted = scores.argmax(axis=1)
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        truth, predicted, labels=np.arange(num_classes), zero_division=0
    )
    occurs = support > 0
    result: Fields = {
        "accuracy": float(np.mean(truth == predicted)),
        "balanced_accuracy": float(recall[occurs].mean()),
        "f1": float(f1[occurs | (np.bincount(predicted, minlength=num_classes) > 0)].mean()),
    }
    if num_classes == 2:
        result["f1_positive"] = float(f1[1])
    result["auc"] = roc_auc(truth, scores)
    result["log_loss"] = log_loss(truth, scores)
    result["brier"] = brier_score(truth, scores)
    result["ece"] = expected_calibration_error(truth, scores)
    names = range(num_classes) if class_names is None else class_names
    if len(names) != num_classes:
        raise DataError(f"metrics: expected {num_classes} class names, received {len(names)}")
    titles = ("precision", "recall", "f1", "support")
    result["per_class"] = {}
    figures = (precision.tolist(), recall.tolist(), f1.tolist(), support.tolist())
    for name, *row in zip(names, *figures, strict=True):
        result["per_class"][str(name)] = dict(zip(titles, row, strict=True))
    return result
