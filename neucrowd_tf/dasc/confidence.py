"""How sure a model is of each annotation that nobody gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_CELLS_AT_ONCE = 1 << 22


class PredictsAnnotators(Protocol):
    """A fitted estimator that predicts what each annotator would answer."""

    def predict_annotators(self, features: ArrayLike) -> NDArray[Any]: ...


def entropy(probabilities: NDArray[Any]) -> NDArray[np.float32]:
    """Returns `-sum_c p_c log p_c` over the last axis, in nats; 0 log 0 is 0.

    Args:
        probabilities: `[..., C]`.

    References:
        DASC, eq. 2.
    """
    p = np.asarray(probabilities, dtype=np.float32)
    # Sums of -p log p of nearly certain predictions round to just below zero.
    return np.maximum(
        -(p * np.log(np.maximum(p, np.float32(1e-30)))).sum(axis=-1, dtype=np.float32),
        np.float32(0.0),
    )


def pseudo_annotations(
    estimator: PredictsAnnotators, features: NDArray[Any], num_annotators: int, num_classes: int
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Returns what each annotator most probably answers and how uncertain that is, for every
    instance and annotator.

    All cells are predicted once, a block of instances at a time, so nothing of size N x R x C is
    ever held.

    Args:
        estimator: fitted.
        features: `[N, ...]`.
        num_annotators, num_classes: R and C.

    Returns:
        labels `[N, R]` (int8 up to 127 classes, else int32) and entropies `[N, R]` float32.

    Raises:
        DataError: the estimator's predictions have another shape, or are not finite.
    """
    size = len(features)
    labels = np.empty((size, num_annotators), dtype=np.int8 if num_classes <= 127 else np.int32)
    uncertainty = np.empty((size, num_annotators), dtype=np.float32)
    rows = max(1, _CELLS_AT_ONCE // max(1, num_annotators * num_classes))
    for start in range(0, size, rows):
        part = slice(start, min(start + rows, size))
        probabilities = estimator.predict_annotators(features[part])
        wanted = (part.stop - start, num_annotators, num_classes)
        if probabilities.shape != wanted:
            raise DataError(
                f"predict_annotators: expected shape {wanted}, received {probabilities.shape}"
            )
        labels[part] = probabilities.argmax(axis=2)
        uncertainty[part] = entropy(probabilities)
    if not np.isfinite(uncertainty).all():
        row, annotator = np.argwhere(~np.isfinite(uncertainty))[0]
        raise DataError(
            f"predict_annotators: instance {row}, annotator {annotator}: expected probabilities,"
            " received values that are not finite"
        )
    return labels, uncertainty
