"""Consensus labels, held-out instances, and the figures by which an epoch is chosen."""

from __future__ import annotations

import math

import numpy as np
from sklearn.model_selection import train_test_split

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare.types import Floats, Indices, Integers
from neucrowd_tf.errors import DataError, one_at_a_time
from neucrowd_tf.evaluation.auc_and_log_loss import mean_log_loss, mean_roc_auc
from neucrowd_tf.training.estimator import TrainingData, check_finite

HELD_OUT = 0.2  # share of the instances that choose an epoch or a round without validation data


def consensus_labels(annotations: Annotations, seed: int) -> Indices:
    """Returns `[N]` class codes: majority votes with ties drawn by the seed."""
    return majority_labels(annotations.vote_counts(), "random", seed)


def hold_out(
    data: TrainingData, seed: int, *, fraction: float = HELD_OUT, labels: Indices | None = None
) -> tuple[TrainingData, Indices]:
    """Splits training data when no validation data was given.

    Args:
        data: N instances.
        seed: draws the part.
        fraction: the share held out.
        labels: `[N]` consensus class codes, by default majority votes; they become the validation
            labels and stratify the split where each class has two.

    Returns:
        the data with the held-out part as `validation`, and the positions of the part that is left.

    Raises:
        DataError: so few instances that none is left to train on.
    """
    if data.validation is not None:
        return data, np.arange(len(data.features))
    if labels is None:
        labels = consensus_labels(data.annotations, seed)
    left = len(labels) - math.ceil(fraction * len(labels))
    if left <= 0:
        raise DataError(
            f"annotations: {len(labels)} annotated instances are too few to hold out a share of"
            f" {fraction:g} for validation. Pass validation data."
        )
    counts = np.unique(labels, return_counts=True)[1]
    smaller = min(left, round(fraction * len(labels)))
    enough = counts.min() >= 2 and smaller >= len(counts)
    with one_at_a_time():
        train, validation = train_test_split(
            np.arange(len(labels)),
            test_size=fraction,
            random_state=seed,
            stratify=labels if enough else None,
        )
    train.sort()
    validation.sort()
    held_out = data.features[validation], labels[validation]
    rest = data.features[train], data.annotations[train], held_out, data.rows[train]
    return TrainingData(*rest, validation_kind="votes"), train


def validation_figures(
    probabilities: Floats, labels: Integers, *, auc: bool = True
) -> dict[str, float]:
    """Returns "accuracy", "auc" and "log_loss" of class probabilities, by which epochs are chosen.

    They are those of `evaluation.metrics`, without its checks.

    Args:
        probabilities: `[M, C]`.
        labels: `[M]` class codes.
        auc: False leaves it out, which takes longest.

    Raises:
        FloatingPointError: probabilities that are not finite.
    """
    check_finite(probabilities)
    figures = {
        "accuracy": float((probabilities.argmax(axis=1) == labels).mean()),
        "log_loss": mean_log_loss(labels, probabilities),
    }
    if auc:
        figures["auc"] = mean_roc_auc(labels, probabilities)
    return figures
