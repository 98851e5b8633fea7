"""Small crowds that several tests train on."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations

Crowd = tuple[np.ndarray, Annotations, np.ndarray]  # features, annotations and the truth
Labelled = tuple[Annotations, np.ndarray]  # annotations and the truth

SMALL_LAYER: dict[str, Any] = {
    "base": {"hidden_units": (16,), "dropout": 0.2},
    "epochs": 25,
    "batch_size": 40,
    "learning_rate": 1e-2,
}
QUICK_EMBEDDING: dict[str, Any] = {
    "epochs": 2,
    "steps_per_epoch": 5,
    "batch_size": 24,
    "encoder": {"hidden_units": (16, 4), "l2": 0.0},
    "learning_rate": 1e-2,
    "Cs": (1.0,),
}


def graphs() -> int:
    """Returns how many graphs of TensorFlow's functions this process keeps."""
    gc.collect()
    gc.collect()  # what functions with finalizers hold goes in a second pass
    return sum(type(item).__name__ == "FuncGraph" for item in gc.get_objects())


def corners(rng, truth: np.ndarray, width: int, apart: float) -> np.ndarray:
    """Returns features around a corner for each class."""
    x = rng.normal(size=(len(truth), width)) + apart * np.eye(width)[truth]
    return x.astype(np.float32)


def noisy_labels(rng, truth: np.ndarray, annotators: int, right, classes: int = 0) -> np.ndarray:
    """Returns labels that are the truth with this probability, otherwise the other of two classes.

    With `classes` they are otherwise any of these.
    """
    is_right = rng.random((len(truth), annotators)) < right
    wrong = rng.integers(classes, size=is_right.shape) if classes else 1 - truth[:, None]
    return np.where(is_right, truth[:, None], wrong)


def blobs(
    rows: int,
    classes: int,
    *,
    width: int = 5,
    apart: float = 2.5,
    annotators: int = 5,
    right=0.8,
    missing: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns features around a corner for each class, labels with -1 for missing ones, and truth.

    `right` is how often annotators know the truth; otherwise they guess. With `missing` labels each
    instance has a right one.
    """
    rng = default_rng(0)
    truth = np.arange(rows) % classes
    x = corners(rng, truth, width, apart)
    dense = noisy_labels(rng, truth, annotators, right, classes)
    if missing:
        dense[rng.random(dense.shape) < missing] = -1
        dense[np.arange(rows), np.arange(rows) % annotators] = truth
    return x, dense, truth


def one_hot(dense: np.ndarray, classes: int) -> np.ndarray:
    """Returns `[N, R, C]`: whether an annotator gave an instance this label."""
    return np.eye(classes)[dense] * (dense >= 0)[..., None]


def array_of(text: str, dtype=None) -> np.ndarray:
    """Returns the numbers of a text: a vector, or a matrix whose rows `;` ends. "2/3" is one."""
    rows = [[_number(cell) for cell in row.split()] for row in text.split(";") if row.strip()]
    return np.array(rows if ";" in text else rows[0], dtype)


def _number(cell: str) -> float:
    over, _, under = cell.partition("/")
    value = float(over) if set(over) & set(".eni") else int(over)
    return value / float(under) if under else value


def softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Returns the softmax along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def randomised(layer, seed: int = 1):
    """Returns a built Keras layer with weights from N(0, 1)."""
    rng = default_rng(seed)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


# Krippendorff (2011), section C: four observers, twelve units, nominal alpha = .743.
KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def krippendorff_labels() -> np.ndarray:
    """Returns `[units, observers]` class codes of this example, -1 for missing."""
    rows = KRIPPENDORFF.replace(".", "0").strip().splitlines()
    return np.array([row.split() for row in rows], dtype=int).T - 1
