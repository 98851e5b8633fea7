"""Reader of the binary layouts of CIFAR-10 and CIFAR-100.

An image has 3,073 bytes: one label byte, then 32 x 32 pixels of red, green and blue. In CIFAR-100 a
byte with the superclass precedes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.imbalanced import long_tail_sizes
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE * CHANNELS
BATCH = 10_000  # images in an official batch
CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def read_batch(
    path: Path, superclass: bool = False, classes: int = len(CLASS_NAMES)
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Returns images `[M, 32, 32, 3]` uint8 and class codes `[M]`.

    Args:
        path: the file.
        superclass: whether a further byte precedes the label.
        classes: number of classes.

    Raises:
        DataError: no such file, a size that is no multiple of a record, or a label too large.
    """
    size = 1 + superclass + PIXELS
    try:
        raw = np.fromfile(path, dtype=np.uint8)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    if not raw.size or raw.size % size:
        raise DataError(
            f"{path}: expected records of {size} bytes (CIFAR's binary layout), received"
            f" {raw.size} bytes"
        )
    records = raw.reshape(-1, size)
    labels = records[:, int(superclass)].astype(np.int64)
    if labels.max() >= classes:
        row = int(np.flatnonzero(labels >= classes)[0])
        raise DataError(
            f"{path}: image {row}: expected a label from 0 to {classes - 1}, received {labels[row]}"
        )
    return records[:, -PIXELS:].reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1), labels


def as_features(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Returns images as float32 within 0 and 1."""
    features = images.astype(np.float32)
    features /= 255.0
    return features


def class_name_array() -> NDArray[np.object_]:
    """Returns the ten class names; their alphabetical order is that of the codes."""
    return np.array(CLASS_NAMES, dtype=object)


def long_tail(labels: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """Chooses rows whose class sizes fall exponentially, `ratio` to 1.

    The first rows of each class are taken.

    The largest class keeps as many rows as the rarest class has, so that which class is rare is by
    design alone.

    Args:
        labels: `[M]` true class codes.
        ratio: the first class's size over the last's; 1 keeps all rows.

    Returns:
        sorted row numbers.

    References:
        DASC, section 4.1.
    """
    if ratio == 1:
        return np.arange(len(labels))
    counts = np.bincount(labels, minlength=len(CLASS_NAMES))
    sizes = long_tail_sizes(int(counts.min()), len(CLASS_NAMES), ratio)
    if not counts.min():
        raise DataError(
            "long tail: expected images of every class, received none of class"
            f" {CLASS_NAMES[int(counts.argmin())]}"
        )
    return np.sort(
        np.concatenate([np.flatnonzero(labels == code)[:size] for code, size in enumerate(sizes)])
    )
