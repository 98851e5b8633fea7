"""Small crowds that several tests train on."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations


def graphs() -> int:
    """Returns how many graphs of TensorFlow's functions this process keeps."""
    gc.collect()
    return sum(type(item).__name__ == "FuncGraph" for item in gc.get_objects())


def blobs(
    rows: int,
    classes: int,
    *,
    width: int = 5,
    apart: float = 2.5,
    annotators: int = 5,
    right: Any = 0.8,
    missing: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns features around a corner for each class, labels with -1 for missing ones, and truth.

    `right` is how often annotators know the truth; otherwise they guess. With `missing` labels each
    instance has a right one.
    """
    rng = np.random.default_rng(0)
    truth = np.arange(rows) % classes
    x = (rng.normal(size=(rows, width)) + apart * np.eye(classes, width)[truth]).astype(np.float32)
    shape = (rows, annotators)
    dense = np.where(rng.random(shape) < right, truth[:, None], rng.integers(classes, size=shape))
    if missing:
        dense[rng.random(shape) < missing] = -1
        dense[np.arange(rows), np.arange(rows) % annotators] = truth
    return x, dense, truth


def softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Returns the softmax along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def randomised(layer: Any, seed: int = 1) -> Any:
    """Returns a built Keras layer with weights from N(0, 1)."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


def simulated(
    size: int, width: int, annotators: int, each: int = 4, classes: int = 4, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Returns features of linearly separable classes, true classes, and labels of each instance.

    The annotators are right for 40 to 95% of the instances.
    """
    rng = np.random.default_rng(seed)
    rule, features = rng.normal(size=(width, classes)), rng.normal(size=(size, width))
    truth = (features @ rule).argmax(axis=1)
    skill = rng.uniform(0.4, 0.95, annotators)
    instances = np.repeat(np.arange(size), each)
    who = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(size)])
    right = rng.random(len(who)) < skill[who]
    labels = np.where(right, truth[instances], rng.integers(0, classes, len(who)))
    crowd = Annotations(instances, who, labels, num_classes=classes)
    return features.astype(np.float32), truth, crowd
