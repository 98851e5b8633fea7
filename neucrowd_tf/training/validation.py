"""Consensus labels, held-out instances, and the best epoch on these."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from neucrowd_tf.aggregation import Aggregator, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.training.estimator import TrainingData


def consensus_labels(
    annotations: Annotations, seed: int, *, weigh_annotators: bool = False
) -> NDArray[np.int64]:
    """Returns `[N]` class codes: majority votes with ties drawn by the seed.

    Args:
        annotations: N instances.
        seed: draws between classes with equally many votes.
        weigh_annotators: Dawid and Skene's labels instead, where it is known who voted.
    """
    weigh = weigh_annotators and annotations.has_identities
    stage: Aggregator = DawidSkene(seed=seed) if weigh else MajorityVote(seed=seed)
    with warnings.catch_warnings():
        # Labels settle long before the last digits of the objective.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(stage.fit(annotations).labels_, dtype=np.int64)


def hold_out(
    data: TrainingData, labels: NDArray[np.int64], fraction: float, seed: int
) -> tuple[TrainingData, NDArray[np.int64]]:
    """Splits training data when no validation data was given.

    Args:
        data: N instances.
        labels: `[N]` consensus class codes; they become the validation labels and stratify the
            split where each class has two.
        fraction: the share held out.
        seed: draws the part.

    Returns:
        the data with the held-out part as `validation`, and the positions of the part that is left.

    Raises:
        DataError: so few instances that none is left to train on.
    """
    if data.validation is not None:
        return data, np.arange(len(labels))
    if math.ceil(fraction * len(labels)) >= len(labels):
        raise DataError(
            f"annotations: {len(labels)} annotated instances are too few to hold out a share of"
            f" {fraction:g} for validation. Pass validation data."
        )
    counts = np.unique(labels, return_counts=True)[1]
    enough = counts.min() >= 2 and round(fraction * len(labels)) >= len(counts)
    options = {"random_state": seed, "stratify": labels if enough else None}
    train, held = train_test_split(np.arange(len(labels)), test_size=fraction, **options)
    train.sort()
    held.sort()
    held_out = data.features[held], labels[held]
    rest = TrainingData(data.features[train], data.annotations[train], held_out, data.rows[train])
    return rest, train


class BestEpoch:
    """The epoch with the best monitored value so far, and the weights it had.

    Args:
        mode: whether the "max" or the "min" is best.
        patience: how many epochs without a better one end training; None goes on to the last.
        min_delta: by how much more than this a better epoch has to be better.

    Attributes:
        epoch, value, tie: the best epoch (from 0), its value and what decided between equals; None
            before there is one.
        weights: what `offer` was given to read then.
    """

    def __init__(
        self, mode: str = "max", patience: int | None = None, min_delta: float = 0.0
    ) -> None:
        self.sign = 1.0 if mode == "max" else -1.0
        self.patience, self.min_delta = patience, min_delta
        self.epoch: int | None = None
        self.value: float | None = None
        self.tie: float | None = None
        self.weights: list[NDArray[Any]] = []

    def offer(
        self, epoch: int, value: float, read: Callable[[], list[NDArray[Any]]], tie: float = 0.0
    ) -> bool:
        """Keeps an epoch that is better than all before; returns whether it was.

        Args:
            epoch: from 0.
            value: the monitored figure.
            read: gives the weights, which are copied only where they are kept.
            tie: decides between equal values, the lower being better; the first epoch wins where
                this is equal too.
        """
        best = None if self.value is None else (self.sign * self.value, -(self.tie or 0.0))
        # What is better by less than `min_delta` is never better, whatever decides between equals.
        offered = (self.sign * value - self.min_delta, -tie)
        if best is not None and not offered > best:
            return False
        self.epoch, self.value, self.tie = epoch, value, tie
        self.weights = read()
        return True

    def waited(self, epoch: int) -> bool:
        """Returns whether patience has run out after `epoch`."""
        if self.patience is None or self.epoch is None:
            return False
        return epoch - self.epoch >= self.patience


def validation_figures(
    probabilities: NDArray[Any], labels: NDArray[Any], *, auc: bool = True
) -> dict[str, float]:
    """Returns "accuracy", "auc" and "log_loss" of class probabilities, by which epochs are chosen.

    The AUC is that of one class against the rest, the mean over classes that occur; it is 0.5 if
    only one does.

    Args:
        probabilities: `[M, C]`.
        labels: `[M]` class codes.
        auc: False leaves it out, which takes longest.
    """
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    figures = {
        "accuracy": float((probabilities.argmax(axis=1) == labels).mean()),
        "log_loss": float(-np.log(np.maximum(chosen, 1e-7)).mean()),
    }
    if not auc:
        return figures
    classes = np.unique(labels)
    if probabilities.shape[1] == 2:
        classes = classes[1:]
    aucs = [0.5]
    if 0 < (labels == labels[0]).sum() < len(labels):
        aucs = [roc_auc_score(labels == c, probabilities[:, c]) for c in classes]
    return {**figures, "auc": float(np.mean(aucs))}
