"""Reader of the binary layouts of CIFAR-10 and CIFAR-100.

An image has 3,073 bytes: one label byte, then 32 x 32 pixels of red, green and blue. In CIFAR-100 a
byte with the superclass precedes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.datasets import Split
from neucrowd_tf.datasets.scarcity import long_tail_sizes
from neucrowd_tf.declare.types import Floats32, Indices
from neucrowd_tf.errors import DataError

from .arrays import as_codes, row_names

SIDE = 32
CHANNELS = 3
PIXELS = SIDE * SIDE * CHANNELS
BATCH = 10_000  # images in an official batch
_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
CLASS_NAMES = np.array(_NAMES, dtype=object)


def read_batch(path: Path, classes: int = 10) -> tuple[NDArray[np.uint8], Indices]:
    """Returns images `[M, 32, 32, 3]` uint8 and class codes `[M]`.

    Args:
        path: the file.
        classes: number of classes: 10, or 100, whose layout has the superclass's byte.

    Raises:
        DataError: no such file, a size that is no multiple of a record, or a label too large.
    """
    size = PIXELS + (2 if classes == 100 else 1)
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
    labels = as_codes(records[:, -PIXELS - 1], classes, path)
    return records[:, -PIXELS:].reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1), labels


def as_features(images: NDArray[np.uint8]) -> Floats32:
    """Returns images as float32 within 0 and 1."""
    return np.divide(images, 255, dtype=np.float32)


def test_split(path: Path, classes: int = 10) -> Split:
    """Returns the images of a file as a test split."""
    images, labels = read_batch(path, classes)
    return Split(as_features(images), labels, row_names("test", len(labels)))


def first_of_each(labels: Indices, sizes: Sequence[int]) -> Indices:
    """Returns the sorted row numbers of the first `sizes[c]` instances of each class c."""
    rows = [np.flatnonzero(labels == code)[:size] for code, size in enumerate(sizes)]
    return np.sort(np.concatenate(rows))


def long_tail(labels: Indices, ratio: float) -> Indices:
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
    return first_of_each(labels, long_tail_sizes(int(counts.min()), len(CLASS_NAMES), ratio))
