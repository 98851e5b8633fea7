"""Checks of CrowdInG's arguments, and the table of annotators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.crowding.estimator import CrowdInG

_COUNTS = (
    "embedding_size",
    "generator_units",
    "auxiliary_units",
    "noise_size",
    "passes",
    "batch_size",
    "pair_batch_size",
    "generator_pretrain_batch",
)
_RATES = (
    "generator_learning_rate",
    "classifier_learning_rate",
    "discriminator_learning_rate",
    "generator_pretrain_learning_rate",
    "ratio_cap",
    "probability_floor",
    "collapse_drop",
)
_NAMES = {
    "selection": ("entropy", "random"),
    "discriminator_loss": ("multi_label", "literal"),
    "monitor": ("accuracy", "log_loss"),
}


def check_arguments(estimator: CrowdInG) -> None:
    """Raises UsageError for an argument that cannot be used."""
    for names, least in (
        (_COUNTS, 1),
        (("epochs", "generator_pretrain_epochs", "discriminator_pretrain_passes"), 0),
    ):
        for name in names:
            value = getattr(estimator, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise UsageError(
                    f"{name}: expected a whole number from {least}, received {value!r}"
                )
    for name in _RATES:
        if not _number(value := getattr(estimator, name)) or not 0 < value < np.inf:
            raise UsageError(f"{name}: expected a number above 0, received {value!r}")
    for name in ("information", "output_penalty"):
        if not _number(value := getattr(estimator, name)) or not 0 <= value < np.inf:
            raise UsageError(f"{name}: expected a number from 0, received {value!r}")
    if not _number(estimator.averaging) or not 0 <= estimator.averaging < 1:
        raise UsageError(
            f"averaging: expected a number from 0 and below 1, received {estimator.averaging!r}"
        )
    for name in ("threshold", "validation_fraction"):
        if not _number(value := getattr(estimator, name)) or not 0 < value < 1:
            raise UsageError(f"{name}: expected a number between 0 and 1, received {value!r}")
    if estimator.multiplier not in ("mean", "search") and not (
        _number(estimator.multiplier) and np.isfinite(estimator.multiplier)
    ):
        raise UsageError(
            f"multiplier: expected a number, 'mean' or 'search', received {estimator.multiplier!r}"
        )
    for name, allowed in _NAMES.items():
        if getattr(estimator, name) not in allowed:
            raise UsageError(
                f"{name}: expected one of {', '.join(map(repr, allowed))}, received"
                f" {getattr(estimator, name)!r}"
            )


def _number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def annotator_table(annotations: Annotations, features: ArrayLike | None) -> NDArray[np.float32]:
    """Returns what stands for the annotators `[R, e]`: their features, or one-hot vectors where
    there are none.

    Raises:
        DataError: not finite numbers with a row for each annotator.
    """
    if features is None:
        return np.eye(annotations.num_annotators, dtype=np.float32)
    try:
        table = np.asarray(features, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(
            f"annotator_features: expected numbers, received {features!r}"[:200]
        ) from None
    if table.ndim != 2 or len(table) != annotations.num_annotators or not np.isfinite(table).all():
        raise DataError(
            f"annotator_features: expected finite numbers of shape [{annotations.num_annotators},"
            f" *], received shape {table.shape}"
        )
    return table
